"""A setting of the database makes different texts equal.

Kind: values
Fault: A collation that ignores case decides what GROUP BY, comparisons and joins take for one text, and can be set
for a connection at any time. Two persons whose names differ in case then share one limit, so adding one replaces the
rows of the other; and a macro can replace a function that the query calls.
Reported: duckdb/duckdb#3821; duckdb/duckdb#8413 (both of GROUP BY under such a setting, without privacy)
dpnb: Units are told apart by their bytes, functions are named with their catalogue, and settings are looked at before
each charge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, Floats, session

duckdb = pytest.importorskip("duckdb")

NAMES = [f"person{number}" for number in range(20)]
OTHERS = pd.DataFrame({"name": NAMES, "x": [-10.0] * 20})
CLAIM = 10
SETTINGS = {
    "collation": "SET default_collation='NOCASE'",
    "macro encode": "CREATE MACRO encode(x) AS lower(x)::BLOB",
    "macro decode": "CREATE MACRO decode(x) AS lower(x::VARCHAR)",
}
Total = Callable[[Any, str], float]
"""From a table and the name of a setting to the sum of x, with one row for each person."""


def attack(total: Total, setting: str) -> list[str]:
    """Names in other letters whose person changes the sum by more than the claim."""
    connections: list[Any] = []

    def of(rows: pd.DataFrame) -> float:
        connections.append(duckdb.connect())
        connections[-1].from_df(rows).create("people")
        return total(connections[-1], setting)

    usual, found = of(OTHERS), []
    for name in ("PERSON3", "Person7", "PERSON19"):
        rows = pd.concat([pd.DataFrame({"name": [name], "x": [10.0]}), OTHERS], ignore_index=True)
        if not abs(of(rows) - usual) <= CLAIM * (1 + EXACT):
            found.append(name)
    return found


def released(connection: Any, setting: str) -> float:
    """The setting comes after the session; a query that is refused then, before its charge, tells nothing."""
    schema = {"x": dpnb.Bounded(-CLAIM, CLAIM)}
    made = session(connection.table("people"), schema, privacy_unit="name", max_rows_per_unit=1)
    connection.execute(SETTINGS[setting])
    try:
        return float(made.frame["x"].sum().release(mu=1).estimate)
    except dpnb.errors.DpnbError:
        assert made.spent.mu == 0
        return 0.0


def first_row_of_each_name(connection: Any, setting: str) -> float:
    connection.execute(SETTINGS[setting])
    rows = connection.execute("SELECT first(x) AS x FROM people GROUP BY name").df()["x"]
    found: Floats = rows.to_numpy(float)
    return float(found.sum())


@pytest.mark.parametrize("setting", SETTINGS)
def test_dpnb_resists(setting: str) -> None:
    assert attack(released, setting) == []


def test_the_control_is_caught() -> None:
    assert attack(first_row_of_each_name, "collation")
