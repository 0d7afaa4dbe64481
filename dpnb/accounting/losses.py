"""What a release costs: frozen, exact values.

A loss is a few exact rational parts that add up, each with a meaning of its own kind:

=============  =====================  ===============================================================================
kind           parts                  what it says of a release
=============  =====================  ===============================================================================
GDP            mu squared, delta      no easier to tell neighbours apart than N(0, 1) from N(mu, 1)
ZCDP           rho, delta             every Renyi divergence D_a is at most rho a (Bun and Steinke 2016)
RDP            rho for each order     the Renyi divergences of these orders are at most these (Mironov 2017)
PureDP         epsilon                epsilon-DP
ApproxDP       epsilon, delta         (epsilon, delta)-DP
PointwiseDP    epsilon, delta         the realised loss is beyond epsilon with probability at most delta
=============  =====================  ===============================================================================

A ``delta`` beside mu or rho is that of approximate GDP or zCDP: both neighbours' outputs share a decomposition in which
a part of weight at least 1 - delta has the property.  Turning one kind into another is a theorem; see ``convert``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

from dpnb.accounting.exact import (
    Number,
    decimal_down,
    decimal_sqrt_down,
    decimal_sqrt_up,
    decimal_up,
    exact,
    from_text,
    non_negative,
    shown,
    to_text,
)
from dpnb.errors import ConversionError, InvalidValueError

__all__ = ["GDP", "RDP", "ZCDP", "ApproxDP", "EpsilonLoss", "Loss", "PointwiseDP", "PureDP", "loss_from_json"]

_ZERO = Fraction(0)


@dataclass(frozen=True, init=False, repr=False)
class Loss:
    """Exact parts that add up; the base of every kind.

    Attributes
    ----------
    parts : tuple of Fraction
        The numbers that add up, none negative; all zero for a release that costs nothing.
    """

    __slots__ = ("parts",)
    parts: tuple[Fraction, ...]
    kind: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part; 0 for a kind that knows none."""
        return _ZERO

    def with_parts(self, parts: tuple[Fraction, ...]) -> Self:
        """A loss of the same kind with other parts, which must not be negative."""
        new = object.__new__(type(self))
        object.__setattr__(new, "parts", parts)
        return new

    @classmethod
    def of(cls, *parts: Fraction) -> Self:
        """The loss with these parts, which must not be negative; unchecked, for figures that are exact already."""
        new = object.__new__(cls)
        object.__setattr__(new, "parts", parts)
        return new

    def __add__(self, other: Self) -> Self:
        """The loss of both releases together, when both were fixed beforehand.

        The sum is a promise about losses that were chosen after seeing earlier answers only when a filter fixed a
        bound on it beforehand.
        """
        if type(other) is not type(self):
            return NotImplemented
        return self.with_parts(tuple([a + b if b else a for a, b in zip(self.parts, other.parts, strict=True)]))

    def __sub__(self, other: Self) -> Self:
        """What is left of a budget after `other`, which it covers."""
        if type(other) is not type(self):
            return NotImplemented
        return self.with_parts(tuple([a - b for a, b in zip(self.parts, other.parts, strict=True)]))

    def within(self, budget: Self) -> bool:
        """Whether no part is above the budget's."""
        for part, most in zip(self.parts, budget.parts, strict=True):
            # The comparison of Fractions, without its search for the type of the other side.
            if part.numerator * most.denominator > most.numerator * part.denominator:
                return False
        return True

    def __bool__(self) -> bool:
        """Whether it costs anything."""
        return any(self.parts)

    def words(self, *, up: bool, with_delta: bool = False) -> str:
        """The loss for a message, for example ``mu=0.5 and delta=1e-06``.

        Parameters
        ----------
        up : bool
            Round up, as a loss must be; a budget is rounded down.
        with_delta : bool
            Name a delta of 0 too.
        """
        rounded = decimal_up if up else decimal_down
        named = zip(self.names, self.parts, strict=True)
        return " and ".join(
            f"{name}={rounded(part)!r}" for name, part in named if part or with_delta or name != "delta"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.words(up=True).replace(' and ', ', ')})"

    def __reduce__(self) -> tuple[Any, ...]:
        return loss_from_json, (self.to_json(),)  # pickling and copying

    def to_json(self) -> dict[str, str]:
        """The loss as texts, read back exactly by :func:`loss_from_json`."""
        named = zip(self.names, self.parts, strict=True)
        return {"kind": self.kind, **{name: to_text(part) for name, part in named}}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> Self:
        """The loss that :meth:`to_json` wrote."""
        return cls.of(*(non_negative(from_text(stored[name]), name=name) for name in cls.names))


