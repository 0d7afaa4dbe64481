"""Lazy frames of polars."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from contracts.engines import EngineContract
from dpnb.query.engine.native import Polars

pl = pytest.importorskip("polars")


class TestPolars(EngineContract):
    engine = Polars

    def native(self, table: pd.DataFrame) -> Any:
        return pl.from_pandas(table).lazy()
