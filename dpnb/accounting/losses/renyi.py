"""Renyi losses at several orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from dpnb.accounting.conversions.directed import checked_order
from dpnb.accounting.exact import Number, amount_text, decimal_up, exact, from_text, non_negative, shown, to_text
from dpnb.accounting.losses.loss import Loss
from dpnb.copying import safe_repr
from dpnb.errors import ConversionError, InvalidValueError


@dataclass(frozen=True, init=False, repr=False)
class RDP(Loss):
    """Renyi differential privacy of several orders: D_a <= curve[a] for each order a (Mironov 2017, Definition 4).

    With a delta it is approximate Renyi DP: the outputs P and Q of any two neighbours can be written as
    (1 - delta) P' + delta P" and (1 - delta) Q' + delta Q", where P' and Q' have these divergences, in both
    directions, at all these orders.

    Parameters
    ----------
    curve : mapping of Number to Number
        The loss at each order; orders above 1, losses at least 0.
    delta : Number, default 0
        At least 0; above 0 it is approximate Renyi DP, the weight of the bad part P".

    Attributes
    ----------
    orders : tuple of Fraction
        In ascending order; `parts` are the losses at these orders, and delta.
    delta : Fraction

    Raises
    ------
    InvalidValueError
        No order, an order that is not above 1 or given twice, or a loss or delta that is negative, not finite or not a
        number.

    Examples
    --------
    >>> RDP({2: 0.1, 8: 0.5}) + RDP({2: 0.1, 8: 0.5}, delta=1e-9)
    RDP({2.0: 0.2, 8.0: 1.0}, delta=1e-09)
    """

    __slots__ = ("orders",)
    orders: tuple[Fraction, ...]
    kind: ClassVar[str] = "rdp"

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """One for each order, and that of delta."""
        return (*("rho",) * len(self.orders), "delta")

    def __init__(self, curve: Mapping[Any, Number], delta: Number = 0.0) -> None:
        mapping: object = curve
        if not isinstance(mapping, Mapping) or not mapping:
            raise InvalidValueError(
                f"curve must map at least one order to its loss, got {shown(curve)}; give {{2: 0.1}}"
            )
        points = sorted((checked_order(order), non_negative(rho, name="rho")) for order, rho in curve.items())
        if len({order for order, _ in points}) < len(points):
            raise InvalidValueError(f"curve must give each order once, got {shown(curve)}; leave one of them out")
        object.__setattr__(self, "orders", _one_of_each(tuple(order for order, _ in points)))
        bad = non_negative(delta, name="delta")
        object.__setattr__(self, "parts", (*(rho for _, rho in points), bad))

    @property
    def delta(self) -> Fraction:
        return self.parts[-1]

    @property
    def curve(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Pairs of order and loss, by ascending order."""
        return tuple(zip(self.orders, self.parts[:-1], strict=True))

    @property
    def noise_mu_squared(self) -> Fraction:
        """The least over the orders: Gaussian noise has the Renyi loss a mu^2/2."""
        return min(2 * rho / order for order, rho in self.curve)

    def _of_same_kind(self, parts: tuple[Fraction, ...]) -> RDP:
        """Other losses at the same orders."""
        new = object.__new__(RDP)
        object.__setattr__(new, "orders", self.orders)
        object.__setattr__(new, "parts", parts)
        return new

    def like(self, other: object) -> bool:
        """Whether `other` is a Renyi loss.

        Parameters
        ----------
        other : Loss
            Another loss.

        Raises
        ------
        ConversionError
            The other loss has other orders.
        """
        if type(other) is not RDP:
            return False
        if other.orders != self.orders:
            raise ConversionError(
                f"loss: Renyi losses are counted order by order, got {self!r} and {other!r}; convert both to the same "
                "orders"
            )
        return True

    def format(self, *, up: bool, with_delta: bool = False, digits: int | None = None) -> str:
        rhos = ", ".join(f"{_shown(order)}: {amount_text(rho, up, digits)}" for order, rho in self.curve)
        curve = f"rho={{{rhos}}}"
        return f"{curve} and delta={amount_text(self.delta, up, digits)}" if self.delta or with_delta else curve

    @safe_repr
    def __repr__(self) -> str:
        return f"RDP({self.format(up=True).removeprefix('rho=').replace(' and ', ', ')})"

    def to_json(self) -> dict[str, str]:
        """The loss as texts, read back exactly by :func:`loss_from_json`: an entry for each order, and for a delta."""
        # A delta of 0 is left out, as in ledgers that were made before a curve could have one.
        delta = {"delta": to_text(self.delta)} if self.delta else {}
        return {"kind": self.kind, **{to_text(order): to_text(rho) for order, rho in self.curve}, **delta}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> RDP:
        curve = {from_text(order): from_text(rho) for order, rho in stored.items() if order not in ("kind", "delta")}
        return cls(curve, from_text(stored.get("delta", "0")))


@lru_cache(maxsize=1024)
def _one_of_each(orders: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """The first tuple with these orders, so that the orders of two losses are compared by identity."""
    return orders


def _shown(order: Fraction) -> str:
    """An order as a valid argument: ``2.5``, or ``'7/3'`` where no double denotes it."""
    double = decimal_up(order)
    return repr(double) if exact(double) == order else repr(to_text(order))
