"""Tables and lists of facts, as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from html import escape
from types import MappingProxyType

from dpnb.render.page import FAINT
from dpnb.render.terms import term_html

NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
LEFT = "text-align:left"


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


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]], charts: Sequence[str] = ()) -> str:
    """A table of numbers.

    Parameters
    ----------
    head : sequence of str
    rows : sequence of sequence of str
        HTML of each cell.
    charts : sequence of str, optional
        HTML of one additional cell for each row.
    """
    heads = "".join(f'<th style="{NUMBER}">{escape(text)}</th>' for text in head) + ("<th></th>" if charts else "")
    body = ""
    for index, row in enumerate(rows):
        body += "<tr>" + "".join(f'<td style="{NUMBER}">{cell}</td>' for cell in row)
        body += (f"<td>{charts[index]}</td>" if charts else "") + "</tr>"
    return f'<table style="margin:4px 0"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def facts_text(facts: Sequence[tuple[str, str]], column: int, width: int = 0, indent: str = "") -> list[str]:
    """Lines of names and texts.

    Parameters
    ----------
    facts : sequence of (str, str)
    column : int
        The column at which the texts start.
    width : int, optional
        Width to which the texts are wrapped; not wrapped by default.
    indent : str
        Indentation of the names.
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
