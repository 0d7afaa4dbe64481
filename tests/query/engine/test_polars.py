"""Lazy frames of polars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from contracts.engines import SortingEngineContract
from dpnb.errors import SchemaError
from dpnb.query.engine.native import Polars

pl = pytest.importorskip("polars")


class TestPolars(SortingEngineContract):
    engine = Polars

    def native(self, table: pd.DataFrame) -> Any:
        return pl.from_pandas(table).lazy()


def test_a_type_that_lists_its_values_is_refused_without_them(tmp_path: Path) -> None:
    table = pl.LazyFrame({"x": pl.Series(["seen", "rare"], dtype=pl.Enum(["seen", "rare"]))})
    with pytest.raises(SchemaError, match="column 'x'") as refused:
        dpnb.Session(
            table, name="e", budget=dpnb.Budget.gdp(1), schema={"x": dpnb.Bounded(0, 1)}, ledger=tmp_path / "e.dpnb"
        )
    assert "seen" not in str(refused.value)
    assert "rare" not in str(refused.value)
