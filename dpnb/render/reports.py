"""A disclosure statement in a few lines, for a terminal and for a notebook."""

from __future__ import annotations

from dpnb.errors import printable
from dpnb.render.page import box_html, title_html, with_notice
from dpnb.render.report_page import TITLE, subject_of
from dpnb.render.tables import facts_html, facts_text
from dpnb.results.display import to_html, to_text
from dpnb.results.report import Report

COLUMN, WIDTH = 17, 90
SAVE = ".save('statement.html') writes it as a page to read and print, .save('statement.json') for programs"


@to_text.register
def report_text(report: Report) -> str:
    """A statement for a terminal."""
    facts = [(name, printable(text)) for name, text in _facts(report)]
    return with_notice(report.notice, [printable(_title(report)), *facts_text(facts, COLUMN, WIDTH, "  ")])


@to_html.register
def report_html(report: Report) -> str:
    """A statement for a notebook."""
    facts = [(name, printable(text)) for name, text in _facts(report)]
    return box_html(report.notice, title_html(printable(_title(report))), facts_html(facts))


def _title(report: Report) -> str:
    return f"{TITLE}: {subject_of(report)}"


def _facts(report: Report) -> list[tuple[str, str]]:
    n, rows = len(report.releases), report.source.rows
    charged = report.filter.spent if report.filter.spent_share is None else f"{report.filter.spent_share} of the budget"
    return [
        ("guarantee", report.guarantee.words),
        ("released", f"{n:,} charged request{'s' if n != 1 else ''}; {charged} charged"),
        ("computed from", f"{rows:,} row{'s' if rows != 1 else ''} of the ledger; hash {report.source.head[:16]}"),
        ("to hand over", SAVE),
    ]
