"""The numbers of a regression by term, which are also found by the other names of a term.

A term has the name that statsmodels gives it.  Analysts also write the condition of an indicator, as in ``union == 1``,
a column with one term, ``intercept`` or ``const``.  Imports pandas, so it is imported when first used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import RequestError

_INDICATOR = re.compile(r"(?:C\()?(.*?)\)?\[T\.(.*)\]|(.*) == (.*)")


class TermSeries(pd.Series):
    """A series with the names of terms as its index; a `RequestError` names them where there is no such term."""

    @property
    def _constructor(self) -> Any:
        return pd.Series  # of what is computed from it

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(term_named(key, list(self.index)) if isinstance(key, str) else key)


def term_named(name: str, terms: Sequence[str]) -> str:
    """The term that a name means."""
    if name in terms:
        return name
    same = [term for term in terms if _plain(term) == _plain(name)]
    own = [term for term in terms if ":" not in term and _plain(term).partition(" == ")[0] == _plain(name)]
    found = same or own
    if len(found) == 1:
        return found[0]
    meant = f"; {name!r} has the terms {', '.join(map(repr, found))}" if found else did_you_mean(name, terms)
    raise RequestError(f"[{name!r}]: is not a term of the regression, which has {', '.join(map(repr, terms))}{meant}")


def _plain(name: str) -> str:
    """A name in one of the spellings of a term."""
    if name.lower() in ("intercept", "const"):
        return "intercept"
    return ":".join(map(_plain_factor, name.split(":")))


def _plain_factor(name: str) -> str:
    match = _INDICATOR.fullmatch(name)
    if match is None:
        return name.removeprefix("C(").removesuffix(")")
    column, value = match[1] or match[3], match[2] or match[4]
    return column if value == "True" else f"{column} == {value.strip(chr(39))}"
