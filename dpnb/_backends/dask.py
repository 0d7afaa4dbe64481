"""Tables of Dask: every partition holds whole units and is processed on its worker by the code for tables in memory.

The rows are shuffled by the hash of their unit's name (`dpnb._backends.contribution.label_hash`), which is the same for
equal names whatever type a partition's column happens to have; they are prepared once, and stay on the workers.
The contribution of a unit depends on no other unit, so the sums of the partitions add up to those of the table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import itemgetter
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from dpnb._backends.column_types import refuse_absent
from dpnb._backends.memory.group_discovery import merged
from dpnb._backends.memory.memory_backend import MemoryBackend
from dpnb._backends.memory.prepare.columns import column_of
from dpnb._backends.memory.prepare.prepared_table import READING_FAILED
from dpnb._backends.memory.prepare.unit_ids import assign_unit_ids, unit_labels
from dpnb._backends.protocol import Groups, Schemas, Units
from dpnb._backends.quiet import run_silently
from dpnb._backends.unit_vectors import Sums, added
from dpnb._backends.worker_thread import (
    BackgroundRunner,
    is_stopped,
    isolated_numeric_settings,
    refuse_stopped,
    run_guarded,
)
from dpnb._compile.sensitivity import LinearQuery
from dpnb._plan.join import schema_of
from dpnb._plan.measurements import Discovery
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.individual import IndividualFilter, OnExhausted, UnitAdmission, UnitChargeTerms
from dpnb.copying import NotCopyable
from dpnb.errors import ExecutionError, SchemaError
from dpnb.schema import Added, Schema
from dpnb.threads import POLL_SECONDS

T = TypeVar("T")

PAUSE = 5 * POLL_SECONDS
"""Seconds between two checks whether the workers have finished cancelled tasks."""

_background = BackgroundRunner()
_here = threading.local()


def run(work: Callable[[], T]) -> T:
    """Run work on the workers, after any interrupted work has ended; an interrupt cancels it."""
    started: list[Any] = []

    def tracked() -> T:
        _here.started = started
        try:
            return work()
        finally:
            if is_stopped():
                _wait_for_workers(started)
            # Here, not in the waiting thread: Python drops an interrupt that arrives in the __del__ of a future.
            started.clear()

    def cancel() -> None:
        futures = list(started)
        if futures:
            futures[0].client.cancel(futures)

    return run_silently(tracked, "dask", (), lambda work: _background.run(work, cancel))


def persisted(tasks: Iterable[Any]) -> list[Any]:
    """Run tasks whose results stay on the workers; called only inside `run`."""
    import dask

    refuse_stopped()
    results = list(dask.persist(*tasks))
    _here.started += _futures(results)
    return results


def _futures(results: list[Any]) -> list[Any]:
    """The scheduler's futures of tasks; none without a scheduler, as with Dask's threads in this process."""
    try:
        from distributed.client import futures_of
    except ImportError:
        return []
    return list(futures_of(results))


def _wait_for_workers(started: list[Any]) -> None:
    """Wait for the tasks that have begun: a worker finishes even cancelled tasks before it begins others."""
    if not started:
        return
    keys, client = [future.key for future in started], started[0].client
    with suppress(Exception):  # do not wait for a cluster that is gone
        while any(client.run(_is_busy, keys).values()):
            time.sleep(PAUSE)


def _is_busy(keys: list[Any], dask_worker: Any = None) -> bool:
    """On a worker: whether it is busy with one of these tasks."""
    states = (dask_worker.state.tasks[key].state for key in keys if key in dask_worker.state.tasks)
    return any(state in ("executing", "long-running", "cancelled", "resumed") for state in states)


# --- tables of Dask ---------------------------------------------------------------------------------------------------


UNIT_HASH = "dpnb unit hash"
"""The column by which rows are shuffled."""


class DaskBackend(NotCopyable):
    """Tables of Dask, prepared partition by partition; `parts` are delayed `MemoryBackend` objects."""

    engine_label = "Dask"

    def __init__(self, parts: list[Any], schemas: Schemas) -> None:
        self._parts, self._schemas = parts, schemas

    @classmethod
    def read(cls, tables: Mapping[str, Any], schemas: Schemas, units: Units, added: Added = ()) -> DaskBackend:
        """Have the workers prepare what the schemas describe.

        Raises `SchemaError` if a column is missing or occurs twice; any other error is an `ExecutionError` with one
        constant text.
        """
        frames = {name: _columns(table, name, schemas[name], units[name]) for name, table in tables.items()}
        return cls(run_guarded(lambda: run(lambda: _parts(frames, schemas, units, added)), READING_FAILED), schemas)

    def refuse(self, query: LinearQuery) -> None:
        """Refuse nothing: a partition is a table in memory."""

    def refuse_individual(self, mode: OnExhausted) -> None:
        """Refuse nothing: a partition is a table in memory."""

    def ready(self) -> None:
        """Wait until interrupted work has ended."""
        _background.settle()

    def files(self) -> None:
        """None, since the workers have already read them."""

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a query, over all partitions."""
        sums: Sums = run(lambda: reduce(added, self._each(MemoryBackend.sums, query)))
        return sums

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has."""
        schema = schema_of(query.plan.source, self._schemas)
        return run(lambda: merged(self._each(MemoryBackend.groups, query), query, schema))

    def unit_budgets(self, budget: Fraction, mode: OnExhausted) -> DaskUnitBudgets:
        """The budgets of all units, before any charge; kept on the workers, beside the rows."""
        units = run(lambda: persisted(_task(_unit_filter, part, budget, mode) for part in self._parts))
        return DaskUnitBudgets(self._parts, units, self._schemas)

    def _each(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        return _fetched(_task(work, part, *arguments) for part in self._parts)


@dataclass(frozen=True, repr=False)
class DaskUnitBudgets(NotCopyable):
    """The budgets of all units, partition by partition, on the workers."""

    parts: list[Any]  # delayed `MemoryBackend` objects
    units: list[Any]  # delayed `IndividualFilter` objects
    schemas: Schemas

    def after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, DaskUnitBudgets]:
        """The result of a query over its active units, and the unit budgets after it."""
        return run(lambda: self._after_query(query, terms))

    def _after_query(self, query: LinearQuery, terms: UnitChargeTerms) -> tuple[Sums | Groups, DaskUnitBudgets]:
        pairs = persisted(
            _task(_result_and_units, *each, query, terms) for each in zip(self.parts, self.units, strict=True)
        )
        results = _fetched(_task(itemgetter(0), pair) for pair in pairs)
        after = replace(self, units=persisted(_task(itemgetter(1), pair) for pair in pairs))
        if isinstance(query.plan.aggregation, Discovery):
            return merged(results, query, schema_of(query.plan.source, self.schemas)), after
        return reduce(added, results), after

    def after_charge(self, loss: float) -> DaskUnitBudgets:
        """The unit budgets after the same charge to every unit."""
        return replace(self, units=run(lambda: persisted(_task(_charged, units, loss) for units in self.units)))


# --- tasks -----------------------------------------------------------------------------------------------------------


class _Failed:
    """The result of a failed task: a worker would log an error together with the rows in its arguments."""


def _tried(work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        with isolated_numeric_settings():
            return _Failed() if any(isinstance(argument, _Failed) for argument in arguments) else work(*arguments)
    except BaseException:  # noqa: BLE001  (its message may quote rows)
        return _Failed()


def _task(work: Callable[..., Any], *arguments: Any) -> Any:
    import dask

    return dask.delayed(_tried, pure=False)(work, *arguments)


def _fetched(tasks: Iterable[Any]) -> list[Any]:
    """Run tasks whose results are sums, and fetch the results; raises `ExecutionError` if one failed."""
    import dask

    results = list(dask.compute(*persisted(tasks)))
    if any(isinstance(result, _Failed) for result in results):
        raise ExecutionError("a task on a worker failed")
    return results


# --- on the driver ---------------------------------------------------------------------------------------------------


def _columns(table: Any, name: str, schema: Schema, unit: PrivacyUnit) -> Any:
    wanted = [*schema, *([unit.column] if unit.column else [])]
    for column in wanted:
        which, times = f"the table {name!r}" if name else "the table", list(table.columns).count(column)
        if not times:
            refuse_absent(column, list(table.columns), which, table._meta)
        if times > 1:
            raise SchemaError(
                f"column {column!r}: must occur in {which} exactly once; correct its name in the schema or in "
                "privacy_unit=, or rename the column"
            )
    return table[wanted]


def _parts(frames: Mapping[str, Any], schemas: Schemas, units: Units, added: Added) -> list[Any]:
    """The prepared partitions, each with its rows of every table."""
    count = max(frame.npartitions for frame in frames.values())
    each = [_shuffled(frames[name], units[name], count).to_delayed() for name in frames]
    declared = list(frames), schemas, units, added
    parts = persisted(_task(_prepared, *declared, *part) for part in zip(*each, strict=True))
    _fetched(_task(_ready, part) for part in parts)  # raises here if a task failed, before anything is charged
    return parts


def _shuffled(frame: Any, unit: PrivacyUnit, count: int) -> Any:
    """The same rows, shuffled so that each unit is in one partition; unchanged if each row is a unit."""
    if unit.column is None:
        return frame
    hashed = frame.map_partitions(_with_hash, unit, meta=_with_hash(frame._meta, unit))
    return hashed.shuffle(on=UNIT_HASH, npartitions=count)


# --- on the workers --------------------------------------------------------------------------------------------------


def _with_hash(frame: Any, unit: PrivacyUnit) -> Any:
    with isolated_numeric_settings():
        names = unit_labels(column_of(nw.from_native(frame, eager_only=True).get_column(str(unit.column))), unit.type)
        codes, hashes = assign_unit_ids(names)
    return frame.assign(**{UNIT_HASH: np.append(hashes, 0)[codes]})


def _prepared(names: list[str], schemas: Schemas, units: Units, added: Added, *frames: Any) -> MemoryBackend:
    """Prepare a partition in an order of units that does not depend on arrival: spending is kept by index."""
    ordered = [frame.sort_values(UNIT_HASH, kind="stable") if UNIT_HASH in frame else frame for frame in frames]
    return MemoryBackend.read(dict(zip(names, ordered, strict=True)), schemas, units, added)


def _ready(tables: MemoryBackend) -> None:
    """Do nothing: its argument has been prepared."""


def _unit_filter(tables: MemoryBackend, budget: Fraction, mode: OnExhausted) -> IndividualFilter:
    return IndividualFilter(budget, tables.units, mode)


def _result_and_units(
    tables: MemoryBackend, units: IndividualFilter, query: LinearQuery, terms: UnitChargeTerms
) -> tuple[Any, IndividualFilter]:
    admission = UnitAdmission(units, terms)
    result = tables.admitted_result(query, admission)
    return result, admission.units


def _charged(units: IndividualFilter, loss: float) -> IndividualFilter:
    return units.charge(np.full(len(units.spent), loss))
