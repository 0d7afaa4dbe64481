"""Relations of DuckDB."""

from __future__ import annotations

from typing import Any

import narwhals
import numpy as np
import pandas as pd
import pytest

import dpnb
from contracts.engines import SortingEngineContract
from dpnb._backends import evaluation
from dpnb._backends.lazy.engines import DuckDB
from dpnb._plan.expressions.letters import changed_case

duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.slow  # polars answers the same questions in a quarter of the time


class TestDuckDB(SortingEngineContract):
    engine = DuckDB
    every_unit = False
    every_window = 2
    connection = duckdb.connect()

    every_zoned = 8

    def native(self, table: pd.DataFrame) -> Any:
        name = f"table_{id(table)}"
        self.connection.register("given", table)
        self.connection.execute(f"create or replace table {name} as select * from given")
        return self.connection.table(name)


def near_the_end(native: Any) -> int:
    """The sum of a logarithm whose argument is above 0 by its bounds, for rows at the end of them.

    Python rounds 1.115 to 1.11, and arithmetic of doubles to 1.12.
    """
    table = native(pd.DataFrame({"x": [0.5, 1.115]}))
    bounds = {"x": dpnb.Bounded(0, 1.115)}
    session = dpnb.Session(table, name="near", budget=dpnb.Budget.gdp(1), schema=bounds, ledger=":memory:")
    asked = np.log1p(0.115 - session.frame["x"].round(2)).sum()
    return int(session._core.tables.opened.sums(session._core.tables.compile(asked.plan))[0])


def test_no_value_leaves_its_bounds_by_a_rounding() -> None:
    assert abs(near_the_end(duckdb.from_df) - near_the_end(lambda table: table)) <= 2


def test_without_its_bounds_a_value_would_count_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "is_rounded", lambda node: False)
    assert abs(near_the_end(duckdb.from_df) - near_the_end(lambda table: table)) > 2


@pytest.mark.parametrize("case", ["lower", "upper"])
def test_each_character_changes_its_case_as_in_memory(case: Any) -> None:
    """DuckDB's own functions are used for texts whose characters all libraries change alike."""
    texts = [*map(chr, range(0x3000)), "a\0B\nÄ", "Straße", "İstanbul", "ΣΑΣ", "x" * 100_000]
    frame = pd.DataFrame({"t": texts})
    changed = DuckDB().with_case(narwhals.from_native(duckdb.from_df(frame)), "t", "changed", case).to_native()
    assert dict(changed.fetchall()) == {text: changed_case(text, case) for text in texts}


def test_a_connection_that_calls_different_texts_equal_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("create table visits as select 'a' as who, 1.0 as x")
    how = {
        "privacy_unit": "who",
        "max_rows_per_unit": 1,
        "budget": dpnb.Budget(epsilon=1, delta=1e-6),
        "schema": {"x": dpnb.Bounded(0, 2)},
    }
    dpnb.Session(connection.table("visits"), name="exact", ledger=":memory:", **how)
    connection.execute("set default_collation = 'nocase'")
    with pytest.raises(dpnb.errors.SchemaError, match="'nocase'"):
        dpnb.Session(connection.table("visits"), name="nocase", ledger=":memory:", **how)
