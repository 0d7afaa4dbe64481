"""What the tests of bad input share: a table full of markers, sessions on it, and what every refusal must be.

Every text and number of the table is a marker; a message that contains one has shown a row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import pandas as pd
import pytest

import dpnb
from dpnb.errors import DpnbError

MARKERS = ("87131", "87132", "87133", "sekret", "harbor", "u-5501", "u-5502", "1913", "zircon")

SCHEMA: dict[str, Any] = {
    "visits": dpnb.Bounded(0, 10),
    "income": dpnb.Bounded(-1000, 90000.5),
    "town": dpnb.Categories(["north", "south"]),
    "grade": dpnb.Categories([1, 2, 3]),
    "smoker": dpnb.Categories([True, False]),
    "born": dpnb.Dates("1950-01-01", "2000-12-31"),
    "seen": dpnb.Dates("2010-01-01T08:00", "2010-12-31"),
    "street": dpnb.Text(),
    "note": dpnb.Text(),
}

Ask = Callable[[Any], Any]
Case = tuple[Ask, str]
"""What is asked, and a pattern that the refusal has to match: the rule or remedy that this case is about."""


def make_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "person": ["u-5501", "u-5501", "u-5502", None],
            "visits": [87131, "sekret", None, math.inf],
            "income": [87132, 87133, 1, 2],
            "town": ["harbor", "north", "south", None],
            "grade": [1, 2, 3, 87131],
            "smoker": [True, None, "sekret", 87131],
            "born": pd.Series(["1913-08-07", "sekret", None, pd.Timestamp("1960-01-01")], dtype=object),
            "seen": pd.to_datetime(["1913-08-07", None, "2010-03-01", "2262-01-01"]),
            "street": ["zircon lane", "harbor 7", None, "sekret"],
            "note": [87131, "sekret", math.nan, "zircon"],
            "sekret": [1, 2, 3, 4],  # not in the schema; in a pivoted table a column's name is data
        }
    )


def make(table: Any = None, **changes: Any) -> dpnb.Session:
    """A session on the table, or on another one, with a ledger in memory."""
    arguments: dict[str, Any] = {
        "name": "clinic",
        "budget": dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7),
        "schema": SCHEMA,
        "privacy_unit": "person",
        "max_rows_per_unit": 2,
        "ledger": ":memory:",
    }
    return dpnb.Session(make_table() if table is None else table, **{**arguments, **changes})


T = TypeVar("T")
_forget: list[Callable[[], None]] = []


def kept(make_once: Callable[[], T]) -> Callable[[], T]:
    """Make something once for all tests of a module."""
    cached = cache(make_once)
    _forget.append(cached.cache_clear)
    return cached


def forget() -> None:
    """Let go of what was kept: a session that outlives its tests would show in those of the panel."""
    for clear in _forget:
        clear()


def assert_refused(ask: Callable[[], Any], says: str = "") -> None:
    """It is refused by an error of dpnb that says why, and that shows and carries nothing of a row."""
    with pytest.raises(DpnbError) as refused:
        ask()
    text = str(refused.value)
    assert not [marker for marker in MARKERS if marker in text]
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__
    assert re.search(r"[;:,]", text), "a message gives rule and remedy"
    assert re.search(says, text), text


def assert_refused_free(session: dpnb.Session, ask: Callable[[], Any], says: str = "") -> None:
    """It is refused, and nothing is charged."""
    spent, charges = session.spent, session.ledger.charges()
    assert_refused(ask, says)
    assert session.spent == spent
    assert session.ledger.charges() == charges