class GDP(Loss):
    """Gaussian differential privacy: telling neighbours apart is no easier than N(0, 1) from N(mu, 1).

    Kept as mu squared, because that is what adds up and what a remainder of a budget is exact in (Smith and Thakurta
    2022, Theorem 1).

    Parameters
    ----------
    mu : Number
        At least 0; a float means its shortest decimal.  0 is a release that costs nothing.
    delta : Number
        At least 0.

    Attributes
    ----------
    mu_squared : Fraction
    delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or no number.

    Examples
    --------
    >>> GDP(0.3) == GDP("0.3"), GDP(0.3) + GDP(0.4)
    (True, GDP(mu=0.5))
    """

    __slots__ = ()
    kind: ClassVar[str] = "gdp"
    names: ClassVar[tuple[str, ...]] = (
        "mu_squared",
        "delta",
    )

    def __init__(self, mu: Number, delta: Number = 0.0) -> None:
        object.__setattr__(self, "parts", (non_negative(mu, name="mu") ** 2, non_negative(delta, name="delta")))

    @property
    def mu_squared(self) -> Fraction:
        """Mu squared."""
        return self.parts[0]

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part."""
        return self.parts[1]

    @classmethod
    def from_squared(cls, mu_squared: Number, delta: Number = 0.0) -> GDP:
        """The loss whose mu squared is given, so that mu itself may be irrational.

        Raises
        ------
        InvalidValueError
            A number is negative, not finite or no number.
        """
        return cls.of(non_negative(mu_squared, name="mu_squared"), non_negative(delta, name="delta"))

    @property
    def mu(self) -> float:
        """Mu as a double, rounded up in its decimal meaning; exact if mu is such a decimal."""
        return decimal_sqrt_up(self.mu_squared)

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter that follows from mu, mu squared over two (Bun and Steinke 2016, Prop. 1.6)."""
        return self.mu_squared / 2

    def words(self, *, up: bool, with_delta: bool = False) -> str:
        """The loss for a message, with mu itself: see :meth:`Loss.words`."""
        mu = self.mu if up else decimal_sqrt_down(self.mu_squared)
        delta = decimal_up(self.delta) if up else decimal_down(self.delta)
        return f"mu={mu!r} and delta={delta!r}" if self.delta or with_delta else f"mu={mu!r}"


class ZCDP(Loss):
    """Zero-concentrated differential privacy: D_a <= rho a for every order a > 1 (Bun and Steinke 2016, Def. 1.1).

    Parameters
    ----------
    rho : Number
        At least 0; a float means its shortest decimal.
    delta : Number
        At least 0; above 0 it is approximate zCDP (Whitehouse et al. 2023, Def. 3).

    Attributes
    ----------
    rho, delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or no number.
    """

    __slots__ = ()
    kind: ClassVar[str] = "zcdp"
    names: ClassVar[tuple[str, ...]] = (
        "rho",
        "delta",
    )

    def __init__(self, rho: Number, delta: Number = 0.0) -> None:
        object.__setattr__(self, "parts", (non_negative(rho, name="rho"), non_negative(delta, name="delta")))

    @property
    def rho(self) -> Fraction:
        """The parameter."""
        return self.parts[0]

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part."""
        return self.parts[1]


@dataclass(frozen=True, init=False, repr=False)
class RDP(Loss):
    """Renyi differential privacy of some orders: D_a <= curve[a] for each (Mironov 2017, Def. 4).

    Parameters
    ----------
    curve : mapping of Number to Number
        The loss at each order; orders above 1, losses at least 0.

    Attributes
    ----------
    orders : tuple of Fraction
        Rising; `parts` are the losses at them.

    Raises
    ------
    InvalidValueError
        No order, one that is not above 1 or given twice, or a loss that is negative, not finite or no number.

    Examples
    --------
    >>> RDP({2: 0.1, 8: 0.5}) + RDP({2: 0.1, 8: 0.5})
    RDP({2.0: 0.2, 8.0: 1.0})
    """

    __slots__ = ("orders",)
    orders: tuple[Fraction, ...]
    kind: ClassVar[str] = "rdp"

    def __init__(self, curve: Mapping[Any, Number]) -> None:
        given: object = curve
        if not isinstance(given, Mapping) or not given:
            raise InvalidValueError(
                f"curve must map at least one order to its loss, got {shown(curve)}; give {{2: 0.1}}"
            )
        points = sorted((_order(order), non_negative(rho, name="rho")) for order, rho in curve.items())
        if len({order for order, _ in points}) < len(points):
            raise InvalidValueError(f"curve must give each order once, got {shown(curve)}; leave one of them out")
        object.__setattr__(self, "orders", _one_of_each(tuple(order for order, _ in points)))
        object.__setattr__(self, "parts", tuple(rho for _, rho in points))

    @property
    def curve(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Order and loss, by rising order."""
        return tuple(zip(self.orders, self.parts, strict=True))

    def with_parts(self, parts: tuple[Fraction, ...]) -> RDP:
        """Other losses at the same orders."""
        new = object.__new__(RDP)
        object.__setattr__(new, "orders", self.orders)
        object.__setattr__(new, "parts", parts)
        return new

    def __add__(self, other: RDP) -> RDP:
        """The loss of both releases together; both must speak of the same orders."""
        if type(other) is not RDP:
            return NotImplemented
        if other.orders != self.orders:
            raise ConversionError(
                f"loss: Renyi losses add order by order, got {self!r} and {other!r}; convert both to the same orders"
            )
        return self.with_parts(tuple([a + b for a, b in zip(self.parts, other.parts, strict=True)]))

    def words(self, *, up: bool, with_delta: bool = False) -> str:
        """The curve for a message: see :meth:`Loss.words`; there is no delta."""
        rounded = decimal_up if up else decimal_down
        return f"rho={{{', '.join(f'{decimal_up(order)!r}: {rounded(rho)!r}' for order, rho in self.curve)}}}"

    def __repr__(self) -> str:
        return f"RDP({self.words(up=True).removeprefix('rho=')})"

    def to_json(self) -> dict[str, str]:
        """The loss as texts, one entry an order, read back exactly by :func:`loss_from_json`."""
        return {"kind": self.kind, **{to_text(order): to_text(rho) for order, rho in self.curve}}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> RDP:
        """The loss that :meth:`to_json` wrote."""
        return cls({from_text(order): from_text(rho) for order, rho in stored.items() if order != "kind"})


