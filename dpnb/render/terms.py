"""Technical terms in HTML: a dotted underline, and their sentence on hover and focus."""

from __future__ import annotations

import re
from html import escape

from dpnb._protocol.glossary import TERMS

STYLE = "text-decoration:underline dotted;text-underline-offset:2px;cursor:help"

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
    return f'<abbr tabindex="0" title="{escape(sentence)}" style="{STYLE}">{escape(text)}</abbr>'
