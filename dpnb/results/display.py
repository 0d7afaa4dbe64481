"""How results are shown: generic functions that the layers above implement for each class.

Values do not import what draws them: `dpnb.render` registers their texts and HTML here, and `dpnb` the pictures that
need plotly.
"""

from __future__ import annotations

from functools import singledispatch
from html import escape
from typing import Any

from dpnb.copying import safe_repr
from dpnb.errors import RequestError

MISSING = 'plot: pictures need plotly, which is not installed here; run: pip install "dpnb[lab]"'


@singledispatch
def to_text(value: object) -> str:
    """A value for a terminal."""
    return object.__repr__(value)


@singledispatch
def to_html(value: object) -> str:
    """A value for a notebook; true without a kernel."""
    return f"<pre>{escape(to_text(value))}</pre>"


@singledispatch
def to_picture(value: object, history: bool) -> Any:
    """The plotly figure of an answer, or of its history.

    Raises
    ------
    RequestError
        plotly is missing, or the value has no history.
    """
    raise RequestError(MISSING)


class Displayed:
    """Base of values whose text and HTML are made by `to_text` and `to_html`."""

    __slots__ = ()

    @safe_repr
    def __repr__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return to_html(self)