class EpsilonLoss(Loss):
    """A loss with an epsilon of its own: PureDP, ApproxDP or PointwiseDP."""

    __slots__ = ()

    @property
    def epsilon(self) -> Fraction:
        """In nats."""
        return self.parts[0]


class PureDP(EpsilonLoss):
    """Pure differential privacy: no event's probability changes by more than a factor of e^epsilon.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.

    Attributes
    ----------
    epsilon : Fraction

    Raises
    ------
    InvalidValueError
        The number is negative, not finite or no number.
    """

    __slots__ = ()
    kind: ClassVar[str] = "pure-dp"
    names: ClassVar[tuple[str, ...]] = ("epsilon",)

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "parts", (non_negative(epsilon, name="epsilon"),))


class ApproxDP(EpsilonLoss):
    """Approximate differential privacy: P(S) <= e^epsilon Q(S) + delta for every event S.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    delta : Number
        At least 0.

    Attributes
    ----------
    epsilon, delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or no number.
    """

    __slots__ = ()
    kind: ClassVar[str] = "approx-dp"
    names: ClassVar[tuple[str, ...]] = (
        "epsilon",
        "delta",
    )

    def __init__(self, epsilon: Number, delta: Number = 0.0) -> None:
        object.__setattr__(self, "parts", (non_negative(epsilon, name="epsilon"), non_negative(delta, name="delta")))

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part."""
        return self.parts[1]


class PointwiseDP(EpsilonLoss):
    """Pointwise differential privacy: the realised loss is outside [-epsilon, epsilon] with probability <= delta.

    Stronger than (epsilon, delta)-DP, and not closed under post-processing (Whitehouse et al. 2023, Def. 2).

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    delta : Number
        At least 0.

    Attributes
    ----------
    epsilon, delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or no number.
    """

    __slots__ = ()
    kind: ClassVar[str] = "pointwise-dp"
    names: ClassVar[tuple[str, ...]] = (
        "epsilon",
        "delta",
    )

    def __init__(self, epsilon: Number, delta: Number = 0.0) -> None:
        object.__setattr__(self, "parts", (non_negative(epsilon, name="epsilon"), non_negative(delta, name="delta")))

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part."""
        return self.parts[1]


_KINDS: dict[str, type[Loss]] = {kind.kind: kind for kind in (GDP, ZCDP, RDP, PureDP, ApproxDP, PointwiseDP)}


def loss_from_json(stored: Mapping[str, str]) -> Loss:
    """The loss that a ``to_json`` wrote.

    Parameters
    ----------
    stored : mapping of str to str
        With a ``"kind"``.

    Raises
    ------
    InvalidValueError
        Unknown kind, a missing entry, or an entry that is no stored number.
    """
    kind = stored.get("kind")
    if kind not in _KINDS:
        raise InvalidValueError(
            f"a stored loss must be of kind {', '.join(sorted(_KINDS))}, got {kind!r}; was it written by a newer dpnb?"
        )
    try:
        return _KINDS[kind].from_json(stored)
    except KeyError as missing:
        raise InvalidValueError(f"a stored {kind} loss must have an entry {missing}; was the file edited?") from None


@lru_cache(maxsize=1024)
def _one_of_each(orders: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """The first tuple of these orders, so that comparing the orders of two losses takes no arithmetic."""
    return orders


def _order(order: Any) -> Fraction:
    number = exact(order, name="order")
    if number <= 1:
        raise InvalidValueError(f"order must be greater than 1, got {shown(order)}; give for example 2")
    return number
