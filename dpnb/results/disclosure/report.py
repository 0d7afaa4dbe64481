"""The disclosure statement of a ledger: what was promised to whom, and what was released, to hand over to others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dpnb.errors import DpnbError, InvalidValueError
from dpnb.results.disclosure.parts import (
    FORMAT,
    KIND,
    Division,
    Guarantee,
    Readings,
    ReportedAct,
    ReportedFilter,
    ReportedMechanism,
    ReportedRelease,
    ReportedTable,
    ReportedVersion,
    Section,
    Source,
    Stated,
    Subject,
    Unit,
    Written,
)
from dpnb.results.display import Displayed, to_page

SCHEMA_FILE = Path(__file__).with_name("report.schema.json")
"""The JSON schema of a statement, which is part of the package."""


class Report(Displayed, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The disclosure statement of a ledger, or of one analyst's reserved part of it.

    `session.report()` and ``python -m dpnb report`` write it.  Everything in it but `written` follows from the rows of
    the ledger, so ``python -m dpnb verify`` can check it.

    Parameters
    ----------
    kind, format : str and int
        What this is, and the number of its format.
    written : Written
        When it was written, and by which version of dpnb.
    subject : Subject
        What it is about.
    notice : str or None
        A warning that answers are not real or not private, or that there is no budget.
    stated : Stated or None
        What the curator states: title, purpose, legal basis, ..., and since when.
    sections : tuple of Section
        The statement in sentences.
    unit : Unit
        Who is protected, and which tables are neighbours.
    guarantee : Guarantee
        What was promised.
    filter : ReportedFilter
        How it is enforced, and how much was charged.
    division : Division
        How the budget is divided among analysts.
    readings : Readings
        What has been lost so far.
    releases : tuple of ReportedRelease
        Every request that was charged.
    mechanisms : tuple of ReportedMechanism
        The interactive mechanisms.
    acts : tuple of ReportedAct
        The requests for budget, and the curator's decisions about it.
    tables : tuple of ReportedTable
        The declared columns and limits.
    table_versions : tuple of str
        The versions of the table that were queried.
    versions : tuple of ReportedVersion
        The same with the times of their requests, and with the columns of those that had others.
    methods_paragraph : str
        A paragraph for the methods section of a paper.
    registry_entry : str
        An entry for the public registry of deployments, in YAML, which the curator completes.
    source : Source
        The rows from which it was computed.

    Examples
    --------
    >>> answer = df["age"].mean().release(mu=0.1)
    >>> report = session.report()
    >>> report.guarantee.short
    '(2, 1e-06)-DP, enforced as 0.4463-GDP'
    >>> [(one.query, one.loss) for one in report.releases]
    [('mean of age', 'mu 0.1')]
    """

    kind: Annotated[Literal["dpnb disclosure statement"], Meta(description="What this is.")]
    format: Annotated[Literal[2], Meta(description="Number of the format.")]
    written: Written
    subject: Subject
    notice: Annotated[str | None, Meta(description="A warning about all answers; null for none.")]
    stated: Annotated[Stated | None, Meta(description="What the curator states in own words; null for nothing.")]
    sections: Annotated[tuple[Section, ...], Meta(description="The statement in sentences.")]
    unit: Unit
    guarantee: Guarantee
    filter: ReportedFilter
    division: Division
    readings: Readings
    releases: Annotated[tuple[ReportedRelease, ...], Meta(description="Every request that was charged, oldest first.")]
    mechanisms: Annotated[tuple[ReportedMechanism, ...], Meta(description="The interactive mechanisms.")]
    acts: Annotated[tuple[ReportedAct, ...], Meta(description="Requests and decisions about the budget.")]
    tables: Annotated[tuple[ReportedTable, ...], Meta(description="The declared tables, by name.")]
    table_versions: Annotated[tuple[str, ...], Meta(description="The versions of the table that were queried.")]
    versions: Annotated[tuple[ReportedVersion, ...], Meta(description="When they were queried, and their columns.")]
    methods_paragraph: Annotated[str, Meta(description="A paragraph for the methods section of a paper.")]
    registry_entry: Annotated[str, Meta(description="An entry for the registry of deployments, in YAML.")]
    source: Source

    def to_json(self) -> str:
        """The statement as JSON, as the schema on the page :doc:`/reference/report` describes it.

        Examples
        --------
        >>> import json
        >>> json.loads(session.report().to_json())["unit"]["words"]
        'one person (at most 2 rows)'
        """
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            JSON in UTF-8.

        Raises
        ------
        InvalidValueError
            If it is not a disclosure statement of this version of the format.

        Examples
        --------
        >>> report = session.report()
        >>> type(report).from_json(report.to_json()) == report
        True
        """
        try:
            json.loads(text, object_pairs_hook=_refuse_twice)
            return msgspec.json.decode(text, type=cls)
        except (ValueError, RecursionError, msgspec.MsgspecError, DpnbError) as error:
            problem = str(error)
        raise InvalidValueError(
            f"report: must be a disclosure statement of dpnb, format {FORMAT}, as to_json() writes it; {problem}; give "
            "the file as it was written"
        )

    def to_html(self) -> str:
        """The statement as one page of HTML that needs nothing else, and contains the JSON too.

        Examples
        --------
        >>> session.report().to_html()[:15]
        '<!DOCTYPE html>'
        """
        return to_page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statement to a file, replacing an earlier one.

        Parameters
        ----------
        path : str or path
            The file, whose name ends with ``.html`` or ``.json``.

        Raises
        ------
        InvalidValueError
            If the name ends otherwise; then nothing is written.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     session.report().save(Path(folder, "statement.html"))
        ...     [file.name for file in Path(folder).iterdir()]
        ['statement.html']
        """
        suffix = Path(path).suffix.lower()
        if suffix not in (".html", ".json"):
            raise InvalidValueError(
                f"path: must end with .html, to read and print, or .json, for programs; got {os.fspath(path)!r}"
            )
        text = self.to_html() if suffix == ".html" else self.to_json()
        Path(path).write_text(text, encoding="utf-8", newline="\n")


def report_schema() -> str:
    """The JSON schema of a statement, generated from the types; `SCHEMA_FILE` has it."""
    schema = msgspec.json.schema(Report)
    for one in schema["$defs"].values():  # of a docstring, the first paragraph
        one["description"] = " ".join(one["description"].split("\n\n")[0].split())
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": KIND, **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object with a key twice, which programs read differently."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found
