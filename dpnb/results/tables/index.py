"""Columns, index and order of the pandas table of an answer, and the arguments that refer to them.

Also three parts of every estimate: its fields for methods in other modules, a field that is computed when it is first
read, and the refusal of unknown names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from dpnb._plan.unreleased import calling_function, calling_test, closest
from dpnb.errors import AnswerAttributeError, RequestError
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.schema import Key, whole_number
from dpnb.times import UTC_ZONE, Zone

if TYPE_CHECKING:
    import pandas as pd


# --- the fields of estimates ------------------------------------------------------------------------------------------


E = TypeVar("E")


class OfEstimates(Generic[E]):
    """Base class of methods of `dpnb.results.tables.table.Estimates`, whose fields they use."""

    if TYPE_CHECKING:
        description: Any
        names: Any
        keys: Any
        outputs: Any
        arrays: Any
        anytime_arrays: Any
        population_arrays: Any
        anytime_population_arrays: Any
        tested_arrays: Any
        sampled: Any
        group_values: Any
        measurement_ids: Any
        confidence: Any
        simultaneous: Any
        notice: Any
        source: Any
        dates: Any
        is_refined: Any
        is_two_way: Any
        is_scalar: Any
        has_intervals: Any
        estimate: Any
        to_pandas: Callable[[], pd.DataFrame]
        _refuse_callers: Any

        def __getitem__(self, key: Any) -> E: ...
        def __sub__(self, other: object) -> Any: ...
        def _refuse_dates(self, verb: str) -> None: ...
        def _shaped(self, column: str) -> Any: ...
        def _with(self, words: str, function: Any, **changes: Any) -> Any: ...
        def _intervals(self, function: Callable[[IntervalArrays], IntervalArrays]) -> dict[str, Any]: ...
        def _part(self, words: str, rows: slice, columns: slice, **changes: Any) -> Any: ...
        def _taken(self, rows: Sequence[int], columns: Sequence[int], words: str, **changes: Any) -> E: ...
        def _rounded(self, decimals: Sequence[int], words: str) -> E: ...


# --- a field of estimates that is computed when it is first read ------------------------------------------------------


V = TypeVar("V")


class Deferred(Generic[V]):
    """A field of a dataclass, None by default, which is given as its value or as a callable that returns the value.

    The callable is called once, and not at all if the field is never read.  Two threads that read the field at the same
    time may both call it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: Any, owner: type) -> V | None: ...
    def __get__(self, instance: Any, owner: type) -> V | None:
        if instance is None:  # the default of the field
            return None
        value = vars(instance)[self._name]
        if callable(value):
            value = vars(instance)[self._name] = value()
        found: V | None = value
        return found

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self._name] = value


D = TypeVar("D")


def replaced(instance: D, **changes: Any) -> D:
    """As `dataclasses.replace`, but what is deferred stays so."""
    kept = {field.name: vars(instance)[field.name] for field in fields(instance) if field.init}  # type: ignore[arg-type]
    return type(instance)(**(kept | changes))


# --- points in time of an answer --------------------------------------------------------------------------------------


def points_in_time(values: Cells, dates: Sequence[Zone | None]) -> Any:
    """The numbers of all groups, shape (groups, outputs), in one column, those that are dates as timestamps.

    `dates` has the zone of each output that is a date; an unknown one is NaT.
    """
    return _converted(values, dates, "datetime64[us]")


def durations(values: Cells, dates: Sequence[Zone | None]) -> Any:
    """Standard deviations in one column, as `points_in_time` has the numbers: durations where these are dates."""
    return _converted(values, dates, "timedelta64[us]")


def _converted(values: Cells, dates: Sequence[Zone | None], kind: str) -> Any:
    import pandas as pd  # imported when first used

    micro = np.round(np.where(np.isfinite(values), values, 0.0) * 1e6).astype(np.int64).astype(kind)
    times = np.where(np.isfinite(values), micro, np.array("NaT", dtype=kind))
    is_moment = kind.startswith("datetime")
    zones = {zone.name if is_moment else UTC_ZONE for zone in dates if zone}
    if all(dates) and len(zones) == 1:
        (zone,) = zones
        return times.ravel() if zone == UTC_ZONE else pd.DatetimeIndex(times.ravel(), tz="UTC").tz_convert(zone).array

    def made(time: Any, zone: Zone) -> Any:
        if not is_moment:
            return pd.Timedelta(time)
        moment = pd.Timestamp(time)
        return moment if zones == {UTC_ZONE} else moment.tz_localize("UTC").tz_convert(zone.name)

    mixed = [float(value) if zone is None else made(time, zone)
             for own, moments in zip(values, times, strict=True)
             for value, time, zone in zip(own, moments, dates, strict=True)]  # fmt: skip
    return np.array(mixed, dtype=object)


# --- columns and index of the table of an answer ----------------------------------------------------------------------


COLUMNS = {
    **{"estimate": "displayed", "low": "low", "high": "high", "noise_scale": "noise_scale"},
    **{"population_low": "low", "population_high": "high"},
}
"""Columns of an answer's table, and the arrays that they hold; the last two are those with population intervals."""

MAX_DECIMALS = 300


def pandas_index(
    names: tuple[str, ...], keys: tuple[tuple[Key, ...], ...], outputs: tuple[str, tuple[Key, ...]] | None
) -> pd.Index:
    """One label for each number, group by group; the arguments are names and labels as in an answer."""
    import pandas as pd  # imported when first used

    outer = [(label,) for label in outputs[1]] if outputs else [()]
    labels = [(*key, *label) for key in keys for label in outer]
    levels = [*names, *([outputs[0]] if outputs else [])]
    if not levels:
        return pd.RangeIndex(1)
    if len(levels) == 1:
        index: pd.Index = pd.Index([label[0] for label in labels], name=levels[0])
        return index
    several: pd.Index = pd.MultiIndex.from_tuples(labels, names=levels)
    return several


