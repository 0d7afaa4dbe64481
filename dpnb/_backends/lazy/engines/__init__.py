"""The supported engines, listed in `ENGINES`, and that of tables of Ibis: one module for each, behind one base class.

Tables of Ibis are the relation of DuckDB, or have an engine on one of `DATABASES`, which are not in `ENGINES`: these
compute through SQL, on a connection of their own.  Offered are those whose answers are tested to be the same integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import narwhals as nw

from dpnb._backends.lazy.engines.duckdb import DuckDB
from dpnb._backends.lazy.engines.engine import Engine
from dpnb._backends.lazy.engines.polars import Polars
from dpnb._backends.lazy.engines.spark import Spark
from dpnb.errors import SchemaError

if TYPE_CHECKING:
    from dpnb._backends.lazy.engines.sql import SqlEngine

ENGINES: dict[nw.Implementation, Engine] = {
    nw.Implementation.POLARS: Polars(),
    nw.Implementation.DUCKDB: DuckDB(),
    nw.Implementation.PYSPARK: Spark(),
    nw.Implementation.PYSPARK_CONNECT: Spark(),
}

DATABASES = {"duckdb": "DuckDB", "postgres": "PostgreSQL", "sqlite": "SQLite"}
"""The databases of Ibis that are offered, as Ibis and their makers call them."""


def engine_of_ibis(tables: Mapping[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """The engine for tables of Ibis, which are all in one database, and the tables as it takes them."""
    try:
        backend, *others = {id(of): of for of in (table.get_backend() for table in tables.values())}.values()
    except Exception:  # noqa: BLE001  (the classes of its errors are not known until Ibis is imported)
        raise SchemaError("table: must be a table of a database, to which Ibis is connected") from None
    if others:
        raise SchemaError("tables: must all be of one connection of Ibis, to be joined; got several")
    if backend.name not in DATABASES:
        raise SchemaError(
            f"table: Ibis is offered on {', '.join(DATABASES.values())}; got {backend.name}, where a query may fail "
            "for some rows, or round otherwise; write the table to Parquet and pass that"
        )
    if backend.name == "duckdb":
        from dpnb._backends.lazy.engines.guarded_sql import refuse_failing  # imported when first used

        for table in tables.values():
            refuse_failing(table)
        return ENGINES[nw.Implementation.DUCKDB], {
            name: backend.con.sql(table.compile()) for name, table in tables.items()
        }
    engine: SqlEngine
    if backend.name == "postgres":
        from dpnb._backends.lazy.engines.postgresql import PostgreSQL  # imported when first used

        engine = PostgreSQL()
    else:
        from dpnb._backends.lazy.engines.sqlite import SQLite  # imported when first used

        engine = SQLite()
    for table in tables.values():
        engine.attach(table)
    return engine, dict(tables)
