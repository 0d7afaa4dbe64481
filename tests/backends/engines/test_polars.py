"""Lazy frames of polars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from contracts.engines import QUESTIONS, SCHEMA, TABLE, UNITS, SortingEngineContract, compiled, same
from dpnb._backends import MemoryBackend, opened
from dpnb._backends.lazy.engines import Polars
from dpnb.errors import SchemaError

pl = pytest.importorskip("polars")


class TestPolars(SortingEngineContract):
    engine = Polars

    def native(self, table: pd.DataFrame) -> Any:
        return pl.from_pandas(table).lazy()


def test_a_division_by_a_reciprocal_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Polars, "divided", lambda engine, column, by: column / by)
    tables = {"": TABLE}, {"": SCHEMA}, {"": UNITS["row"]}
    here, there = MemoryBackend.read(*tables), opened({"": pl.from_pandas(TABLE).lazy()}, *tables[1:])
    for name in ("variance", "whole quotient of multiples"):
        for query in compiled(QUESTIONS[name], UNITS["row"]):
            with pytest.raises(AssertionError):
                same(query, here, there)


def test_a_type_that_lists_its_values_is_refused_without_them(tmp_path: Path) -> None:
    table = pl.LazyFrame({"x": pl.Series(["seen", "rare"], dtype=pl.Enum(["seen", "rare"]))})
    with pytest.raises(SchemaError, match="column 'x'") as refused:
        dpnb.Session(
            table, name="e", budget=dpnb.Budget.gdp(1), schema={"x": dpnb.Bounded(0, 1)}, ledger=tmp_path / "e.dpnb"
        )
    assert "seen" not in str(refused.value)
    assert "rare" not in str(refused.value)