def order_of(values: list[float], ascending: bool) -> list[int]:
    """The indices of the sorted values; equal ones keep their order, unknown ones are last."""
    sign = 1.0 if ascending else -1.0
    return sorted(range(len(values)), key=lambda row: (math.isnan(values[row]), sign * values[row]))


def row_count(n: object, verb: str) -> int:
    """A number of rows that an analyst gave."""
    number = whole_number(n)
    if number is None:
        raise RequestError(f"{verb}: n must be a whole number; got {n!r}")
    return number


def decimals_of(decimals: object) -> int:
    """A number of decimals that an analyst gave."""
    number = whole_number(decimals)
    if number is None or abs(number) > MAX_DECIMALS:
        raise RequestError(f"round: decimals must be a whole number up to {MAX_DECIMALS}; got {decimals!r}")
    return number


def flag_of(value: object, name: str) -> bool:
    """A truth value that an analyst gave."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise RequestError(f"{name}: must be True or False; got {value!r}")


def level_of(names: tuple[str, ...], level: object, verb: str) -> int:
    """The index of a level by its name or number."""
    if isinstance(level, str) and level in names:
        return names.index(level)
    number = whole_number(level)
    if number is not None and -len(names) <= number < len(names):
        return number % len(names)
    raise RequestError(f"{verb}: level must be one of {', '.join(map(repr, names))}, or its number; got {level!r}")


# --- names that an answer does not have -------------------------------------------------------------------------------


RELEASED_ONLY = frozenset(
    ["cost", "cost_fraction", "n_observations", "plan", "proportions", "refine", "time", "total_loss", "view"]
)
"""Attributes that only a released answer has."""

SAVED = "plot().write_image('figure.svg')"

MEANT = {
    "savefig": SAVED,
    "write_image": SAVED,
    "value": "estimate",
    "values": "estimate",
    "result": "estimate",
    **dict.fromkeys(["ci", "conf_int", "low", "lower", "high", "upper"], "interval"),
    **dict.fromkeys(["se", "bse", "sem", "stderr", "std_err"], "to_pandas()['noise_scale']"),
    **dict.fromkeys(["p", "pvalue", "pvalues", "p_value"], "test(...)"),
}
"""Names that analysts try, and the attribute that they mean."""


BY_KEY = ("xs", "get")
"""Names that select by key in pandas, for which an answer has brackets."""


class UnknownNames:
    """Refuses unknown attributes with an `AttributeError` that names a replacement."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            own = dir(type(self))
            if name in ("ndim", "shape"):  # a table of statsmodels asks for them first
                refuse_test(self)
            if name == "_typ" and calling_function() in (("pandas", "concat"), ("pandas", "merge")):
                raise RequestError(
                    f"pandas: {self.description} is not a table of pandas; use .to_pandas(), as in "
                    "pd.concat([a.to_pandas(), b.to_pandas()]), which has the groups and the intervals"
                )
            if name in ("__dataframe__", "toPandas"):  # what seaborn and plotly.express ask of a table
                refuse_drawing(self)
            if name.startswith("_") or name in own or name in self.__dataclass_fields__:
                raise AttributeError(name)  # also while a debugger shows an object whose `__init__` has not finished
            what = f".{name} of {self.description}"
            if name in RELEASED_ONLY:
                raise AnswerAttributeError(
                    f"{what}: belongs to a released answer; use it on the answer that this was computed from"
                )
            close = MEANT.get(name) or closest(name, [public for public in own if not public.startswith("_")])
            columns = [each for each in COLUMNS if self.has_population_intervals or not each.startswith("population")]
            hint = f"did you mean .{close}? .to_pandas()" if close else ".to_pandas()"
            if name in BY_KEY and self.keys and self.keys[0]:
                key = self.keys[0] if len(self.keys[0]) > 1 else self.keys[0][0]
                hint = f"answer[{key!r}] has one group with its interval; {hint}"
            raise AnswerAttributeError(
                f"{what}: is not offered by an answer; {hint} gives a pandas DataFrame with the columns "
                f"{', '.join(columns)}{_pandas_example(name)}"
            )


def refuse_test(answer: Any) -> None:
    """Refuse to be exact numbers for a test of scipy or statsmodels."""
    test = calling_test()
    if test is None:
        return
    ratio = ""
    if "Table" in test and len(answer.names) == 2:
        one, other = answer.names
        ratio = f"; np.exp of the answer of df.regress('{other} ~ {one}', family='logistic') has the odds ratio"
    raise RequestError(
        f"{test}: would take {answer.description} as exact, and find too much; use .test(...) of the answer, which "
        f"knows of its noise, or .estimate where the numbers themselves are meant{ratio}"
    )


def refuse_drawing(answer: Any) -> None:
    """Refuse to be the table of a figure of plotly.express or seaborn, which would take positions for groups."""
    library, function = calling_function() or ("", "")
    if library == "seaborn" or (library == "plotly" and function != "__init__"):
        raise RequestError(
            f"{library}.{function}: would draw {answer.description} without its groups and intervals; use .plot(), or "
            f"give it .reset_index(), a DataFrame with the columns {', '.join(answer.reset_index().columns)}"
        )


def _pandas_example(name: str) -> str:
    import pandas as pd  # imported when first used

    offered = getattr(pd.Series, name, None)
    call = "(...)" if callable(offered) and not isinstance(offered, type) else ""
    return f", for example .to_pandas()['estimate'].{name}{call}" if offered is not None else ""
