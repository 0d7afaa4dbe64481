"""The disclosure statement of a ledger that no session has open: of the whole ledger, or of one analyst's part."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Literal

from dpnb.errors import InvalidValueError
from dpnb.ledger import Ledger
from dpnb.results.report import Report
from dpnb.session.disclosure.building import build, part_of, rows_for, written_now
from dpnb.session.disclosure.division import WHOLE, StatementScope

Format = Literal["html", "json"]


def report_of(path: str, analyst: str | None = None, *, answers: bool = False) -> Report:
    """The disclosure statement of a ledger, which is only read.

    For an analyst for whom a part of the budget is reserved, it is the statement that the session of this analyst
    gives: it is computed from the analyst's own rows and says nothing of the others.
    """
    with closing(Ledger.read_only_copy(path)) as ledger:
        if analyst is not None and part_of(ledger, analyst) is None:
            raise InvalidValueError(
                f"--analyst: must be an analyst for whom a part of the budget is reserved; got {analyst!r}; leave it "
                "out for the statement of the whole ledger, which is the only one in pooled mode or without parts"
            )
        scope = WHOLE if analyst is None else StatementScope(is_copy=True, analyst=analyst)
        with rows_for(ledger, scope) as rows:
            if rows is None:  # never: all rows that there are
                raise InvalidValueError(f"ledger {path!r}: has no such rows")
            return build(rows, scope, written_now(), answers=answers)


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
    try:
        Path(output).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InvalidValueError(f"--output: must be a file that can be written; got {output!r} ({error})") from None
    n = len(report.releases)
    return f"{output}: {n:,} charged request{'s' if n != 1 else ''}; {report.guarantee.short}", 0
