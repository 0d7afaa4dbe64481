"""Relations of DuckDB."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from contracts.engines import SortingEngineContract
from dpnb.query.engine.native import DuckDB

duckdb = pytest.importorskip("duckdb")


class TestDuckDB(SortingEngineContract):
    engine = DuckDB
    every_unit = False
    connection = duckdb.connect()

    def native(self, table: pd.DataFrame) -> Any:
        name = f"table_{id(table)}"
        self.connection.register("given", table)
        self.connection.execute(f"create or replace table {name} as select * from given")
        return self.connection.table(name)
