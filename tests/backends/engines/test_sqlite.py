"""Tables of SQLite through Ibis."""

from __future__ import annotations

import sqlite3
import tempfile
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from contracts.engines import TypedEngineContract

ibis = pytest.importorskip("ibis")

from dpnb._backends.lazy.engines.sqlite import SQLite  # noqa: E402

TYPES = {"i": "INTEGER", "u": "INTEGER", "f": "REAL", "b": "BOOLEAN", "M": "TIMESTAMP", "O": "TEXT"}
_numbers = count()


def values(column: pd.Series) -> list[Any]:
    def value(one: Any) -> Any:
        return None if pd.isna(one) else one.isoformat() if hasattr(one, "isoformat") else one

    return [value(one) for one in column.astype(object)]


class TestSQLite(TypedEngineContract):
    engine = SQLite
    whole_logarithms = False
    modes = (None,)
    file: ClassVar[Path] = Path(tempfile.mkdtemp(dir="/tmp/ibis52")) / "tables.sqlite"

    def native(self, table: pd.DataFrame) -> Any:
        name = f"t{next(_numbers)}"
        columns = ", ".join(f'"{name}" {TYPES.get(table[name].dtype.kind, "TEXT")}' for name in table)
        with sqlite3.connect(self.file) as connection:
            connection.execute(f"create table {name} ({columns})")
            rows = zip(*(values(table[name]) for name in table), strict=True)
            connection.executemany(f"insert into {name} values ({', '.join('?' * len(table.columns))})", rows)
        connection.close()
        return ibis.sqlite.connect(self.file).table(name)
