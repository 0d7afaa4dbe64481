"""The disclosure statement of a ledger that no session has open, and its verification: it is computed again.

A page is compared as a whole too, so that nothing on it can differ from the data that it contains.  Rows that were
charged later are no difference.  Neither is an answer that was given later to a request that the statement lists as
charged: the hash of a row covers its charge, and not yet its answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb.curator.audit import AuditReplay
from dpnb.curator.redaction import redacted
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger import Ledger
from dpnb.render.report_page import data_in
from dpnb.results.disclosure.parts import ReportedRelease
from dpnb.results.disclosure.report import Report
from dpnb.session.disclosure.building import build, report_of, rows_for, write_output, written_now
from dpnb.session.disclosure.requests import StatementScope

Format = Literal["html", "json"]


def write_report(
    path: str, analyst: str | None, form: Format | None, output: str | None, *, answers: bool
) -> tuple[str, int]:
    """The command: what it prints, and its exit status."""
    suffix = "" if output is None else Path(output).suffix.lower().lstrip(".")
    if output is not None and form is None and suffix not in ("html", "json"):
        raise InvalidValueError(f"--output: must end with .html or .json, or give --format; got {output!r}")
    report = report_of(path, analyst, answers=answers)
    as_json = (form or suffix or "html") == "json"
    text = report.to_json() if as_json else report.to_html()
    if output is None:
        return text.removesuffix("\n"), 0
    write_output(output, text)
    n = len(report.releases)
    return f"{output}: {n:,} charged request{'s' if n != 1 else ''}; {report.guarantee.short}", 0


# --- verification of a statement --------------------------------------------------------------------------------------


REDACTED = "redacted"
"""Whose rows a statement of a redacted ledger is about."""

MAX_BYTES = 200_000_000
"""The largest statement that is read."""

MAX_NAMED = 20
"""Fields that the command names."""

SHOWN = 60
"""Characters of a value that it shows."""


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    rows: int  # number of rows that the statement is about
    differences: tuple[str, ...]  # fields that differ, each with both values
    notes: tuple[str, ...]  # what is no difference, but should be known

    @property
    def is_fine(self) -> bool:
        """Whether the statement is what the ledger says."""
        return not self.differences


def verify(report: str, ledger: str) -> Verification:
    """Verify a statement, JSON or HTML, against a ledger, which is only read; its chain of hashes is verified first."""
    text = _read(report)
    is_page = text.lstrip().startswith("<")
    stated = Report.from_json(_data_of(text) if is_page else text)
    with closing(Ledger.read_only_copy(ledger)) as whole:
        result = _compare_redacted(stated, whole) if stated.source.rows_of == REDACTED else compare(stated, whole)
    if is_page and stated.to_html() != text:
        other = "page: its text is not the one of the data in it"
        result = replace(result, differences=(*result.differences, other))
    return result


def _compare_redacted(stated: Report, ledger: Ledger) -> Verification:
    """Compare a statement of a redacted ledger with it, whose charges are audited too, or with the whole ledger."""
    if ledger.is_redacted:
        result, problems = compare(stated, ledger), AuditReplay(ledger).result().problems
        head = f"The redacted ledger has the head {ledger.head}: compare it with the one that the curator published."
        return Verification(
            result.rows, (*result.differences, *(f"audit: {one}" for one in problems)), (*result.notes, head)
        )
    copy = redacted(ledger)
    if copy is None:
        return Verification(stated.source.rows, ("source.rows_of: the ledger was never redacted",), ())
    with closing(copy):
        return compare(stated, copy)


def compare(stated: Report, whole: Ledger) -> Verification:
    """Compare a statement with the one that follows from a ledger."""
    source = stated.source
    scope = StatementScope(source.rows_of == "copy", stated.subject.analyst)
    if whole.is_redacted and source.rows_of != REDACTED:
        return Verification(source.rows, ("source.rows_of: a redacted ledger has another statement, of its own",), ())
    if scope.analyst is not None and not scope.is_copy:
        return Verification(source.rows, ("source.rows_of: is not that of a statement about one analyst",), ())
    with rows_for(whole, scope, stated) as rows:
        if rows is None:
            return Verification(source.rows, (f"source.rows: the ledger has no such {source.rows:,} rows",), ())
        computed = build(rows, scope, stated.written, answers=stated.subject.answers)
    with rows_for(whole, scope) as now:
        later = 0 if now is None else now.count - source.rows
    has_other_words = scope.is_copy and stated.stated != LedgerMetadata.from_dict(whole.metadata, whole.path).stated
    computed, answered = _as_then(stated, computed)
    return Verification(
        source.rows,
        tuple(_differences(msgspec.to_builtins(stated), msgspec.to_builtins(computed))),
        tuple(_notes(stated, later, answered, has_other_words=has_other_words)),
    )


def _as_then(stated: Report, computed: Report) -> tuple[Report, int]:
    """The computed statement before the answers that were given since, and how many these are."""
    pending = {one.row: one for one in stated.releases if one.status != "released"}
    answered = {
        one.row
        for one in computed.releases
        if one.row in pending and one.status not in ("reserved", pending[one.row].status)
    }
    if not answered:
        return computed, 0
    # A table of a batch has no estimate before all of the batch are answered.
    unknown = {one.row for one in stated.releases if one.kind == "release" and one.error is None}

    def then(one: ReportedRelease) -> ReportedRelease:
        if one.row in answered:
            return msgspec.structs.replace(one, status=pending[one.row].status, error=None, answer=None)
        return msgspec.structs.replace(one, error=None, answer=None) if one.row in unknown else one

    return msgspec.structs.replace(computed, releases=tuple(map(then, computed.releases))), len(answered)


def _notes(stated: Report, later: int, answered: int, *, has_other_words: bool) -> Iterator[str]:
    written, now = stated.written, written_now()
    if (written.program, written.version) != (now.program, now.version):
        yield (
            f"It states that {written.program} {written.version} wrote it; this is {now.program} {now.version}, whose "
            "words may differ."
        )
    yield f"When it was written ({written.time}), and by which version, does not follow from the ledger."
    if has_other_words:
        yield (
            "The curator's own words in the ledger are others: an analyst's copy has those of when it was opened, or "
            "none, which no row shows."
        )
    if later > 0:
        yield f"The ledger has {later:,} later row{'s' if later != 1 else ''}, which the statement is not about."
    if answered:
        yield f"{answered:,} request{'s' if answered != 1 else ''} without an answer then have one now, or failed."


# --- the file -------------------------------------------------------------------------------------------------------


def _read(path: str) -> str:
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise InvalidValueError(f"report: must have at most {MAX_BYTES:,} bytes; {path!r} has more")
        return Path(path).read_bytes().decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"report: must be a disclosure statement as .html or .json; {path!r} cannot be read: {error}"
        ) from None


def _data_of(page: str) -> str:
    """The JSON in a page."""
    found = data_in(page)
    if len(found) != 1:
        raise InvalidValueError(
            f"report: a page must have the data of one statement; got {len(found)}; give the file as it was written"
        )
    return found[0]


# --- the comparison -------------------------------------------------------------------------------------------------


def _differences(stated: Any, computed: Any, name: str = "") -> Iterator[str]:
    if isinstance(stated, dict) and isinstance(computed, dict):
        for key in [*stated, *(key for key in computed if key not in stated)]:
            inner = f"{name}.{key}" if name else key
            yield from _differences(stated.get(key), computed.get(key), inner)
    elif isinstance(stated, list | tuple) and isinstance(computed, list | tuple):
        if len(stated) != len(computed):
            yield f"{name}: the statement has {len(stated)}, the ledger gives {len(computed)}"
        for index, (one, other) in enumerate(zip(stated, computed, strict=False)):
            yield from _differences(one, other, f"{name}[{index}]")
    elif stated != computed or type(stated) is not type(computed):
        yield f"{name}: the statement has {_shown(stated)}, the ledger gives {_shown(computed)}"


def _shown(value: object) -> str:
    text = printable(repr(value))
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def verification_text(result: Verification) -> str:
    """The result as the command prints it."""
    more = len(result.differences) - MAX_NAMED
    rows = f"{result.rows:,} row{'s' if result.rows != 1 else ''}"
    lines = [f"Differs: {printable(one)}" for one in result.differences[:MAX_NAMED]]
    lines += [f"Differs: {more:,} more fields"] if more > 0 else []
    lines += [f"Note: {printable(one)}" for one in result.notes]
    if result.is_fine:
        return "\n".join([f"The statement is what {rows} of the ledger say.", *lines])
    return "\n".join([*lines, "The statement is not what the ledger says."])
