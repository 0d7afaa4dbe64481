"""Numbers with noise intervals, by group: the content of an answer, and the result of arithmetic between answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpnb._plan.unreleased import Unreleased
from dpnb.copying import NotCopyable
from dpnb.errors import RequestError
from dpnb.results.display import Displayed, without_groups
from dpnb.results.estimates.noisy import IntervalArrays, SampledAs
from dpnb.results.tables.exports import EstimatesPlot, Exports
from dpnb.results.tables.hypothesis_methods import Testing
from dpnb.results.tables.index import COLUMNS, Deferred, UnknownNames, durations, pandas_index, points_in_time
from dpnb.results.tables.intervals import ABOUT, Comparison
from dpnb.results.tables.operators import Operators
from dpnb.results.tables.pandas_methods import PandasMethods
from dpnb.schema import Key, plain
from dpnb.times import Zone

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "unknown: the noise is too large, or the statistic is not defined"
"""Warning about numbers that are displayed as unknown."""

MeasurementIds = Sequence[frozenset[tuple[int, int]]]
"""For each group the measurements that it is computed from: row of the ledger, and cell."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimates(Operators["Estimates"], PandasMethods["Estimates"], Testing, Exports, UnknownNames, Displayed):
    """Estimates with noise intervals, and population intervals where the sampling error is known.

    They behave like a number, or like a pandas Series or DataFrame of the shape of `estimate`.  Everything computed
    from them is post-processing and free, and has intervals too; `to_pandas` gives access to all of pandas.

    Parameters
    ----------
    description : str
        The estimated quantity in words.
    names : tuple of str
        Names of the group levels; empty without groups.
    keys : tuple of tuple
        Keys of the groups, with one value for each level; one empty key without groups.
    outputs : (str, tuple) or None
        Name and labels of the numbers of each group, if there are several.
    arrays : IntervalArrays
        Estimates, limits and noise scales, each of shape (groups, outputs).
    confidence : float
    simultaneous : bool
        Whether all intervals hold at once with that confidence, or each one separately.
    notice : str or None
        Warning that the answer is from a rehearsal or not private.
    excluded : str or None
        Which units are counted, if some may be excluded.
    condition : str or None
        The condition under which its intervals hold, if any.
    uncounted : str or None
        Which rows are not counted: those beyond the limits of a privacy unit, and those with missing values that
        pandas counts.
    measurement_ids : sequence of frozenset
        For each group, the measurements that it is computed from.
    anytime_arrays : IntervalArrays, callable or None
        Like `arrays`, with intervals that hold for all observations at once; None if `arrays` has such intervals.  A
        callable that returns them is called when they are first needed.
    population_arrays : IntervalArrays, callable or None
        Like `arrays`, with population intervals, NaN where there is none; None if no number has one.
    anytime_population_arrays : IntervalArrays, callable or None
        Like `anytime_arrays`, with population intervals; None if no number has one.
    tested_arrays : IntervalArrays, callable or None
        Like `population_arrays`, with intervals for `test`; None if these are those.
    sampled : SampledAs, callable or None
        What `test` needs to know of the population intervals; None where their widths have no common meaning.
    group_values : sequence of frozenset
        For each group, expressions with the value that they have in all of its rows: groups in which one has different
        values have no unit in common.  Empty where a unit may be in several groups.
    is_refined : bool
        Whether any number combines more than one observation.
    source : Estimates or None
        The estimates that these are a rearrangement of, for example after `sort_values`; their history is that of the
        source.
    decimals : tuple of int or None
        The decimals of each output that are displayed, after `round`.
    is_two_way : bool
        Whether the last level of the groups is shown as columns.
    dates : tuple of Zone or None
        For each output that is a point in time, in seconds since 1970, its zone; empty if none is.

    Examples
    --------
    >>> answer = df.groupby("plan").size().release(mu=0.1)
    >>> difference = answer["free"] - answer["paid"]
    >>> type(difference).__name__
    'Estimates'
    >>> low, high = difference.interval
    >>> low < difference.item() < high
    True
    """

    description: str
    names: tuple[str, ...]
    keys: tuple[tuple[Key, ...], ...]
    outputs: tuple[str, tuple[Key, ...]] | None
    arrays: IntervalArrays
    confidence: float
    simultaneous: bool = False
    notice: str | None = None
    excluded: str | None = None
    condition: str | None = None
    uncounted: str | None = None
    measurement_ids: MeasurementIds = field(default=(), repr=False)
    anytime_arrays: Deferred[IntervalArrays] = Deferred()  # noqa: RUF009  (a descriptor)
    population_arrays: Deferred[IntervalArrays] = Deferred()  # noqa: RUF009  (a descriptor)
    anytime_population_arrays: Deferred[IntervalArrays] = Deferred()  # noqa: RUF009  (a descriptor)
    tested_arrays: Deferred[IntervalArrays] = Deferred()  # noqa: RUF009  (a descriptor)
    sampled: Deferred[SampledAs] = Deferred()  # noqa: RUF009  (a descriptor)
    group_values: Sequence[frozenset[tuple[Any, Key]]] = field(default=(), repr=False)
    is_refined: bool = False
    source: Estimates | None = field(default=None, repr=False)
    decimals: tuple[int, ...] | None = None
    is_two_way: bool = False
    dates: tuple[Zone | None, ...] = ()

    @property
    def _axis_names(self) -> tuple[str, ...]:
        """The names of the levels, as the axes of a figure have them."""
        return self.names

    # --- values ------------------------------------------------------------------------------------------------

    @property
    def is_scalar(self) -> bool:
        """Whether there is a single number."""
        return not self.names and self.outputs is None

    @property
    def estimate(self) -> float | pd.Series | pd.DataFrame:
        """A float, a pandas Series, or a DataFrame: of several statistics by group, and of a two-way table.

        A date is a `pandas.Timestamp`, which has the zone of its column unless that is UTC.
        """
        return self._shaped("estimate")  # type: ignore[no-any-return]

    @property
    def noise_scale(self) -> float | pd.Series | pd.DataFrame:
        """Standard deviation of the noise, in the estimate's units and shape; approximate for non-linear estimates."""
        return self._shaped("noise_scale")  # type: ignore[no-any-return]

    def to_pandas(self) -> pd.DataFrame:
        """Estimate, low and high (the ends of the noise interval) and noise_scale; one row for each number.

        An unknown estimate is NaN.
        With population intervals also their ends, as population_low and population_high.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> answer.to_pandas().columns.tolist()
        ['estimate', 'low', 'high', 'noise_scale', 'population_low', 'population_high']
        """
        import pandas as pd  # imported when first used

        columns = {
            "estimate": self.arrays.displayed,
            "low": self.arrays.low,
            "high": self.arrays.high,
            "noise_scale": self.arrays.noise_scale,
        }
        if self.population_arrays is not None:
            columns |= {"population_low": self.population_arrays.low, "population_high": self.population_arrays.high}
        index = pandas_index(self.names, self.keys, self.outputs)
        if self.dates:
            kinds = [durations if name == "noise_scale" else points_in_time for name in columns]
            dated = zip(columns.items(), kinds, strict=True)
            return pd.DataFrame({name: kind(values, self.dates) for (name, values), kind in dated}, index=index)
        return pd.DataFrame({name: values.ravel().copy() for name, values in columns.items()}, index=index)

    def _shaped(self, column: str) -> Any:
        if self.is_scalar:
            if self.dates:
                return self.to_pandas()[column].iloc[0]
            name, arrays = COLUMNS[column], self.population_arrays if column.startswith("population") else self.arrays
            return float(getattr(arrays, name)[0, 0])
        series = self.to_pandas()[column]
        if self.is_two_way:  # a pair of keys may be missing
            table: Any = series.unstack()
            rows = list(dict.fromkeys(key[:-1] if len(key) > 2 else key[0] for key in self.keys))
            # By position: `loc` would take truth values as a mask.
            return table.iloc[table.index.get_indexer(rows), table.columns.get_indexer(self._columns)]
        shaped = series.unstack(sort=False) if self.names and self.outputs else series
        return shaped.infer_objects() if self.dates else shaped

    def __float__(self) -> float:
        if not self.is_scalar:
            raise RequestError(
                f"{self.description}: is not a single number; use .estimate, or select one number with [key]"
            )
        self._refuse_dates("float")
        return float(self.arrays.displayed[0, 0])

    def __int__(self) -> int:
        number = float(self)
        if not math.isfinite(number):
            raise RequestError(f"{self.description}: is unknown, so it has no whole number; use .interval")
        return int(number)

    def __bool__(self) -> NoReturn:
        raise RequestError(
            f"{self.description}: its truth value is ambiguous; compare it with a number, as in answer > 0, or test "
            "answer is not None"
        )

    def __format__(self, spec: str) -> str:
        """The estimate in this format; with its noise interval if the format is empty."""
        return format(self.estimate if self.is_scalar else float(self), spec) if spec else str(self)

    def __getitem__(self, key: Any) -> Estimates:
        """One statistic by its name, or one group by its key (a tuple for several levels)."""
        wanted = plain(key)
        if not isinstance(wanted, bool | int | float | str | tuple):
            raise RequestError(
                f"[...]: must be the name of a statistic or the key of a group; got a {type(key).__name__}; use "
                ".to_pandas() to select several numbers"
            )
        if self.outputs is not None and not isinstance(wanted, tuple) and wanted in self.outputs[1]:
            index = self.outputs[1].index(wanted)
            return self._part(f"{wanted} of {self.description}", slice(None), slice(index, index + 1), outputs=None)
        if self.is_two_way and not isinstance(wanted, tuple) and wanted in self._columns:
            rows = [index for index, group in enumerate(self.keys) if group[-1] == wanted]
            column = self._taken(rows, [0], f"{self.names[-1]} {wanted}", is_two_way=False)
            return replace(column, names=self.names[:-1], keys=tuple(self.keys[row][:-1] for row in rows), source=None)
        group = tuple(plain(part) for part in key) if isinstance(key, tuple) else (wanted,)
        if self.names and group in self.keys:
            index = self.keys.index(group)
            words, made = without_groups(self.description, self.names)
            labels = ", ".join(f"{name} {part}{own}" for name, part, own in zip(self.names, group, made, strict=True))
            return self._part(f"{words}, {labels}", slice(index, index + 1), slice(None), names=(), keys=((),))
        known = [
            *(self.outputs[1] if self.outputs else ()),
            *(key if len(key) > 1 else key[0] for key in self.keys if key),
        ]
        raise RequestError(f"[{key!r}]: is not in this answer; it has {', '.join(map(repr, known)) or 'one number'}")

    def _ipython_key_completions_(self) -> list[Key | tuple[Key, ...]]:
        return [
            *(self.outputs[1] if self.outputs else ()),
            *(key if len(key) > 1 else key[0] for key in self.keys if key),
        ]

    def _part(self, words: str, rows: slice, columns: slice, **changes: Any) -> Estimates:
        fields: dict[str, Any] = {
            "measurement_ids": self.measurement_ids[rows],
            "group_values": self.group_values[rows],
            "decimals": self.decimals and self.decimals[columns],
            "dates": self.dates[columns] if any(self.dates[columns]) else (),
        }
        fields["is_two_way"] = self.is_two_way and rows == slice(None)
        return self._with(words, lambda arrays: arrays.select(rows, columns), **{**fields, **changes})

    def _taken(self, rows: Sequence[int], columns: Sequence[int], words: str, **changes: Any) -> Estimates:
        name, labels = self.outputs or ("", ())
        decimals = self.decimals and tuple(self.decimals[column] for column in columns)
        dates = tuple(self.dates[column] for column in columns) if self.dates else ()
        return self._derived(
            words,
            lambda arrays: arrays.take(rows, columns),
            keys=changes.pop("keys", tuple(self.keys[row] for row in rows)),
            outputs=self.outputs and (name, tuple(labels[column] for column in columns)),
            measurement_ids=tuple(self.measurement_ids[row] for row in rows) if self.measurement_ids else (),
            group_values=tuple(self.group_values[row] for row in rows) if self.group_values else (),
            **{"decimals": decimals, "is_two_way": self.is_two_way, "dates": dates if any(dates) else (), **changes},
        )

    def _rounded(self, decimals: Sequence[int], words: str) -> Estimates:
        self._refuse_dates("round")
        return self._derived(
            words, lambda arrays: arrays.rounded(decimals), decimals=tuple(decimals), is_two_way=self.is_two_way
        )

    def _derived(self, words: str, function: Callable[[IntervalArrays], IntervalArrays], **changes: Any) -> Estimates:
        """A rearrangement of these estimates."""
        description = f"{self.description}, {words}" if words else self.description
        return self._with(description, function, source=self if self.source is None else self.source, **changes)

    def _with(self, words: str, function: Callable[[IntervalArrays], IntervalArrays], **changes: Any) -> Estimates:
        """Other estimates, from a function of intervals of each kind."""
        same = ("names", "keys", "outputs", "is_refined", "measurement_ids", "confidence", "simultaneous")
        fields = {name: getattr(self, name) for name in (*same, "group_values", "sampled", *ABOUT)}
        return Estimates(**{**fields, "description": words, **self._intervals(function), **changes})

    def _ranks(self, level: int) -> dict[Key, int]:
        own = self.names[level]
        if self.source is not None and own in self.source.names:
            return self.source._ranks(self.source.names.index(own))
        return super()._ranks(level)

    # --- display -----------------------------------------------------------------------------------------------

    @property
    def plot(self) -> EstimatesPlot:
        """``plot()`` is the numbers with their intervals as a ``plotly.graph_objects.Figure``; free.

        ``plot(history=True)`` draws the answers after each observation, ``plot(title="Wages")`` has another title, and
        ``plot.bar()`` is ``plot()``, as in pandas.  A notebook stores an SVG beside plotly's JSON, for exports; in a
        terminal, and without plotly, it is text, which ``print(answer.plot())`` or ``answer.plot().show()`` prints.

        Examples
        --------
        >>> import plotly.graph_objects as go
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> isinstance(answer.plot(), go.Figure)
        True
        """
        return EstimatesPlot(self)

    @property
    def history(self) -> Any:
        """The answers after each observation; only a released answer has a history, also after a rearrangement.

        Raises
        ------
        RequestError
            These estimates are not a released answer.
        """
        if self.source is not None:
            return self.source.history
        raise RequestError(
            f"history: belongs to a released answer, but {self.description} was computed from answers or is part "
            "of one; use the .history of those answers"
        )

    def __eq__(self, other: object) -> bool | Comparison:  # type: ignore[override]
        """True for the same answer; with a number or another answer, what the interval says."""
        if isinstance(other, NotCopyable | Unreleased):
            return NotImplemented
        if type(other) is type(self) and self._content() == other._content():
            return True
        is_number = isinstance(other, int | float | np.number) and not isinstance(other, bool)
        return self._compare("==", other) if is_number or hasattr(other, "__array__") else False

    def __ne__(self, other: object) -> bool | Comparison:  # type: ignore[override]
        same = self.__eq__(other)
        if same is NotImplemented:
            return NotImplemented
        return ~same if isinstance(same, Comparison) else not same

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        arrays = (getattr(self.arrays, name).tobytes() for name in ("value", "low", "high", "noise_scale"))
        return self.description, self.names, self.keys, self.outputs, self.confidence, self.simultaneous, *arrays

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """Warnings about the estimates: the id of the explanation, and the text."""
        warnings = []
        if self.arrays.is_unknown.any():
            warnings.append(("unknown", UNKNOWN))
        with np.errstate(invalid="ignore"):
            outside = (self.arrays.value < self.arrays.low) | (self.arrays.value > self.arrays.high)
        if outside.any():
            warnings.append(("outside", "an estimate outside its interval is due to noise: it is not a possible value"))
        warnings += self._point_warnings()
        if self.condition is not None:
            warnings.append(("named", f"intervals {self.condition}"))
        if self.uncounted is not None:
            warnings.append(("not-counted", self.uncounted))
        if self.excluded is not None:
            warnings.append(("excluded-units", self.excluded))
        return warnings

    def _point_warnings(self) -> list[tuple[str, str]]:
        """Explanations of intervals with a single value, such as "0 to 0"."""
        points = (self.arrays.low == self.arrays.high) & (self.arrays.noise_scale > 0)
        collapsed = points & self.arrays.is_collapsed
        warnings = []
        if collapsed.any():
            end = float(self.arrays.low[collapsed][0])
            warnings.append(
                (
                    "collapsed",
                    f"{end:g} to {end:g}: the noise moved the whole interval outside the possible values, of "
                    f"which {end:g} is the nearest; the exact value may differ from it",
                )
            )
        if (points & ~collapsed).any():
            end = float(self.arrays.low[points & ~collapsed][0])
            warnings.append(
                ("one-value", f"{end:g} to {end:g}: the noise is too small to leave any other value likely")
            )
        return warnings
