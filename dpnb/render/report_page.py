"""A disclosure statement as one page of HTML, and in a few lines for a terminal or a notebook.

The page has sentences first, then the figures, and the JSON as data.  All texts are escaped, and the page has no
script.  The JSON is the content of a template, which no browser shows.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from html import escape, unescape

from dpnb.accounting.exact import display_up
from dpnb.errors import printable
from dpnb.render.tables import WIDTH, Shown, facts_part, shown_as
from dpnb.results.disclosure.parts import ReportedPart, ReportedRelease, ReportedTable
from dpnb.results.disclosure.report import Report
from dpnb.results.display import to_page

# --- the style sheet of a disclosure statement as a page --------------------------------------------------------------


CSS = """
:root { color-scheme: light dark; --text: #1b1b1b; --faint: #555; --line: #c8c8c8; --paper: #fff; --soft: #f4f5f7;
  --accent: #0b57a4; --alarm: #a31515; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --faint: #b4b4b4; --line: #4a4a4a; --paper: #16181b;
  --soft: #212429; --accent: #8ab8f0; --alarm: #ff9d94; } }
* { box-sizing: border-box; }
html { background: var(--paper); }
body { margin: 0; background: var(--paper); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 46rem; }
.subject { font-size: 1.1rem; color: var(--faint); }
.notice { border: 2px solid var(--alarm); color: var(--alarm); padding: .6rem .9rem; font-weight: 600; }
.promise { border-left: 4px solid var(--accent); padding: .25rem 0 .25rem 1rem; font-size: 1.1rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
.scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { color: var(--faint); font-weight: 600; overflow-wrap: normal; }
.facts th { width: 13rem; font-weight: 600; }
.scroll table { min-width: 44rem; }
ul { margin: .5rem 0; padding-left: 1.25rem; max-width: 46rem; } li { margin: .3rem 0; }
.number { text-align: right; white-space: nowrap; width: 3rem; }
.short { white-space: nowrap; }
.wide { min-width: 14rem; }
pre { background: var(--soft); border: 1px solid var(--line); padding: .75rem; font-size: .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
code { font-size: .875em; overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; padding-top: .75rem; border-top: 1px solid var(--line); color: var(--faint);
  font-size: .875rem; }
@media (max-width: 40rem) { main { padding: 1.25rem 1rem 3rem; } .facts th { width: 8.5rem; } }
@page { size: A4; margin: 18mm 16mm 20mm; @bottom-right { content: counter(page) " / " counter(pages); } }
@media print { :root { color-scheme: light; --text: #000; --faint: #333; --line: #999; --paper: #fff; --soft: #fff;
    --accent: #000; --alarm: #000; }
  body { font-size: 10.5pt; line-height: 1.4; } main { max-width: none; padding: 0; }
  h1 { font-size: 18pt; } h2 { font-size: 13pt; } p { max-width: none; orphans: 3; widows: 3; }
  .promise, .subject { font-size: 11pt; } table { font-size: 8.5pt; } pre { font-size: 8pt; border-width: .5pt; }
  h2, caption, thead { break-after: avoid; } tr, .notice, .promise { break-inside: avoid; }
  thead { display: table-header-group; } .scroll { overflow: visible; } .scroll table, .wide { min-width: 0; }
  ul { max-width: none; } }
"""

POLICY = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    + "'; base-uri 'none'; form-action 'none'"
)
"""The page loads nothing and runs nothing; only this style sheet applies."""


# --- a disclosure statement as one page of HTML -----------------------------------------------------------------------


DATA = "dpnb-statement"
"""Id of the element that contains the JSON."""

TITLE = "Disclosure statement"
PROMISES = "What is guaranteed"
"""The section whose first paragraph stands out."""

STATED = "What the curator states"
"""The section that is a table of facts."""

LIMITS = "What is not covered"
"""The section that is a list."""

SHORT = 18
"""A cell of at most this many characters, such as a time or a loss, is not broken into lines."""


@to_page.register
def report_page(report: Report) -> str:
    """The statement as a page."""
    written = report.written
    by = f"Written {written.time[:10]} {written.time[11:16]} UTC by {written.program} {written.version}."
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
        f"<footer>\n<p>{_text(by)}</p>\n</footer>\n</main>",
        f'<template id="{DATA}">{escape(report.to_json())}</template>\n</body>\n</html>\n',
    ]
    return "\n".join(part for part in parts if part)


def subject_of(report: Report) -> str:
    """What a statement is about, in words."""
    title = None if report.stated is None else report.stated.text.title
    part = "" if report.subject.analyst is None else f", the part of {report.subject.analyst}"
    return f"{'' if title is None else f'{title}: '}session {report.subject.session}{part}"


def _text(text: str) -> str:
    return escape(printable(text))


# --- sentences ------------------------------------------------------------------------------------------------------


def _sections(report: Report) -> Iterable[str]:
    for number, section in enumerate(report.sections, start=1):
        if report.stated is not None and section.title == STATED:
            *named, since = section.paragraphs
            facts = [(name, text) for name, _, text in (one.partition(": ") for one in named)]
            yield _section(
                f"s{number}", section.title, _facts("In the curator's words", facts), f"<p>{_text(since)}</p>"
            )
            continue
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
    tables = [part for table in report.tables for part in _declared(table)] + _versions(report)
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
    guarantee, filter_, implied = report.guarantee, report.filter, report.guarantee.implied
    facts = [
        ("Guarantee", guarantee.short),
        ("Fixed beforehand", "yes" if guarantee.fixed_beforehand else "no: there is no budget"),
        ("Privacy unit", report.unit.words),
        ("Neighbouring tables", f"{report.unit.relation} (unbounded)"),
        ("Epsilon, delta", _pair(guarantee.epsilon, guarantee.delta)),
        ("Mu of the filter", _number(guarantee.mu)),
        ("Reserve (pure epsilon)", _number(guarantee.pure_epsilon or None)),
        ("Delta for discoveries", _number(guarantee.discovery_delta or None)),
        ("Implied epsilon, delta", "" if implied is None else _pair(implied.epsilon, implied.delta)),
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


def _pair(epsilon: float | None, delta: float | None) -> str:
    return "" if epsilon is None or delta is None else f"{_number(epsilon)}, {_number(delta)}"


def _number(number: float | None) -> str:
    """A number of a guarantee, rounded up."""
    return "" if number is None else display_up(number, 6)


def _versions(report: Report) -> list[str]:
    """The versions of the table, if there are several, and the columns of those that had others."""
    if len(report.versions) <= 1 and all(one.tables is None for one in report.versions):
        return []
    rows = [
        (
            one.version,
            f"{one.requests:,}",
            one.first[:16].replace("T", " "),
            one.last[:16].replace("T", " "),
            "as above" if one.tables is None else "below",
        )
        for one in report.versions
    ]
    others = [
        part
        for one in report.versions
        for table in one.tables or ()
        for part in _declared(table, f", version {one.version}")
    ]
    return [_table("Versions", ("Version", "Requests", "First (UTC)", "Last (UTC)", "Columns"), rows), *others]


def _declared(table: ReportedTable, version: str = "") -> list[str]:
    name = f"{f' {table.name}' if table.name else ''}{version}"
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
        body += f'<tr><th scope="row"{of_first}>{_text(name)}</th>'
        for index, text in enumerate(cells, start=1):
            kind = ' class="wide"' if index == wide else ' class="short"' if len(text) <= SHORT else ""
            body += f"<td{kind}>{_text(text)}</td>"
        body += "</tr>\n"
    return (
        f'<div class="scroll" role="region" aria-label="{_text(caption)}" tabindex="0"><table><caption>'
        f"{_text(caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


# --- a disclosure statement in a few lines ----------------------------------------------------------------------------


COLUMN = 17
SAVE = ".save('statement.html') writes it as a page to read and print, .save('statement.json') for programs"


@shown_as(Report)
def _report(report: Report) -> Shown:
    n, rows = len(report.releases), report.source.rows
    charged = report.filter.spent if report.filter.spent_share is None else f"{report.filter.spent_share} of the budget"
    short = [
        ("guarantee", report.guarantee.words),
        ("released", f"{n:,} charged request{'s' if n != 1 else ''}; {charged} charged"),
        ("computed from", f"{rows:,} row{'s' if rows != 1 else ''} of the ledger; hash {report.source.head[:16]}"),
        ("to hand over", SAVE),
    ]
    parts = [facts_part([(name, printable(text)) for name, text in short], COLUMN, WIDTH)]
    return Shown(report.notice, printable(f"{TITLE}: {subject_of(report)}"), "", parts)


def data_in(page: str) -> list[str]:
    """The JSON of each statement in a page; where it is not as it was written, the page differs from that of it."""
    return [unescape(found) for found in re.findall(rf'<template id="{DATA}">(.*?)</template>', page, re.DOTALL)]
