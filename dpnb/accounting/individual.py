"""Everyone pays only for the questions that touch them: arithmetic of individual accounting, one array entry a unit.

=========================  ==================================================================
losses_of_linear_query     Feldman and Zrnic 2021, Example 2.7
IndividualFilter           Feldman and Zrnic 2021, Algorithm 3 ("skip"); Theorem 1.2 ("drop")
NormFilter                 Feldman and Zrnic 2021, Algorithm 7
norm_budget_*              Feldman and Zrnic 2021, Corollary 4.7
worst_case_rounds          Feldman and Zrnic 2021, section 4.2
rho_of_descent             Feldman and Zrnic 2021, Proposition 5.1
rho_of_filtered_descent    Feldman and Zrnic 2021, Proposition 5.2
=========================  ==================================================================

Everything per unit here is SENSITIVE: who takes part, how many, what anyone has spent or has left.  None of it may be
shown, logged, counted or turned into an error or a warning; a unit's own figures may be shown to that unit alone.  For
the same reason errors about arrays are constant texts.  Shapes are public.

The noise of a question is drawn ONCE and added to the sum over the active units; the sum may then be divided by a
public constant, never by the number of units or of active units.

Arrays are float64, taken literally, and so is the `sigma` of a question; other numbers mean what `exact` says, so a
budget of the float 0.1 is 1/10, which is below the double 0.1.  Spending is rounded up and what is left down, each
operation to the next double only if it was not exact: no unit is ever under-charged, and dyadic sums stay exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpnb.accounting.exact import (
    Number,
    binary_down,
    binary_up,
    decimal_up,
    exact,
    non_negative,
    positive,
    shown,
    sqrt_up,
)
from dpnb.errors import InvalidValueError

__all__ = [
    "IndividualFilter",
    "NormFilter",
    "OnExhausted",
    "losses_of_linear_query",
    "norm_budget_radius",
    "norm_budget_variance",
    "remaining_of",
    "rho_of_descent",
    "rho_of_filtered_descent",
    "worst_case_rounds",
]

OnExhausted = Literal["skip", "drop"]
_Floats = NDArray[np.float64]
_Exponents = NDArray[np.int32]
_Scalar = TypeVar("_Scalar", bound=np.generic)

# Losses are capped at the largest double; below this bound on budgets a capped loss is refused as the true one is.
_GREATEST_BUDGET = Fraction(2) ** 1000
_UP, _DOWN = np.float64(np.inf), np.float64(-np.inf)


def losses_of_linear_query(norms: ArrayLike, *, sigma: Number, order: Number = 1) -> _Floats:
    """What each unit loses in a sum of per-unit vectors with Gaussian noise: order ||v||^2/(2 sigma^2).

    Parameters
    ----------
    norms : array_like, shape (units,)
        L2 norm of each unit's contribution, finite, >= 0.
    sigma : Number
        Standard deviation of the noise, drawn once for the sum, > 0; a float is its literal binary value.
    order : Number
        Renyi order, >= 1.  At 1 the loss is the rho of zCDP.

    Returns
    -------
    ndarray, shape (units,)
        Nats, at most a few units of the last place above the exact figure and never below it; capped at the largest
        double, which no filter admits.  SENSITIVE.

    Raises
    ------
    InvalidValueError
        A norm is not finite or is negative (the text is constant), sigma <= 0 or order < 1.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Example 2.7.
    """
    scale = positive(Fraction(float(sigma)) if _is_finite_float(sigma) else sigma, name="sigma")
    alpha = exact(order, name="order")
    if alpha < 1:
        raise InvalidValueError(f"order must be at least 1, got {shown(order)}; give 1 for zCDP or a Renyi order")
    values = _per_unit(norms, "norms")
    factor = alpha / (2 * scale**2)
    shift = factor.numerator.bit_length() - factor.denominator.bit_length()
    mantissa = np.float64(binary_up(factor / Fraction(2) ** shift))
    with np.errstate(all="ignore"):
        parts, exponents = np.frexp(values)
        product = _times_up(_times_up(parts, parts), np.full_like(parts, mantissa))
        # Beyond 10^6 every double has overflowed or vanished already.
        losses = _shifted_up(product, 2 * exponents + np.int32(max(-(10**6), min(10**6, shift))))
    return np.minimum(losses, np.finfo(np.float64).max)


def remaining_of(spent: ArrayLike, *, budget: Number) -> _Floats:
    """What each unit has left, max(0, budget - spent), rounded down.  SENSITIVE: each entry is for that unit alone.

    Parameters
    ----------
    spent : array_like, shape (units,)
        Finite, >= 0, in the budget's own scale.
    budget : Number
        >= 0.

    Returns
    -------
    ndarray, shape (units,)

    Raises
    ------
    InvalidValueError
        An entry is not finite or is negative (the text is constant), or the budget is.
    """
    return _minus_down(_limit(budget, "budget"), _per_unit(spent, "spent"))


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class IndividualFilter:
    """Each unit takes part in a question only if its own budget pays for it.

    Parameters
    ----------
    budget : Number
        What each unit may lose in all, zCDP rho or Renyi loss at one order, >= 0 and below 2^1000.
    units : int
        Number of units, >= 0.
    mode : {"skip", "drop"}
        "skip" (Algorithm 3): a unit that cannot pay sits out, is charged nothing and may return for a cheaper
        question.  "drop" (the set S_t of Theorem 1.2): once out, out for ever.  They are different sets and both are
        private; accuracy is with respect to the one that was used.

    Raises
    ------
    InvalidValueError
        A budget or mode outside these ranges, or units that is no integer >= 0.

    Notes
    -----
    A unit's loss must be a function of its own data and of what was released, never of other units.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Theorem 4.3, Algorithm 3 and Theorem 1.2.

    Examples
    --------
    >>> state = IndividualFilter(1, units=2)
    >>> state, active = state.step([0.75, 0.25])
    >>> state
    IndividualFilter(budget=1, mode='skip')
    """

    budget: Fraction
    mode: OnExhausted
    _spent: _Floats = field()
    _inside: NDArray[np.bool_] = field()

    def __init__(self, budget: Number, units: int, mode: OnExhausted = "skip") -> None:
        if mode not in get_args(OnExhausted):
            raise InvalidValueError(f"mode must be 'skip' or 'drop', got {shown(mode)}; give one of them")
        count = _count(units, "units")
        _limit(budget, "budget")
        self._set(exact(budget), mode, np.zeros(count), np.ones(count, dtype=np.bool_))

    def _set(self, budget: Fraction, mode: OnExhausted, spent: _Floats, inside: NDArray[np.bool_]) -> None:
        for name, value in (("budget", budget), ("mode", mode), ("_spent", spent), ("_inside", inside)):
            object.__setattr__(self, name, _frozen(value) if isinstance(value, np.ndarray) else value)

    @property
    def spent(self) -> _Floats:
        """What each unit was charged, rounded up; read-only.  SENSITIVE: each entry is for that unit alone."""
        return self._spent

    @property
    def remaining(self) -> _Floats:
        """What each unit has left, rounded down.  SENSITIVE: each entry is for that unit alone.

        With "drop" a unit that is out keeps a remainder that it can no longer use.
        """
        return remaining_of(self._spent, budget=self.budget)

    def step(self, losses: ArrayLike) -> tuple[Self, NDArray[np.bool_]]:
        """The filter after a question, and who takes part in it.

        Parameters
        ----------
        losses : array_like, shape (units,)
            What each unit would lose if it took part, finite, >= 0, never under-counted.

        Returns
        -------
        filter : IndividualFilter
        active : ndarray of bool, shape (units,)
            The units to sum over.  SENSITIVE, and so is their number.

        Raises
        ------
        InvalidValueError
            A loss is not finite or is negative (the text is constant), or the shape differs.
        """
        charges = _per_unit(losses, "losses", len(self._spent))
        after = _plus_up(self._spent, charges)
        active = after <= _limit(self.budget, "budget")
        if self.mode == "drop":
            active &= self._inside
        state = object.__new__(type(self))
        inside = active.copy() if self.mode == "drop" else self._inside
        state._set(self.budget, self.mode, np.where(active, after, self._spent), inside)
        return state, active

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndividualFilter):
            return NotImplemented
        same = self.budget == other.budget and self.mode == other.mode
        return same and np.array_equal(self._spent, other._spent) and np.array_equal(self._inside, other._inside)

    def __hash__(self) -> int:
        return hash((self.budget, self.mode, self._spent.tobytes(), self._inside.tobytes()))

    def __repr__(self) -> str:
        return f"IndividualFilter(budget={self.budget}, mode={self.mode!r})"


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class NormFilter:
    """Each unit's vectors are clipped to a constant, and to what is left of the unit's budget of squared norms.

    Parameters
    ----------
    clip : Number
        C, > 0: the largest norm of one contribution.
    norm_budget : Number
        B_norm, >= 0 and below 2^1000: the largest sum of a unit's squared clipped norms.
    units : int
        Number of units, >= 0.

    Raises
    ------
    InvalidValueError
        A number outside these ranges.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Algorithm 7.

    Examples
    --------
    >>> state = NormFilter(1, norm_budget=4, units=2)
    >>> state, clipped = state.step([5.0, 0.5])
    >>> state
    NormFilter(clip=1, norm_budget=4)
    """

    clip: Fraction
    norm_budget: Fraction
    _spent: _Floats = field()

    def __init__(self, clip: Number, norm_budget: Number, units: int) -> None:
        positive(clip, name="clip")
        _limit(norm_budget, "norm_budget")
        self._set(exact(clip), exact(norm_budget), np.zeros(_count(units, "units")))

    def _set(self, clip: Fraction, norm_budget: Fraction, spent: _Floats) -> None:
        object.__setattr__(self, "clip", clip)
        object.__setattr__(self, "norm_budget", norm_budget)
        object.__setattr__(self, "_spent", _frozen(spent))

    @property
    def spent(self) -> _Floats:
        """Each unit's sum of squared clipped norms, rounded up; read-only.  SENSITIVE: for that unit alone."""
        return self._spent

    @property
    def radius(self) -> _Floats:
        """Each unit's clipping radius now: min(C, sqrt(B_norm - spent)), rounded down.  SENSITIVE."""
        return np.minimum(self._root(), binary_down(self.clip))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Who can still contribute: a radius above zero, strictly.  SENSITIVE, and so is their number."""
        return self.radius > 0

    def step(self, norms: ArrayLike) -> tuple[Self, _Floats]:
        """The filter after a question, and the norms to which the units' vectors are to be clipped.

        Parameters
        ----------
        norms : array_like, shape (units,)
            L2 norm of each unit's vector, finite, >= 0.

        Returns
        -------
        filter : NormFilter
        clipped_norms : ndarray, shape (units,)
            min(norm, radius); 0 for a norm of 0.  SENSITIVE.

        Raises
        ------
        InvalidValueError
            A norm is not finite or is negative (the text is constant), or the shape differs.
        """
        values = _per_unit(norms, "norms", len(self._spent))
        root = self._root()
        clipped = np.minimum(values, np.minimum(root, binary_down(self.clip)))
        with np.errstate(all="ignore"):
            parts, exponents = np.frexp(clipped)
            after = _plus_up(self._spent, _shifted_up(_times_up(parts, parts), 2 * exponents))
        # Who takes all that is left has nothing left, not the crumb by which the root was rounded down.
        after = np.where(clipped >= root, _limit(self.norm_budget, "norm_budget"), after)
        state = object.__new__(type(self))
        state._set(self.clip, self.norm_budget, after)
        return state, clipped

    def _root(self) -> _Floats:
        return _root_down(remaining_of(self._spent, budget=self.norm_budget))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NormFilter):
            return NotImplemented
        same = self.clip == other.clip and self.norm_budget == other.norm_budget
        return same and np.array_equal(self._spent, other._spent)

    def __hash__(self) -> int:
        return hash((self.clip, self.norm_budget, self._spent.tobytes()))

    def __repr__(self) -> str:
        return f"NormFilter(clip={self.clip}, norm_budget={self.norm_budget})"


def norm_budget_variance(norm_budget: Number, *, rho: Number) -> float:
    """Variance of the noise of each sum, B_norm/(2 rho), that makes a budget of squared norms rho-zCDP; rounded up.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Corollary 4.7.
    """
    return binary_up(positive(norm_budget, name="norm_budget") / (2 * positive(rho, name="rho")))


def norm_budget_radius(norm_budget: Number, *, rho: Number, coordinates: int, delta: Number) -> float:
    """What a sum's error stays within in every coordinate, with probability 1 - delta: sqrt(B_norm log(d/delta)/rho).

    The error is about the ACTIVE units' sum; who was left out is not in it.  Rounded up.

    Raises
    ------
    InvalidValueError
        norm_budget or rho <= 0, coordinates < 1, or delta outside (0, 1).

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Corollary 4.7.
    """
    budget, kappa = positive(norm_budget, name="norm_budget"), positive(rho, name="rho")
    miss, width = positive(delta, name="delta"), _count(coordinates, "coordinates")
    if miss >= 1 or width < 1:
        raise InvalidValueError(
            f"delta must be below 1 and coordinates at least 1, got {shown(delta)} and {width}; give such numbers"
        )
    context = Context(prec=60, rounding=ROUND_CEILING)
    ratio = context.divide(Decimal(width * miss.denominator), Decimal(miss.numerator))
    # Decimal's logarithm rounds to nearest, whatever the context says.
    logarithm = Fraction(context.next_plus(context.ln(ratio)))
    return sqrt_up(budget * logarithm / kappa)


def worst_case_rounds(budget: Number, *, sigma: Number, clip: Number, order: Number = 1) -> int:
    """How many questions everybody surely pays for: floor(2 B sigma^2/(C^2 order)), of public numbers only.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, section 4.2.
    """
    scale, bound = positive(sigma, name="sigma"), positive(clip, name="clip")
    return math.floor(2 * non_negative(budget, name="budget") * scale**2 / (bound**2 * positive(order, name="order")))


def rho_of_descent(steps: int, *, noise_multiplier: Number) -> float:
    """The zCDP rho of k gradient steps, k/(2 sigma^2), rounded up.

    Each step's noise N(0, sigma^2 C^2 I) is drawn once and added to the sum of the clipped gradients.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Algorithm 6 and Proposition 5.1.
    """
    return decimal_up(_count(steps, "steps") / (2 * positive(noise_multiplier, name="noise_multiplier") ** 2))


def rho_of_filtered_descent(norm_budget: Number, *, noise_multiplier: Number, clip: Number) -> float:
    """The zCDP rho of any number of gradient steps under a norm filter, B_norm/(2 sigma^2 C^2), rounded up.

    Each step's noise N(0, sigma^2 C^2 I) is drawn once and added to the sum of the clipped gradients.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Algorithm 7 and Proposition 5.2.
    """
    scale = positive(noise_multiplier, name="noise_multiplier") * positive(clip, name="clip")
    return decimal_up(non_negative(norm_budget, name="norm_budget") / (2 * scale**2))


def _per_unit(values: ArrayLike, name: str, units: int | None = None) -> _Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = None
    # Raised outside the handler: the caught error may quote an entry.
    if array is None:
        raise InvalidValueError(f"{name} must be numbers, one for each unit; check the values")
    if array.ndim != 1 or (units is not None and len(array) != units):
        raise InvalidValueError(f"{name} must have one entry for each unit; give an array of that shape")
    if not np.all((array >= 0) & (array < np.inf)):
        raise InvalidValueError(f"{name} must be finite and not negative in every entry; check the values")
    return array


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InvalidValueError(f"{name} must be a whole number of at least 0, got {shown(value)}; give an int")
    return int(value)


def _limit(budget: Number, name: str) -> float:
    """A double is at most this double if and only if it is at most the budget."""
    number = non_negative(budget, name=name)
    if number >= _GREATEST_BUDGET:
        raise InvalidValueError(f"{name} must be below 2**1000, got {shown(budget)}; give a smaller one")
    return binary_down(number)


def _is_finite_float(value: Number) -> bool:
    return isinstance(value, (float, np.floating)) and math.isfinite(value)


def _frozen(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    array.setflags(write=False)
    return array


def _plus_up(a: _Floats, b: _Floats) -> _Floats:
    """The sum, rounded up: Knuth's exact error term tells whether the nearest double is below."""
    with np.errstate(all="ignore"):
        total = a + b
        back = total - a
        error = (a - (total - back)) + (b - back)
        return np.where(error > 0, np.nextafter(total, _UP), total)


