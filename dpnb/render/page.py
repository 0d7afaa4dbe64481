"""Elements of all HTML outputs: styles, notices, terms, links to explanations, and timestamps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from dpnb._browser.glossary import TERMS
from dpnb.errors import DpnbError
from dpnb.results.display import to_html

# --- technical terms in HTML ------------------------------------------------------------------------------------------


TERM_STYLE = "text-decoration:underline dotted;text-underline-offset:2px;cursor:help"

_FIRST_WORD = re.compile(r"[a-z]+")


def term_html(text: str, term: str | None = None) -> str:
    """A text as HTML, with the sentence of its term.

    `term` is a key of `TERMS`, by default the first word of the text.  A text without such a term is only escaped.
    """
    first = _FIRST_WORD.match(text)
    sentence = TERMS.get(term or (first[0] if first else ""))
    if sentence is None:
        return escape(text)
    return explained_html(text, sentence)


def explained_html(text: str, sentence: str) -> str:
    """A text as HTML, underlined, with a sentence on hover and focus."""
    return f'<abbr tabindex="0" title="{escape(sentence)}" style="{TERM_STYLE}">{escape(text)}</abbr>'


# --- elements of all HTML outputs -------------------------------------------------------------------------------------


STYLE = (
    "font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:var(--jp-ui-font-size1,13px);line-height:1.4;"
    "color:var(--jp-ui-font-color1,inherit)"
)
FAINT = "color:var(--jp-ui-font-color2,#616161)"
LOUD = "font-weight:600;color:var(--jp-error-color0,#b71c1c)"
ACCENT = "var(--jp-brand-color1,#1976d2)"
CHART_WIDTH = 220


def with_notice(notice: str | None, lines: Iterable[str]) -> str:
    """Lines of text below a notice about the whole session, such as that of a rehearsal."""
    return "\n".join([*([notice] if notice else []), *lines])


to_html.register(DpnbError, lambda error: escape(str(error)))  # where a value could not be computed


def box_html(notice: str | None, title: str, *parts: str) -> str:
    """A value as HTML, below a notice about the whole session."""
    return f'<div style="{STYLE}">{notice_html(notice)}{title}{"".join(parts)}</div>'


def notice_html(notice: str | None) -> str:
    """A notice about the whole session."""
    return f'<div style="{LOUD}">{escape(notice)}</div>' if notice else ""


def title_html(words: str, status: str = "", exact: str = "") -> str:
    """A title, with the status of the value in a fainter colour; what it says in words, exactly, is shown on hover."""
    hover = f' title="{escape(exact)}"' if exact and exact != words else ""
    faint = f' <span style="{FAINT}">{escape(status)}</span>' if status else ""
    return f"<div><b{hover}>{escape(words)}</b>{faint}</div>"


def explanation_link(explanation: str, words: str = "Why?") -> str:
    """Link to an explanation by its id; the Lab extension opens it in the panel."""
    return f' <a href="#dpnb-explain-{explanation}">{words}</a>'


def as_of_now() -> str:
    """The current time, as a timestamp for static output."""
    return datetime.now(UTC).strftime("as of %Y-%m-%d %H:%M:%S UTC")


def with_timestamp(html: str) -> str:
    """HTML followed by the current time."""
    return f'{html}<div style="{STYLE};{FAINT}">{as_of_now()}</div>'


def text_or_error(value: object) -> str:
    """What ``print`` shows of an object that reads the ledger for it; its repr and the error where that fails."""
    try:
        return str(value)
    except DpnbError as error:
        return f"{value!r}\n{error}"
