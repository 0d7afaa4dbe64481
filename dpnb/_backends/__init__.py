"""The tables of a session, wherever their rows are: in memory, in an engine, or on the workers of Dask.

``protocol``    what a session asks of them, and of what each unit has spent
``sources``     tables by their names, with the joins and parts of them
``evaluation``  what expressions give for the rows of a table, but for what numpy and narwhals each do
``memory``      data frames, prepared once
``lazy``        polars (lazy), DuckDB and Spark: questions are put to the engine through narwhals, which adds up
``dask``        partitions of whole units, each worked on where it is
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from dpnb._backends.column_types import refuse_mismatches
from dpnb._backends.dask.dask_table import DaskBackend
from dpnb._backends.guard import run_guarded
from dpnb._backends.lazy.engines import ENGINES
from dpnb._backends.lazy.lazy_table import LazyBackend
from dpnb._backends.memory.memory_table import MemoryBackend
from dpnb._backends.memory.prepare.prepared_table import READING_FAILED
from dpnb._backends.numpy_settings import isolated_numeric_settings
from dpnb._backends.protocol import Groups, Schemas, TableBackend, UnitBudgets, Units
from dpnb.errors import DpnbError, SchemaError

__all__ = ["Groups", "MemoryBackend", "TableBackend", "UnitBudgets", "opened"]


def opened(tables: Mapping[str, Any], schemas: Schemas, units: Units) -> TableBackend:
    """Take in the tables of a session.

    Parameters
    ----------
    tables : mapping of str to data frame
        Of pandas, polars, pyarrow or another library that narwhals reads column by column: copied into memory as far as
        the schemas describe them.  Lazy frames of polars, relations of DuckDB and data frames of Spark stay where they
        are, and are read anew by every question; those of Dask are prepared on its workers.
    schemas : dict of str to dict
    units : dict of str to PrivacyUnit

    Raises
    ------
    SchemaError
        Something is no data frame, the tables are of several engines or of one that dpnb does not know, a column is
        missing or declared by its container to hold what cannot match the schema (see `dpnb._backends.column_types`),
        or an engine's plan of a table shows that it need not give the same rows each time.
    ExecutionError
        Anything else, with one constant text.
    """
    return run_guarded(lambda: _opened(tables, schemas, units), READING_FAILED, told=DpnbError)


def _opened(tables: Mapping[str, Any], schemas: Schemas, units: Units) -> TableBackend:
    kinds = {name: _engine_of(table) for name, table in tables.items()}
    kind, *others = set(kinds.values())
    if others:
        said = ", ".join(f"{name!r} {'in memory' if of is None else f'on {of.value}'}" for name, of in kinds.items())
        raise SchemaError(f"tables: must all be in one place to be joined; got {said}; bring them to one engine")
    if kind is None:
        for name, table in tables.items():
            refuse_mismatches(table, schemas[name])
        return MemoryBackend.read(tables, schemas, units)
    if kind is nw.Implementation.DASK:
        return DaskBackend.read(tables, schemas, units)
    natives = {name: nw.to_native(table, pass_through=True) for name, table in tables.items()}
    return LazyBackend(ENGINES[kind], natives, schemas, units)


def _engine_of(table: Any) -> nw.Implementation | None:
    """The engine in which a frame's rows are; None for a table in memory."""
    try:
        with isolated_numeric_settings():  # narwhals warns of plugins that could be installed
            frame = nw.from_native(table, pass_through=True)
    except Exception:  # noqa: BLE001  (a column is there twice, say: `prepare_all` says so, and quotes nothing)
        return None
    if not isinstance(frame, nw.LazyFrame):
        return None
    kind = frame.implementation
    if kind not in (*ENGINES, nw.Implementation.DASK):
        known = ", ".join([*dict.fromkeys(engine.name for engine in ENGINES.values()), nw.Implementation.DASK.value])
        raise SchemaError(
            f"table: {type(table).__name__} is of an engine that dpnb has not been tried with; pass a data frame, or a "
            f"lazy one of {known}"
        )
    return kind
