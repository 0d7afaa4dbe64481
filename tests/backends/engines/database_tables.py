"""Tables of databases through Ibis, for tests, and their contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import psycopg
import pytest

import databases
import dpnb
from contracts.engines import SCHEMA, UNITS, Ask, TypedEngineContract, compiled

_numbers = count()

KINDS = {"i": "bigint", "u": "bigint", "f": "double precision", "b": "boolean", "M": "timestamp", "O": "text"}
"""The SQL types of pandas' ones."""


def kinds_of(table: pd.DataFrame) -> dict[str, str]:
    """The SQL type of each column."""
    return {
        name: "timestamptz" if isinstance(dtype, pd.DatetimeTZDtype) else KINDS.get(dtype.kind, "text")
        for name, dtype in table.dtypes.items()
    }


def rows_of(table: pd.DataFrame) -> Iterable[tuple[Any, ...]]:
    """The rows with None where a value is missing, except for NaN among numbers."""

    def values(column: pd.Series) -> list[Any]:
        if column.dtype.kind == "f":
            return column.tolist()
        return [None if pd.isna(value) else value for value in column.astype(object)]

    return zip(*(values(table[name]) for name in table), strict=True)


def _columns(kinds: dict[str, str]) -> str:
    return ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())


class PostgreSQLTables:
    """Tables of a server."""

    def __init__(self, server: databases.Server) -> None:
        address = server.url.replace("//", f"//{databases.READER}:{databases.PASSWORD}@")
        self.backend = ibis.connect(f"{address}/test")
        self._admin = psycopg.connect(
            host=server.client[server.client.index("-h") + 1],
            port=server.client[server.client.index("-p") + 1],
            user="admin",
            dbname="test",
            autocommit=True,
        )

    def table(self, kinds: dict[str, str], rows: Iterable[Sequence[Any]]) -> Any:
        """A new table with columns of these types."""
        name = f"t{next(_numbers)}"
        self.execute(f"create table {name} ({_columns(kinds)})")
        with self._admin.cursor() as cursor, cursor.copy(f"copy {name} from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        return self.backend.table(name)

    def execute(self, sql: str) -> None:
        """A statement of the administrator."""
        self._admin.execute(sql)

    def close(self) -> None:
        """Close the connections."""
        self.backend.disconnect()
        self._admin.close()


class SQLiteTables:
    """Tables of a file."""

    def __init__(self, file: Path) -> None:
        self._admin = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self.execute("pragma synchronous = off")
        self.execute("create table t (x integer)")
        self.backend = ibis.sqlite.connect(file)

    def table(self, kinds: dict[str, str], rows: Iterable[Sequence[Any]]) -> Any:
        """A new table with columns of these types."""
        name = f"t{next(_numbers)}"
        self.execute(f"create table {name} ({_columns(kinds)})")
        given = [[one.isoformat() if hasattr(one, "isoformat") else one for one in row] for row in rows]
        self.execute("begin")
        self._admin.executemany(f"insert into {name} values ({', '.join('?' * len(kinds))})", given)
        self.execute("commit")
        return self.backend.table(name)

    def execute(self, sql: str) -> None:
        """A statement."""
        self._admin.execute(sql)

    def close(self) -> None:
        """Close the connections."""
        self.backend.disconnect()
        self._admin.close()


class DatabaseContract(TypedEngineContract):
    """What must hold of every database, in fewer cases than elsewhere: each query takes long to plan."""

    asked = (
        *("mean", "by two", "units by category", "quantiles of wide bounds", "text is not", "category is", "or"),
        *("by given texts", "quotient", "power", "round to tens", "remainder of multiples", "quantiles by a number"),
        *("median date by group", "day of year", "cut from the left", "lookup", "found pairs"),
    )
    every_unit = False
    every_window = 24
    every_zoned = 25
    modes = (None,)
    whole_logarithms = False
    last = 5
    tables: Any

    def native(self, table: pd.DataFrame) -> Any:
        return self.tables.table(kinds_of(table), rows_of(table))

    @pytest.mark.parametrize(("asking", "step"), [("text", 24)])
    def test_values_within_a_unit_give_the_same_integers(
        self, asking: str, step: int, at_hand: dict[str, tuple[Any, Any]]
    ) -> None:
        super().test_values_within_a_unit_give_the_same_integers(asking, step, None, at_hand)

    @pytest.mark.parametrize("seed", [1])
    def test_random_plans_of_units_give_the_same_integers(self, seed: int, at_hand: dict[str, tuple[Any, Any]]) -> None:
        super().test_random_plans_of_units_give_the_same_integers(seed, at_hand)

    @pytest.mark.parametrize("zone", ["Europe/Berlin"])
    def test_dates_in_a_zone_are_those_of_pandas(self, zone: str) -> None:
        super().test_dates_in_a_zone_are_those_of_pandas(zone)

    def test_products_of_what_units_add_give_the_same_integers(self, at_hand: dict[str, tuple[Any, Any]]) -> None:
        """Left to the engines that are quicker: it has no operation of its own."""

    def test_a_number_that_rounding_would_move_out_of_the_integers_is_refused(
        self, at_hand: dict[str, tuple[Any, Any]]
    ) -> None:
        _, there = self.both(at_hand, "row")
        wide = compiled(lambda f: (f["x"] * 1e17).round(3).sum(), UNITS["row"])
        with pytest.raises(dpnb.errors.UnsupportedError, match="round"):
            there.refuse(wide[0])

    def test_adversarial_doubles_give_the_same_integers(self) -> None:
        """At halves, between two doubles, near zero, and none at all."""
        halves = np.arange(-3, 8) / 2
        beside = np.nextafter(halves, np.inf).tolist() + np.nextafter(halves, -np.inf).tolist()
        odd = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e-320, -1e-310, 2.0**-1022, 1e308, 0.1 + 0.2, 49 / 49, 1 / 3]
        table = pd.DataFrame({"x": [*halves, *beside, *odd, 100.0, 99.99999999999999]})
        asks: list[Ask] = [
            *(lambda f, d=d: f["x"].round(d).sum() for d in (-1, 0, 1, 3)),
            lambda f: (f["x"] / 3).sum(),
            lambda f: ((f["x"] - 50) / (f["x"] + 7)).sum(),
            lambda f: (f["x"] * 0.1 * f["x"]).quantile([0.1, 0.9]),
            lambda f: f[f["x"] * 3 == 0.9].count(),
            lambda f: f[f["x"] > 0.3].count(),
            lambda f: f["x"].isna().sum(),
        ]
        self.compare(asks, table, {"x": SCHEMA["x"]}, UNITS["row"])
