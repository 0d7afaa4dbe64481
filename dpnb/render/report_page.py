"""A disclosure statement as one page of HTML: sentences first, then the figures, and the JSON as data.

All texts are escaped, and the page has no script.  The JSON is the content of a template, which no browser shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dpnb.accounting.exact import display_up
from dpnb.errors import printable
from dpnb.render.report_style import CSS, POLICY
from dpnb.results.display import to_page
from dpnb.results.report import Report
from dpnb.results.report_parts import ReportedPart, ReportedRelease, ReportedTable

DATA = "dpnb-statement"
"""Id of the element that contains the JSON."""

TITLE = "Disclosure statement"
PROMISES = "What is guaranteed"
"""The section whose first paragraph stands out."""

LIMITS = "What is not covered"
"""The section that is a list."""


@to_page.register
def report_page(report: Report) -> str:
    """The statement as a page."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{TITLE}: {_text(subject_of(report))}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>",
        f'<header>\n<h1>{TITLE}</h1>\n<p class="subject">{_text(subject_of(report))}</p>',
        f'<p class="notice" role="note">{_text(report.notice)}</p>' if report.notice else "",
        "</header>",
        *_sections(report),
        *_figures(report),
        *_texts(report),
        f"<footer>\n<p>{_text(_written(report))}</p>\n</footer>\n</main>",
        f'<template id="{DATA}">{escape(report.to_json())}</template>\n</body>\n</html>\n',
    ]
    return "\n".join(part for part in parts if part)


def subject_of(report: Report) -> str:
    """What a statement is about, in words."""
    if report.subject.analyst is None:
        return f"session {report.subject.session}"
    return f"session {report.subject.session}, the part of {report.subject.analyst}"


def _written(report: Report) -> str:
    written = report.written
    return f"Written {written.time[:10]} {written.time[11:16]} UTC by {written.program} {written.version}."


def _text(text: str) -> str:
    return escape(printable(text))


# --- sentences ------------------------------------------------------------------------------------------------------


def _sections(report: Report) -> Iterable[str]:
    for number, section in enumerate(report.sections, start=1):
        if section.title == LIMITS:
            yield _section(f"s{number}", section.title, f"<ul>\n{''.join(map(_item, section.paragraphs))}</ul>")
            continue
        strong = ' class="promise"' if section.title == PROMISES else ""
        first, *others = section.paragraphs or ("",)
        paragraphs = [f"<p{strong}>{_text(first)}</p>", *(f"<p>{_text(one)}</p>" for one in others)]
        yield _section(f"s{number}", section.title, *paragraphs)


def _item(text: str) -> str:
    """A list item whose first words stand out."""
    lead, _, rest = text.partition(". ")
    return f"<li><strong>{_text(lead)}.</strong> {_text(rest)}</li>\n" if rest else f"<li>{_text(text)}</li>\n"


def _section(name: str, title: str, *parts: str) -> str:
    inner = "\n".join(part for part in parts if part)
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{_text(title)}</h2>\n{inner}\n</section>'


# --- figures --------------------------------------------------------------------------------------------------------


def _figures(report: Report) -> Iterable[str]:
    tables = [part for table in report.tables for part in _declared(table)]
    yield _section("guarantee", "The guarantee in figures", _facts("Guarantee and filter", _guarantee(report)))
    yield _section("tables", "The declared table" if len(report.tables) == 1 else "The declared tables", *tables)
    if report.division.parts:
        yield _section("parts", "Parts of the budget", _parts(report.division.parts))
    yield _section("requests", "Charged requests", _requests(report))
    if report.mechanisms:
        yield _section("mechanisms", "Interactive mechanisms", _mechanisms(report))
    if report.acts:
        yield _section("acts", "Requests and decisions about the budget", _acts(report))


def _guarantee(report: Report) -> list[tuple[str, str]]:
    guarantee, filter_ = report.guarantee, report.filter
    facts = [
        ("Guarantee", guarantee.short),
        ("Fixed beforehand", "yes" if guarantee.fixed_beforehand else "no: there is no budget"),
        ("Privacy unit", report.unit.words),
        ("Neighbouring tables", f"{report.unit.relation} (unbounded)"),
        ("Epsilon, delta", _pair(guarantee.epsilon, guarantee.delta)),
        ("Mu of the filter", _number(guarantee.mu)),
        ("Reserve (pure epsilon)", _number(guarantee.pure_epsilon or None)),
        ("Delta for discoveries", _number(guarantee.discovery_delta or None)),
        ("Implied epsilon, delta", "" if guarantee.implied is None else _pair(*_implied(report))),
        ("Accounting", guarantee.accounting),
        ("Filter", f"{filter_.label}: {filter_.enforces}"),
        ("Theorem", filter_.theorem),
        ("Charged", filter_.spent),
        ("Share charged, left", "" if filter_.spent_share is None else f"{filter_.spent_share}, {filter_.left_share}"),
        ("Loss at any moment", report.readings.time_uniform or report.readings.paused or ""),
        ("Against a budget", report.readings.accumulator),
        ("Division", report.division.mode),
        ("Table versions", ", ".join(report.table_versions) or "none was queried"),
        ("Rows of the ledger", f"{report.source.rows:,}"),
        ("Hash of the last row", report.source.head),
    ]
    return [fact for fact in facts if fact[1]]


