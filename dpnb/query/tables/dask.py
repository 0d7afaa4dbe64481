"""Tables of Dask: every partition holds whole units and is worked on where it is, by the code for tables in memory.

The rows are brought together by the portable number of their unit (`dpnb.query.contribution.name_number`), which is the
same for equal names whatever type a partition's column happens to have; they are prepared once, and stay on the
workers.  What one unit adds depends on no other, so the sums of the partitions add up to those of the table.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

import narwhals as nw
import numpy as np

from dpnb.accounting.individual import IndividualFilter, OnExhausted, Terms, Till
from dpnb.errors import ExecutionError, SchemaError
from dpnb.query.aggregations import Discovery
from dpnb.query.columns import column_of
from dpnb.query.guard import guarded
from dpnb.query.linear.query import LinearQuery
from dpnb.query.numbering import number_units, unit_names
from dpnb.query.prepare import READING_FAILED
from dpnb.query.quiet import quiet
from dpnb.query.schema import Key, Schema
from dpnb.query.tables.memory import InMemory
from dpnb.query.tables.protocol import Groups, Schemas, Units
from dpnb.query.unit import PrivacyUnit
from dpnb.query.unit_vectors import Sums

NUMBER = "dpnb unit number"
"""The column by which rows are brought together."""


class InDask:
    """Tables of Dask, prepared partition by partition.

    Parameters
    ----------
    parts : list of delayed InMemory
    """

    def __init__(self, parts: list[Any]) -> None:
        self._parts = parts

    @classmethod
    def read(cls, tables: Mapping[str, Any], schemas: Schemas, units: Units) -> InDask:
        """Have the workers prepare what the schemas describe.

        Parameters
        ----------
        tables : mapping of str to dask.dataframe.DataFrame
        schemas : dict of str to dict
        units : dict of str to PrivacyUnit

        Raises
        ------
        SchemaError
            A column is missing.
        ExecutionError
            Anything else, with one constant text.
        """
        frames = {name: _columns(table, name, schemas[name], units[name]) for name, table in tables.items()}
        return cls(guarded(lambda: _parts(frames, schemas, units), READING_FAILED))

    def refuse(self, query: LinearQuery) -> None:
        """Refuse nothing: a partition is a table in memory."""

    def refuse_purses(self, mode: OnExhausted) -> None:
        """Refuse nothing: a partition is a table in memory."""

    def sums(self, query: LinearQuery) -> Sums:
        """The exact sums of a question, over all partitions."""
        return _added(self._each(InMemory.sums, query))

    def groups(self, query: LinearQuery) -> Groups:
        """Every group that some unit has."""
        return _merged(self._each(InMemory.groups, query))

    def purses(self, budget: Fraction, mode: OnExhausted) -> PursesInDask:
        """What each unit has to spend, before anything was spent; kept on the workers, beside the rows."""
        return PursesInDask(self._parts, _stays(_task(_fresh, part, budget, mode) for part in self._parts))

    def _each(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        return _fetched(_task(work, part, *given) for part in self._parts)


@dataclass(frozen=True, repr=False)
class PursesInDask:
    """What each unit has spent, partition by partition, on the workers.

    Parameters
    ----------
    parts : list of delayed InMemory
    units : list of delayed IndividualFilter
    """

    parts: list[Any]
    units: list[Any]

    def asked(self, query: LinearQuery, terms: Terms) -> tuple[Sums | Groups, PursesInDask]:
        """What a question measures over those who can pay for it, and the purses after it."""
        both = _stays(_task(_paid, *each, query, terms) for each in zip(self.parts, self.units, strict=True))
        found = _fetched(_task(itemgetter(0), each) for each in both)
        after = replace(self, units=_stays(_task(itemgetter(1), each) for each in both))
        discovery = isinstance(query.plan.aggregation, Discovery)
        return (_merged(found) if discovery else _added(found)), after

    def charged(self, loss: float) -> PursesInDask:
        """The purses after everybody was charged the same."""
        return replace(self, units=_stays(_task(_charged, units, loss) for units in self.units))


# --- tasks -----------------------------------------------------------------------------------------------------------


class _Failed:
    """What a task gives instead of an error, which a worker would log with the rows that the task was given."""


def _tried(work: Callable[..., Any], *given: Any) -> Any:
    try:
        with quiet():
            return _Failed() if any(isinstance(one, _Failed) for one in given) else work(*given)
    except Exception:  # noqa: BLE001  (what it says may quote rows)
        return _Failed()


def _task(work: Callable[..., Any], *given: Any) -> Any:
    import dask

    return dask.delayed(_tried, pure=False)(work, *given)


def _stays(tasks: Iterable[Any]) -> list[Any]:
    """Have tasks done whose results stay on the workers."""
    import dask

    return list(dask.persist(*tasks))


def _fetched(tasks: Iterable[Any]) -> list[Any]:
    """Have tasks done whose results are sums, and bring these.

    Raises
    ------
    ExecutionError
        One of them failed.
    """
    import dask

    found = list(dask.compute(*tasks))
    if any(isinstance(one, _Failed) for one in found):
        raise ExecutionError("a task on a worker failed")
    return found


# --- on the driver ---------------------------------------------------------------------------------------------------


def _columns(table: Any, name: str, schema: Schema, unit: PrivacyUnit) -> Any:
    wanted = [*schema, *([unit.column] if unit.column else [])]
    for column in wanted:
        if list(table.columns).count(column) != 1:
            which = f"the table {name!r}" if name else "the table"
            raise SchemaError(
                f"column {column!r}: is not in {which} exactly once; schema and privacy_unit name columns of the table"
            )
    return table[wanted]


def _parts(frames: Mapping[str, Any], schemas: Schemas, units: Units) -> list[Any]:
    """The prepared partitions, each with its rows of every table."""
    count = max(frame.npartitions for frame in frames.values())
    each = [_brought_together(frames[name], units[name], count).to_delayed() for name in frames]
    parts = _stays(_task(_prepared, list(frames), schemas, units, *part) for part in zip(*each, strict=True))
    _fetched(_task(_ready, part) for part in parts)  # or raise here, before anything is charged
    return parts


def _brought_together(frame: Any, unit: PrivacyUnit, count: int) -> Any:
    """The same rows, all those of a unit in one partition; where each row is a unit they stay where they are."""
    if unit.column is None:
        return frame
    numbered = frame.map_partitions(_with_number, unit.column, meta=_with_number(frame._meta, unit.column))
    return numbered.shuffle(on=NUMBER, npartitions=count)


def _added(found: list[Sums]) -> Sums:
    """Exact sums, in 64 bits where they suffice."""
    total = np.sum([part.astype(object) for part in found], axis=0)
    try:
        return np.array(total.tolist(), np.int64)
    except OverflowError:
        return total  # type: ignore[no-any-return]


def _merged(found: list[Groups]) -> Groups:
    """Groups of all partitions, in an order that no row decides."""
    sizes: Counter[tuple[Key, ...]] = Counter()
    for keys, counts in found:
        for key, count in zip(keys, counts.tolist(), strict=True):
            sizes[key] += count
    keys = sorted(sizes, key=lambda key: [(isinstance(part, str), part) for part in key])
    return keys, np.array([sizes[key] for key in keys], np.int64)


# --- on the workers --------------------------------------------------------------------------------------------------


def _with_number(frame: Any, unit: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = unit_names(column_of(nw.from_native(frame, eager_only=True).get_column(unit)))
        codes, numbers = number_units(names)
    return frame.assign(**{NUMBER: np.append(numbers, 0)[codes]})


def _prepared(names: list[str], schemas: Schemas, units: Units, *frames: Any) -> InMemory:
    """In an order of the units that does not hang on how the rows arrived: what they spent is kept by their place."""
    ordered = [frame.sort_values(NUMBER, kind="stable") if NUMBER in frame else frame for frame in frames]
    return InMemory.read(dict(zip(names, ordered, strict=True)), schemas, units)


def _ready(tables: InMemory) -> None:
    """Has been prepared."""


def _fresh(tables: InMemory, budget: Fraction, mode: OnExhausted) -> IndividualFilter:
    return IndividualFilter(budget, tables.units, mode)


def _paid(tables: InMemory, units: IndividualFilter, query: LinearQuery, terms: Terms) -> tuple[Any, IndividualFilter]:
    till = Till(units, terms)
    found = tables.paid(query, till)
    return found, till.units


def _charged(units: IndividualFilter, loss: float) -> IndividualFilter:
    return units.charge(np.full(len(units.spent), loss))
