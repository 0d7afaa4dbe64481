"""Numbers with intervals, by group: the content of an answer, and the result of arithmetic between answers.

Arithmetic between answers is post-processing and free; see `dpnb.results.arithmetic` for its intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dpnb._plan.schema import Key, plain
from dpnb.errors import RequestError
from dpnb.results.arithmetic import difference, negative, ratio, scaled
from dpnb.results.display import Displayed, to_picture
from dpnb.results.estimates.noisy import IntervalArrays

if TYPE_CHECKING:
    import pandas as pd

MeasurementIds = tuple[frozenset[tuple[int, int]], ...]
"""For each group the measurements that it is computed from: row of the ledger, and cell."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Estimates(Displayed):
    """Estimates with intervals.

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
    population : str or None
        Which units are counted, if some may be excluded.
    condition : str or None
        The condition under which its intervals hold, if any.
    measurement_ids : tuple of frozenset
        For each group, the measurements that it is computed from.
    anytime_arrays : IntervalArrays or None
        Like `arrays`, with intervals that hold for all observations at once; None if `arrays` has such intervals.
    is_refined : bool
        Whether any number combines more than one observation.
    """

    description: str
    names: tuple[str, ...]
    keys: tuple[tuple[Key, ...], ...]
    outputs: tuple[str, tuple[Key, ...]] | None
    arrays: IntervalArrays
    confidence: float
    simultaneous: bool = False
    notice: str | None = None
    population: str | None = None
    condition: str | None = None
    measurement_ids: MeasurementIds = field(default=(), repr=False)
    anytime_arrays: IntervalArrays | None = field(default=None, repr=False)
    is_refined: bool = False

    __array_ufunc__ = None  # so that numpy arrays defer arithmetic to this class

    # --- values ------------------------------------------------------------------------------------------------

    @property
    def is_scalar(self) -> bool:
        """Whether there is a single number."""
        return not self.names and self.outputs is None

    @property
    def estimate(self) -> float | pd.Series | pd.DataFrame:
        """A float, a pandas Series, or for several statistics of groups a DataFrame with one column each."""
        return self._shaped("estimate")  # type: ignore[no-any-return]

    @property
    def noise_scale(self) -> float | pd.Series | pd.DataFrame:
        """Standard deviation of the noise, in the estimate's units and shape; approximate for non-linear estimates."""
        return self._shaped("noise_scale")  # type: ignore[no-any-return]

    @property
    def interval(self) -> tuple[float, float] | pd.DataFrame:
        """``(low, high)`` of a single number, otherwise a pandas DataFrame with these columns."""
        if self.is_scalar:
            return float(self.arrays.low[0, 0]), float(self.arrays.high[0, 0])
        return self.to_pandas()[["low", "high"]]

    def to_pandas(self) -> pd.DataFrame:
        """Estimate, low, high and noise_scale; one row for each number."""
        import pandas as pd  # imported when first used

        columns = {
            "estimate": self.arrays.value,
            "low": self.arrays.low,
            "high": self.arrays.high,
            "noise_scale": self.arrays.noise_scale,
        }
        labels = [(*key, *output) for key in self.keys for output in self._labels]
        names = [*self.names, *([self.outputs[0]] if self.outputs else [])]
        index: Any = pd.RangeIndex(1)
        if len(names) == 1:
            index = pd.Index([label[0] for label in labels], name=names[0])
        elif names:
            index = pd.MultiIndex.from_tuples(labels, names=names)
        return pd.DataFrame({name: values.ravel().copy() for name, values in columns.items()}, index=index)

    @property
    def _labels(self) -> list[tuple[Key, ...]]:
        return [()] if self.outputs is None else [(label,) for label in self.outputs[1]]

    def _shaped(self, column: str) -> Any:
        if self.is_scalar:
            return float(getattr(self.arrays, {"estimate": "value"}.get(column, column))[0, 0])
        series = self.to_pandas()[column]
        return series.unstack(sort=False) if self.names and self.outputs else series

    def __float__(self) -> float:
        if not self.is_scalar:
            raise RequestError(
                f"{self.description}: is not a single number; use .estimate, or select one number with [key]"
            )
        return float(self.arrays.value[0, 0])

    def __round__(self, digits: int = 0) -> Any:
        return round(float(self), digits) if self.is_scalar else self.estimate.round(digits)  # type: ignore[union-attr]

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
        group = tuple(plain(part) for part in key) if isinstance(key, tuple) else (wanted,)
        if self.names and group in self.keys:
            index = self.keys.index(group)
            labels = ", ".join(f"{name} {part}" for name, part in zip(self.names, group, strict=True))
            words = self.description.replace(f" by {', '.join(self.names)}", "", 1).rstrip(",")
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
        labels = {"names": self.names, "keys": self.keys, "outputs": self.outputs}
        return Estimates(
            description=words,
            arrays=self.arrays.select(rows, columns),
            anytime_arrays=None if self.anytime_arrays is None else self.anytime_arrays.select(rows, columns),
            is_refined=self.is_refined,
            measurement_ids=self.measurement_ids[rows],
            confidence=self.confidence,
            simultaneous=self.simultaneous,
            notice=self.notice,
            population=self.population,
            condition=self.condition,
            **{**labels, **changes},
        )

    # --- arithmetic --------------------------------------------------------------------------------------------

    def __sub__(self, other: object) -> Estimates:
        return self._combine("-", other, difference)

    def __rsub__(self, other: object) -> Estimates:
        return self._negative() + other

    def __add__(self, other: object) -> Estimates:
        return self._combine("+", other, lambda a, b: difference(a, negative(b)))

    __radd__ = __add__

    def __truediv__(self, other: object) -> Estimates:
        return self._combine("/", other, ratio)

    def __rtruediv__(self, other: object) -> Estimates:
        return self._combine("divided into", other, lambda a, b: ratio(b, a))

    def __mul__(self, other: object) -> Estimates:
        if isinstance(other, Estimates):
            raise RequestError(
                "*: an answer can be multiplied by a number only; got another answer; query the product of the "
                "columns instead"
            )
        return self._combine("*", other, lambda a, b: scaled(a, float(b.value[0, 0])))

    __rmul__ = __mul__

    def __neg__(self) -> Estimates:
        return self._negative()

    def _negative(self) -> Estimates:
        return self._part(f"-[{self.description}]", slice(None), slice(None))._mapped(negative)

    def _mapped(self, function: Callable[[IntervalArrays], IntervalArrays]) -> Self:
        with np.errstate(all="ignore"):  # a number beyond the range of doubles is infinite or unknown
            anytime = None if self.anytime_arrays is None else function(self.anytime_arrays)
            return replace(self, arrays=function(self.arrays), anytime_arrays=anytime)

    def _combine(
        self, operator: str, other: object, combine: Callable[[IntervalArrays, IntervalArrays], IntervalArrays]
    ) -> Estimates:
        if not isinstance(other, Estimates):
            number = plain(other)
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise RequestError(f"{operator}: the other operand must be an answer or a finite number; got {other!r}")
            if operator == "/" and not number:
                raise RequestError("/: the divisor must not be 0")
            exact = np.full((1, 1), float(number))
            words = f"[{self.description}] {operator} {number:g}"
            constant = IntervalArrays(exact, exact, exact, np.zeros((1, 1)))
            whole = self._part(words, slice(None), slice(None))
            if operator in "+-":  # only shifted: clipped limits stay clipped
                shift = float(number) if operator == "+" else -float(number)
                return whole._mapped(lambda cells: cells.rescaled(shift=shift))
            if operator == "/":
                return whole._mapped(lambda cells: scaled(cells, 1 / number))
            return whole._mapped(lambda cells: combine(cells, constant))
        if not other.is_scalar and (other.names, other.keys, other.outputs) != (self.names, self.keys, self.outputs):
            raise RequestError(
                f"{operator}: both answers must have the same groups, or one of them must be a single number; got "
                f"{self.description} and {other.description}; select one group with [key]"
            )
        if other.confidence != self.confidence:
            raise RequestError(
                f"{operator}: both answers must have the same confidence; got {self.confidence:g} and "
                f"{other.confidence:g}; release both with the same confidence="
            )
        other_ids = other.measurement_ids * len(self.measurement_ids) if other.is_scalar else other.measurement_ids
        id_pairs = list(zip(self.measurement_ids, other_ids, strict=True))
        if any(mine & others for mine, others in id_pairs):
            raise RequestError(
                f"{operator}: {self.description} and {other.description} use the same noise, so their errors are not "
                "independent; query the result directly, for example with .proportions() of an answer or .ratio() of "
                "columns"
            )
        whole = self._part(f"[{self.description}] {operator} [{other.description}]", slice(None), slice(None))
        anytime = combine(self.anytime_arrays or self.arrays, other.anytime_arrays or other.arrays)
        refined = self.is_refined or other.is_refined
        return replace(
            whole,
            arrays=anytime if refined else combine(self.arrays, other.arrays),
            anytime_arrays=anytime,
            is_refined=refined,
            measurement_ids=tuple(mine | others for mine, others in id_pairs),
            notice=self.notice or other.notice,
            population=self.population or other.population,
            condition=self.condition or other.condition,
        )

    # --- display -----------------------------------------------------------------------------------------------

    def plot(self, *, history: bool = False) -> Any:
        """The numbers with their intervals as a ``plotly.graph_objects.Figure``; free.

        Parameters
        ----------
        history : bool
            Plot the answers after each observation instead of the current one; for released answers only.

        Raises
        ------
        RequestError
            plotly is not installed, or there is no history.
        """
        if not isinstance(history, bool | np.bool_):
            raise RequestError(f"history: must be True or False; got {history!r}")
        return to_picture(self, bool(history))

    @property
    def history(self) -> Any:
        """The answers after each observation; only a released answer has a history.

        Raises
        ------
        RequestError
            These estimates are not a released answer.
        """
        raise RequestError(
            f"history: belongs to a released answer, but {self.description} was computed from answers or is part "
            "of one; use the .history of those answers"
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        arrays = (getattr(self.arrays, name).tobytes() for name in _ARRAYS)
        return self.description, self.names, self.keys, self.outputs, self.confidence, self.simultaneous, *arrays

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """Warnings about the estimates: the id of the explanation, and the text."""
        warnings = []
        if np.isnan(self.arrays.value).any():
            warnings.append(("unknown", "unknown: the noise is too large, or the statistic is not defined"))
        with np.errstate(invalid="ignore"):
            outside = (self.arrays.value < self.arrays.low) | (self.arrays.value > self.arrays.high)
        if outside.any():
            warnings.append(("outside", "an estimate outside its interval is due to noise: it is not a possible value"))
        if self.condition is not None:
            warnings.append(("named", f"intervals {self.condition}"))
        if self.population is not None:
            warnings.append(("excluded-units", self.population))
        return warnings


_ARRAYS = ("value", "low", "high", "noise_scale")