def _minus_down(limit: float, b: _Floats) -> _Floats:
    """max(0, limit - b), rounded down."""
    with np.errstate(all="ignore"):
        a = np.full_like(b, limit)
        total = a - b
        back = total - a
        error = (a - (total - back)) + (-b - back)
        return np.maximum(np.where(error < 0, np.nextafter(total, _DOWN), total), 0.0)


def _product(a: _Floats, b: _Floats) -> tuple[_Floats, _Floats]:
    """The product and its exact error (Dekker), for entries in [1/16, 4] or 0, where nothing overflows or vanishes."""
    split_a, split_b = 134217729.0 * a, 134217729.0 * b  # 2^27 + 1 (Veltkamp)
    high_a, high_b = split_a - (split_a - a), split_b - (split_b - b)
    low_a, low_b = a - high_a, b - high_b
    product = a * b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def _times_up(a: _Floats, b: _Floats) -> _Floats:
    product, error = _product(a, b)
    return np.where(error > 0, np.nextafter(product, _UP), product)


def _shifted_up(parts: _Floats, exponents: _Exponents) -> _Floats:
    """The numbers parts 2^exponents, rounded up where it falls among the subnormal numbers."""
    shifted = np.ldexp(parts, exponents)
    lost = np.ldexp(shifted, -exponents) < parts
    return np.where(lost, np.nextafter(shifted, _UP), shifted)


def _root_down(values: _Floats) -> _Floats:
    parts, exponents = np.frexp(values)
    odd = exponents & 1
    parts = np.ldexp(parts, odd)
    root = np.sqrt(parts)
    square, error = _product(root, root)
    above = (square > parts) | ((square == parts) & (error > 0))
    roots: _Floats = np.ldexp(np.where(above, np.nextafter(root, _DOWN), root), (exponents - odd) // 2)
    return roots
