"""The tables of a session, wherever their rows are: in memory, in an engine, or on the workers of Dask.

``protocol``    the interface that a session uses: tables by name, their joins and parts, and the budgets of units
``evaluation``  evaluation of expressions for rows, as far as numpy and narwhals have it in common
``memory``      data frames, prepared once
``reading``     how a table is read from its source, and ``source_table``, a data frame that was
``lazy``        polars (lazy), DuckDB, Spark and databases of Ibis: the engine computes queries, through narwhals
``dask``        partitions of whole units, each processed on its worker

``column_types`` tells which columns can match the schema, ``contribution`` which rows of a unit count, ``unit_vectors``
what a unit adds; ``guard``, ``quiet`` and ``worker_thread`` keep contents of rows out of errors, output and interrupts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from dpnb._backends.column_types import (
    StorageType,
    doubtful_types,
    refuse_mismatches,
    refuse_mixed_units,
    storage_types_of,
    undeclared_zones,
    unit_kind,
)
from dpnb._backends.dask import DaskBackend
from dpnb._backends.lazy.engines import ENGINES
from dpnb._backends.lazy.engines.ibis import engine_of
from dpnb._backends.lazy.lazy_backend import LazyBackend
from dpnb._backends.memory.memory_backend import MemoryBackend
from dpnb._backends.memory.prepare.prepared_table import READING_FAILED
from dpnb._backends.protocol import Groups, Schemas, TableBackend, UnitBudgets, Units
from dpnb._backends.worker_thread import isolated_numeric_settings, run_guarded
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import DpnbError, SchemaError
from dpnb.schema import Added

__all__ = [
    "Groups",
    "MemoryBackend",
    "StorageType",
    "TableBackend",
    "UnitBudgets",
    "doubtful_types",
    "opened",
    "storage_types_of",
    "undeclared_zones",
]


def opened(tables: Mapping[str, Any], schemas: Schemas, units: Units, added: Added = ()) -> TableBackend:
    """Open the tables of a session.

    Data frames of pandas, polars, pyarrow or another library that narwhals reads column by column: the columns in the
    schemas are copied into memory.  Lazy frames of polars, relations of DuckDB and data frames of Spark stay where they
    are, and each query reads them again; those of Dask are prepared on its workers.  The columns that were `added` to
    the schemas do not decide which of a unit's rows count, except among rows that are equal in all others.

    Raises `SchemaError` if a table is not a data frame, the tables are in several engines or in one that dpnb does not
    support, a column is missing or has a declared type that cannot match the schema (see
    `dpnb._backends.column_types`), an engine's plan of a table shows that its rows may differ between reads, or an
    engine cannot keep a limit of the units; any other error is an `ExecutionError` with one constant text.
    """
    return run_guarded(lambda: _opened(tables, schemas, units, added), READING_FAILED, public_errors=DpnbError)


def _opened(tables: Mapping[str, Any], schemas: Schemas, units: Units, added: Added) -> TableBackend:
    tables = {name: nw.to_native(table, pass_through=True) for name, table in tables.items()}
    engines = {name: _engine_of(table) for name, table in tables.items()}
    engine, *others = set(engines.values())
    if others:
        got = ", ".join(f"{name!r} {'in memory' if of is None else f'on {of.value}'}" for name, of in engines.items())
        raise SchemaError(
            f"tables: must all be in memory, or all on one engine, to be joined; got {got}; move them to one engine"
        )
    if engine is None:
        for name, table in tables.items():
            refuse_mismatches(table, schemas[name])
        refuse_mixed_units({name: _unit_kind(table, units[name]) for name, table in tables.items()}, units)
        return MemoryBackend.read(tables, schemas, units, added)
    if engine is nw.Implementation.DASK:
        refuse_mixed_units({name: _unit_kind(table._meta, units[name]) for name, table in tables.items()}, units)
        return DaskBackend.read(tables, schemas, units, added)
    if engine is nw.Implementation.IBIS:
        return LazyBackend(*engine_of(tables), schemas, units, added)
    return LazyBackend(ENGINES[engine], tables, schemas, units, added)


def _unit_kind(table: Any, unit: PrivacyUnit) -> StorageType | None:
    return None if unit.column is None else unit_kind(table, unit.column)


def _engine_of(table: Any) -> nw.Implementation | None:
    """The engine that holds a frame's rows; None for a table in memory."""
    try:
        with isolated_numeric_settings():  # narwhals warns of plugins that could be installed
            frame = nw.from_native(table, pass_through=True)
    except Exception:  # noqa: BLE001  (for example a duplicate column, which `prepare_all` reports without quoting)
        return None
    if not isinstance(frame, nw.LazyFrame):
        return None
    engine = frame.implementation
    others = nw.Implementation.DASK, nw.Implementation.IBIS
    if engine not in (*ENGINES, *others):
        known = ", ".join([*dict.fromkeys(each.name for each in ENGINES.values()), *(each.value for each in others)])
        raise SchemaError(
            f"table: dpnb does not support the engine of a {type(table).__name__}; pass a data frame in memory, or a "
            f"lazy one of {known}"
        )
    return engine
