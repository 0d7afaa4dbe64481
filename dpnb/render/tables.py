"""Tables and lists of facts, as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from html import escape
from types import MappingProxyType

from dpnb._protocol.glossary import NOISE_INTERVAL
from dpnb.render.page import FAINT
from dpnb.render.terms import term_html

NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
LEFT = "text-align:left"
PADDING = "padding:2px 12px 2px 0"


def table_text(rows: Sequence[Sequence[str]], *, left: Collection[int] = (), indent: str = "") -> list[str]:
    """Lines with aligned columns: to the right, except the columns whose indices are in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        texts = [
            text.ljust(width) if index in left else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(indent + "  ".join(texts).rstrip())
    return lines


def table_markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A table in GitHub's Markdown: the first `left` columns to the left, the others to the right."""
    escaped = [[_markdown(cell) for cell in row] for row in (head, *rows)]
    rule = [":---" if index < left else "---:" for index in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (escaped[0], rule, *escaped[1:]))


def _markdown(cell: str) -> str:
    """A cell as plain text: without line breaks, and with the characters escaped that Markdown or HTML interprets."""
    return "".join(f"\\{char}" if char in "\\|`*_<>[]" else " " if char in "\r\n" else char for char in cell)


def _head_html(text: str) -> str:
    """The head of a column; what a noise interval covers is explained on hover and focus."""
    return term_html(text, NOISE_INTERVAL) if text.endswith(NOISE_INTERVAL) else escape(text)


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]], charts: Sequence[str] = (), *, left: int = 0) -> str:
    """A table of numbers, from HTML of each cell, and of one additional cell for each row in `charts`.

    The first `left` columns are labels, which are aligned to the left.
    """
    styles = [f"{LEFT if index < left else NUMBER};{PADDING}" for index in range(len(head))]
    heads = "".join(f'<th style="{style}">{_head_html(text)}</th>' for style, text in zip(styles, head, strict=True))
    heads += "<th></th>" if charts else ""
    body = ""
    for index, row in enumerate(rows):
        body += "<tr>" + "".join(f'<td style="{style}">{cell}</td>' for style, cell in zip(styles, row, strict=True))
        body += (f"<td>{charts[index]}</td>" if charts else "") + "</tr>"
    return f'<table style="margin:4px 0"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def facts_text(facts: Sequence[tuple[str, str]], column: int, width: int = 0, indent: str = "") -> list[str]:
    """Lines of names and texts.

    The texts start at `column` and are wrapped to `width`, or not if it is 0; the names are indented by `indent`.
    """
    lines = []
    for name, text in facts:
        first, *rest = (textwrap.wrap(text, width, break_long_words=False) if width else [text]) or [""]
        lines += [f"{f'{indent}{name}:':<{column - 1}} {first}", *(" " * column + part for part in rest)]
    return lines


def facts_html(
    facts: Sequence[tuple[str, str]],
    links: Mapping[str, str] = MappingProxyType({}),
    html: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Names and texts as a table; `links` are appended to the texts of some names, `html` replaces some texts."""
    rows = "".join(
        f'<tr><td style="{LEFT};{FAINT};white-space:nowrap;vertical-align:top">{term_html(name)}</td>'
        f'<td style="{LEFT};font-variant-numeric:tabular-nums">{html.get(name) or escape(text)}{links.get(name, "")}'
        "</td></tr>"
        for name, text in facts
    )
    return f'<table style="margin:4px 0"><tbody>{rows}</tbody></table>'