def _implied(report: Report) -> tuple[float | None, float | None]:
    implied = report.guarantee.implied
    return (None, None) if implied is None else (implied.epsilon, implied.delta)


def _pair(epsilon: float | None, delta: float | None) -> str:
    return "" if epsilon is None or delta is None else f"{_number(epsilon)}, {_number(delta)}"


def _number(number: float | None) -> str:
    """A number of a guarantee, rounded up."""
    return "" if number is None else display_up(number, 6)


def _declared(table: ReportedTable) -> list[str]:
    name = f" {table.name}" if table.name else ""
    rows = [(one.name, one.kind, one.values, one.outside, one.missing) for one in table.columns]
    head = ("Column", "Type", "Values", "Outside the bounds", "Counts as missing")
    unit = f"Table{name}: one unit is {table.unit}."
    return [f"<p>{_text(unit)}</p>", _table(f"Columns of the table{name}", head, rows)]


def _parts(parts: tuple[ReportedPart, ...]) -> str:
    rows = [
        (
            f"{one.level} {one.name}",
            one.project or "",
            one.ceiling or "",
            one.cap or "",
            one.spent,
            "revoked" if one.revoked else "in use",
        )
        for one in parts
    ]
    return _table("Parts", ("Part", "Project", "Ceiling", "Cap", "Charged", "State"), rows)


def _requests(report: Report) -> str:
    if not report.releases:
        return "<p>There are none.</p>"
    several = any(one.analyst for one in report.releases)
    answers = report.subject.answers
    head = ["Row", "Time (UTC)", "Request", "Loss", "Share of the budget"]
    head[2:2] = ["Analyst"] if several else []
    head += ["Error", "Answer"] if answers else []
    rows = [_request(one, several, answers) for one in report.releases]
    return _table("Requests, oldest first", head, rows, first="number", wide=head.index("Request"))


def _request(one: ReportedRelease, several: bool, answers: bool) -> list[str]:
    query = one.query if one.inside is None else f"{one.query} (inside {one.inside})"
    query += "" if one.status == "released" else f" ({one.status}: charged without an answer)"
    loss = one.loss
    if one.charged is not None:
        loss = one.charged if one.charged.startswith(one.loss) else f"{one.loss}; charged: {one.charged}"
    share = one.share or ("" if one.paid_by is None else f"paid by row {one.paid_by}")
    row = [str(one.row), one.time[:16].replace("T", " "), query, loss, share]
    row[2:2] = [one.analyst or ""] if several else []
    return [*row, one.error or "", one.answer or ""] if answers else row


def _mechanisms(report: Report) -> str:
    rows = [
        (
            str(one.row),
            one.kind,
            one.name if one.inside is None else f"{one.name} (inside {one.inside})",
            one.analyst or "",
            "open" if one.closed_by is None else f"closed by row {one.closed_by}",
        )
        for one in report.mechanisms
    ]
    return _table("Mechanisms", ("Row", "Kind", "Name", "Analyst", "State"), rows, first="number")


def _acts(report: Report) -> str:
    rows = [(str(one.row), one.time[:16].replace("T", " "), one.actor or "", one.words) for one in report.acts]
    return _table("Requests and decisions, oldest first", ("Row", "Time (UTC)", "By", "What"), rows, first="number")


# --- texts to copy --------------------------------------------------------------------------------------------------


def _texts(report: Report) -> Iterable[str]:
    yield _section("methods", "For the methods section of a paper", f"<p>{_text(report.methods_paragraph)}</p>")
    entry = "\n".join(map(_text, report.registry_entry.split("\n")))
    note = "<p>The curator completes it. It has no text that an analyst wrote.</p>"
    yield _section("registry", "For the registry of deployments", note, f"<pre>{entry}</pre>")


# --- elements -------------------------------------------------------------------------------------------------------


def _facts(caption: str, facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_text(text)}</td></tr>\n' for name, text in facts)
    return f'<table class="facts"><caption>{_text(caption)}</caption>\n<tbody>\n{rows}</tbody></table>'


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, first: str = "", wide: int = -1) -> str:
    """A table that scrolls where it is wider than the screen; the cells of its first column are headers."""
    of_first = f' class="{first}"' if first else ""
    heads = "".join(f'<th scope="col"{"" if index else of_first}>{_text(text)}</th>' for index, text in enumerate(head))
    body = ""
    for name, *cells in rows:
        texts = [_cell(text, is_wide=index == wide) for index, text in enumerate(cells, start=1)]
        body += f'<tr><th scope="row"{of_first}>{_text(name)}</th>{"".join(texts)}</tr>\n'
    return (
        f'<div class="scroll" role="region" aria-label="{_text(caption)}" tabindex="0"><table><caption>'
        f"{_text(caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def _cell(text: str, *, is_wide: bool) -> str:
    kind = ' class="wide"' if is_wide else ' class="short"' if len(text) <= SHORT else ""
    return f"<td{kind}>{_text(text)}</td>"


SHORT = 18
"""A cell of at most this many characters, such as a time or a loss, is not broken into lines."""
