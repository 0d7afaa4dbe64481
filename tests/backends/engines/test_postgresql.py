"""Tables of PostgreSQL through Ibis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import databases
from contracts.engines import TypedEngineContract

ibis = pytest.importorskip("ibis")
psycopg = pytest.importorskip("psycopg")

from dpnb._backends.lazy.engines.postgresql import PostgreSQL  # noqa: E402

TYPES = {"i": "bigint", "u": "bigint", "f": "double precision", "b": "boolean", "M": "timestamp", "O": "text"}
_numbers = count()


def kind_of(column: pd.Series) -> str:
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return "timestamptz"
    return TYPES.get(column.dtype.kind, "text")


def loaded(connection: Any, table: pd.DataFrame) -> str:
    """The name of a new table with these rows."""
    name = f"t{__import__('os').getpid()}_{next(_numbers)}"
    with psycopg.connect(connection, autocommit=True) as opened, opened.cursor() as cursor:
        columns = ", ".join(f'"{name}" {kind_of(table[name])}' for name in table)
        cursor.execute(f"create table {name} ({columns})")
        with cursor.copy(f"copy {name} from stdin") as copy:
            for row in zip(*(values(table[name]) for name in table), strict=True):
                copy.write_row(row)
    return name


def values(column: pd.Series) -> list[Any]:
    if column.dtype.kind == "f":
        return column.tolist()
    return [None if pd.isna(value) else value for value in column.astype(object)]


class TestPostgreSQL(TypedEngineContract):
    engine = PostgreSQL
    whole_logarithms = False
    modes = (None,)
    url: ClassVar[str] = ""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def server(cls) -> Iterator[None]:
        cls.url = __import__("pathlib").Path("/tmp/ibis52/url").read_text().replace("//", "//dpnb_reader:kept-out-of-everything@") + "/test"
        yield

    def native(self, table: pd.DataFrame) -> Any:
        import re
        port = self.url.rsplit(":", 1)[1].split("/")[0]
        import glob
        folder = next(f.rsplit("/", 1)[0] for f in glob.glob(f"/tmp/dpnb-*/.s.PGSQL.{port}"))
        name = loaded(f"host={folder} port={port} user=admin dbname=test", table)
        return ibis.connect(self.url).table(name)
