"""Operators of estimates: arithmetic and comparisons with numbers and with other estimates.

Post-processing, and free; see `dpnb.results.tables.intervals` for what a comparison can decide.  The intervals combine
those of the operands (the MOVER of Zou and Donner 2008, *Construction of confidence intervals about effect measures*:
square-and-add of the distances from estimate to limit, and for ratios the roots of the corresponding quadratic, which
are Fieller's for symmetric limits), before these were clipped to the range of the quantity.  That assumes independent
noise, so operands that share a measurement are refused.  It is approximate: in all simulations a nominal 95% covers at
least 93%, or 92% for sums of discovered groups near the threshold (tests/statistical/test_arithmetic.py and
test_discovered.py).

An analyst who refines one operand because of the other chooses when to stop, so the interval of a first observation is
no longer one at a fixed time.  As soon as an operand has more than one observation, all operands therefore enter with
the half-width that holds for all observations at once (`anytime_arrays`).  There is no proof that square-and-add of
such half-widths holds for all observations at once too: the limits of each operand do, and the combination is
simulated, with analysts who know the true value and refine until the result misses it (test_arithmetic.py): of
differences and ratios of two refined answers fewer than 7.7% are missed for a nominal 5%, and where one of the two
cannot be refined (``final=True``, or a discovered group) about 6% of differences and sums.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from os.path import commonprefix
from typing import Any, NoReturn, Self, TypeVar

import numpy as np

from dpnb._plan.unreleased import Unreleased
from dpnb.copying import NotCopyable
from dpnb.errors import RequestError
from dpnb.results.display import without_groups
from dpnb.results.estimates.noisy import (
    EXACT,
    MONOTONE,
    Combination,
    IntervalArrays,
    SampledAs,
    difference,
    exact_at,
    increased,
    negative,
    ratio,
    scaled,
)
from dpnb.results.tables.index import OfEstimates
from dpnb.results.tables.intervals import ABOUT, Comparison, are_apart, repeated, said_of_both, with_sampling
from dpnb.schema import plain

# --- operators of estimates -------------------------------------------------------------------------------------------


UFUNCS = {
    **{"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv"},
    **{"negative": "neg", "positive": "pos", "equal": "eq", "not_equal": "ne"},
    **{"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"},
}
"""numpy functions that are operators of answers."""

REFLECTED = {
    **{"add": "__radd__", "sub": "__rsub__", "mul": "__rmul__", "truediv": "__rtruediv__", "eq": "__eq__"},
    **{"ne": "__ne__", "lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__"},
}

E = TypeVar("E")
R = TypeVar("R")


def _leaves_private_objects(method: Callable[[Any, object], R]) -> Callable[[Any, object], R]:
    """Leave the operator to a column, for which a number is a constant, and to a query, which refuses it."""

    @wraps(method)
    def operate(self: Any, other: object) -> R:
        return NotImplemented if isinstance(other, NotCopyable | Unreleased) else method(self, other)

    return operate


def _shown(other: object) -> str:
    """An operand in a message; a table or an array by its type."""
    is_table = hasattr(other, "__array__") and not isinstance(other, Operators)
    return f"a {type(other).__name__}" if is_table else repr(other)


def as_float(other: object) -> float | None:
    """A number of Python or numpy, infinite beyond the range of doubles; None for anything else."""
    number = plain(other)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _said_once(first: str, sign: str, second: str) -> str:
    """Two titles with an operator between them; what both begin with, before a group or a condition, is said once.

    >>> _said_once("mean of age, year 2001", "-", "mean of age, year 2000")
    'mean of age: [year 2001] - [year 2000]'
    >>> _said_once("mean of age", "-", "mean of pay")
    '[mean of age] - [mean of pay]'
    """
    both = commonprefix((first, second))  # noqa: RUF071  (characters are meant)
    at = max(both.rfind(" where "), both.rfind(", ") if " " in both.rpartition(", ")[2] else -1)
    if at < 0 or both[:at].count("[") != both[:at].count("]"):
        return f"[{first}] {sign} [{second}]"
    mine, others = (words[at:].lstrip(", ") for words in (first, second))
    return f"{first[:at]}: [{mine}] {sign} [{others}]"


class Operators(OfEstimates[E]):
    """The operators."""

    __pandas_priority__ = 100_000  # pandas leaves operators with its own objects to this class

    @_leaves_private_objects
    def __sub__(self, other: object) -> E:
        combined: E = self._combine("-", other, difference)
        return combined

    def __rsub__(self, other: object) -> E:
        combined: E = self._negative()._combine("+", other, lambda a, b: difference(a, negative(b)))
        return combined

    @_leaves_private_objects
    def __add__(self, other: object) -> E:
        combined: E = self._combine("+", other, lambda a, b: difference(a, negative(b)))
        return combined

    __radd__ = __add__

    @_leaves_private_objects
    def __truediv__(self, other: object) -> E:
        combined: E = self._combine("/", other, ratio)
        return combined

    def __rtruediv__(self, other: object) -> E:
        combined: E = self._combine("divided into", other, lambda a, b: ratio(b, a))
        return combined

    @_leaves_private_objects
    def __mul__(self, other: object) -> E:
        if isinstance(other, Operators):
            raise RequestError(
                "*: an answer can be multiplied by a number only; got another answer; query the product of the "
                "columns instead; an odds ratio is np.exp of the coefficients of df.regress(..., family='logistic')"
            )
        combined: E = self._combine("*", other, lambda a, b: scaled(a, float(b.value[0, 0])))
        return combined

    __rmul__ = __mul__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """The operators of numpy's numbers and arrays, as those of Python."""
        if ufunc.__name__ in MONOTONE and method == "__call__" and not options:
            self._refuse_dates(f"np.{ufunc.__name__}")
            whole = self._part(f"{ufunc.__name__} of {self.description}", slice(None), slice(None))
            return whole._mapped(lambda cells: increased(cells, MONOTONE[ufunc.__name__]))
        name = UFUNCS.get(ufunc.__name__)
        if name is None or method != "__call__" or options:
            raise RequestError(
                f"np.{ufunc.__name__} of {self.description}: is not offered, since its interval is not known; use it "
                "on .estimate, which has no interval"
            )
        if len(inputs) == 1:
            return getattr(operator, name)(self)
        left, right = inputs
        if isinstance(left, Operators):
            return getattr(operator, name)(left, right)
        number = plain(left)  # an array is refused by the reflected operator
        return getattr(self, REFLECTED[name])(number)

    def __neg__(self) -> E:
        negated: E = self._negative()
        return negated

    def __pos__(self) -> Self:
        return self

    @_leaves_private_objects
    def __lt__(self, other: object) -> Comparison:
        return self._compare("<", other)

    @_leaves_private_objects
    def __le__(self, other: object) -> Comparison:
        return self._compare("<=", other)

    @_leaves_private_objects
    def __gt__(self, other: object) -> Comparison:
        return self._compare(">", other)

    @_leaves_private_objects
    def __ge__(self, other: object) -> Comparison:
        return self._compare(">=", other)

    def _compare(self, sign: str, other: object) -> Comparison:
        """Compare with a number; another answer is subtracted first, and the difference compared with 0."""
        self._refuse_dates(sign)
        if isinstance(other, Operators):
            self._refuse_other(sign, other)
            between: Any = self - other
            compared: Comparison = between._compare(sign, 0)
            return compared
        number = as_float(other)
        if number is None or math.isnan(number):
            raise RequestError(
                f"{sign}: an answer is compared with a number or another answer; got {_shown(other)}; use .estimate to "
                "compare it with anything else"
            )
        same = ("description", "names", "keys", "outputs", "arrays", "confidence", "simultaneous", "notice")
        fields = {name: getattr(self, name) for name in same}
        wider = self.population_arrays  # where one number has none, the comparison is about the table
        wider = None if wider is None or np.isnan(wider.low).any() else wider
        return Comparison(operator=sign, number=number, population_arrays=wider, **fields)

    def _row_of(self, other: Any) -> int | None:
        """The group of these estimates that the other operand is, such as ``a[1984]`` in ``a / a[1984]``."""
        if not other.is_scalar or self.is_scalar or self.outputs is not None:
            return None
        sharing = (
            row for row, ids in enumerate(self.measurement_ids) if any(ids & own for own in other.measurement_ids)
        )
        whole: Any = self
        return next((row for row in sharing if whole[self.keys[row]]._content() == other._content()), None)

    def _refuse_other(self, sign: str, other: Any, same: int | None = None) -> list[tuple[Any, Any]]:
        """Refuse an answer with other groups, another confidence or the same noise; the measurements of each group.

        `same` is the group that the other operand is, if any, whose result is exact.
        """
        if not other.is_scalar and (other.names, other.keys, other.outputs) != (self.names, self.keys, self.outputs):
            raise RequestError(
                f"{sign}: both answers must have the same groups, or one of them must be a single number; got "
                f"{self.description} and {other.description}; select one group with [key]"
            )
        if other.confidence != self.confidence:
            raise RequestError(
                f"{sign}: both answers must have the same confidence; got {self.confidence:g} and "
                f"{other.confidence:g}; release both with the same confidence="
            )
        other_ids = [*other.measurement_ids] * len(self.measurement_ids) if other.is_scalar else other.measurement_ids
        id_pairs = list(zip(self.measurement_ids, other_ids, strict=True))
        if any(mine & others for row, (mine, others) in enumerate(id_pairs) if row != same):
            raise RequestError(
                f"{sign}: {self.description} and {other.description} use the same noise, so their errors are not "
                "independent; query the result directly, for example with .proportions() of an answer or .ratio() of "
                "columns"
            )
        return id_pairs

    def _refuse_dates(self, verb: str) -> None:
        """Refuse arithmetic of dates, whose intervals are intervals of time."""
        if self.dates:
            raise RequestError(
                f"{verb}: is not offered for dates, such as {self.description}; use .estimate, which is a pandas "
                "Timestamp or has several, or .interval"
            )

    def _negative(self) -> Any:
        self._refuse_dates("-")
        return self._part(f"-[{self.description}]", slice(None), slice(None))._mapped(negative)

    @property
    def _not_counts(self) -> SampledAs | None:
        """The same of numbers that are computed from these, which are no counts."""
        return None if self.sampled is None else SampledAs(self.sampled.z)

    def _mapped(self, function: Callable[[IntervalArrays], IntervalArrays]) -> Any:
        with np.errstate(all="ignore"):  # a number beyond the range of doubles is infinite or unknown
            whole: Any = self
            return replace(whole, **self._intervals(function), sampled=self._not_counts, decimals=None)

    def _combine(self, sign: str, other: object, combine: Combination) -> Any:
        self._refuse_dates(sign)
        if isinstance(other, Operators):
            other._refuse_dates(sign)
        else:
            number = as_float(other)
            if number is None or not math.isfinite(number):
                raise RequestError(
                    f"{sign}: the other operand must be an answer or a finite number; got {_shown(other)}; use "
                    ".estimate to compute with anything else"
                )
            if sign == "/" and not number:
                raise RequestError("/: the divisor must not be 0")
            exact = np.full((1, 1), number)
            words = f"[{self.description}] {sign} {number:g}"
            constant = IntervalArrays(exact, exact, exact, np.zeros((1, 1)))
            whole = self._part(words, slice(None), slice(None))
            if sign in "+-":  # only shifted: clipped limits stay clipped
                shift = number if sign == "+" else -number
                return whole._mapped(lambda cells: cells.rescaled(shift=shift))
            if sign == "/":
                return whole._mapped(lambda cells: scaled(cells, 1 / number))
            return whole._mapped(lambda cells: combine(cells, constant))
        same = self._row_of(other) if sign in EXACT else None
        id_pairs = self._refuse_other(sign, other, same)
        combine = combine if same is None else exact_at(same, EXACT[sign], combine)
        words = other.description
        if same is not None:
            words = words.removeprefix(f"{without_groups(self.description, self.names)[0]}, ")
        whole = self._part(_said_once(self.description, sign, words), slice(None), slice(None))
        anytime = combine(self.anytime_arrays or self.arrays, other.anytime_arrays or other.arrays)
        refined = self.is_refined or other.is_refined
        compared = [values for row, values in enumerate(self.group_values) if row != same]
        apart = are_apart(compared, other.group_values)

        def sampled(*, anytime: bool, tested: bool = False) -> IntervalArrays | None:
            mine, others = (with_sampling(one, apart, anytime=anytime, tested=tested) for one in (self, other))
            return None if mine is None or others is None else combine(mine, others)

        return replace(
            whole,
            arrays=anytime if refined else combine(self.arrays, other.arrays),
            anytime_arrays=anytime,
            population_arrays=sampled(anytime=refined),
            anytime_population_arrays=sampled(anytime=True),
            tested_arrays=None if refined else sampled(anytime=False, tested=True),
            group_values=tuple(
                mine & others
                for mine, others in zip(self.group_values, repeated(other.group_values, len(id_pairs)), strict=False)
            ),
            sampled=self._not_counts if self._not_counts == other._not_counts else None,
            is_refined=refined,
            measurement_ids=tuple(mine | others for mine, others in id_pairs),
            **{name: said_of_both(getattr(self, name), getattr(other, name)) for name in ABOUT},
            decimals=None,
        )

    def _not_offered(self, *_: object) -> NoReturn:
        raise RequestError(
            f"{self.description}: has only the operators +, -, *, / and comparisons, whose intervals are known; use "
            ".estimate for others"
        )

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _not_offered
    __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _not_offered
    __abs__ = __invert__ = _not_offered
