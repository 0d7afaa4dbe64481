"""What a release costs: frozen, exact values.

One kind so far, :class:`GDP`; the others come to this file.  A loss knows how to be added to its own kind, compared
and stored.  Turning one kind into another is a theorem, and theorems live in ``conversions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, runtime_checkable

from dpnb.accounting.exact import Number, decimal_sqrt_up, decimal_up, from_text, non_negative, to_text
from dpnb.errors import InvalidValueError

__all__ = ["GDP", "Loss", "loss_from_json"]


@runtime_checkable
class Loss(Protocol):
    """What every kind of loss can do."""

    kind: ClassVar[str]

    def to_json(self) -> dict[str, str]:
        """The loss as texts, read back exactly by :func:`loss_from_json`."""
        ...


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GDP:
    """Gaussian differential privacy: telling neighbours apart is no easier than N(0, 1) from N(mu, 1).

    Kept as mu squared, because that is what adds up and what a remainder of a budget is exact in.  With ``delta`` it
    is approximate GDP: both neighbours' outputs share a decomposition in which a part of weight at least 1 - delta is
    mu-GDP.

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

    mu_squared: Fraction
    delta: Fraction
    kind: ClassVar[str] = "gdp"

    def __init__(self, mu: Number, delta: Number = 0.0) -> None:
        object.__setattr__(self, "mu_squared", non_negative(mu, name="mu") ** 2)
        object.__setattr__(self, "delta", non_negative(delta, name="delta"))

    @classmethod
    def from_squared(cls, mu_squared: Number, delta: Number = 0.0) -> GDP:
        """The loss whose mu squared is given, so that mu itself may be irrational.

        Raises
        ------
        InvalidValueError
            A number is negative, not finite or no number.
        """
        return cls._of(non_negative(mu_squared, name="mu_squared"), non_negative(delta, name="delta"))

    @classmethod
    def _of(cls, mu_squared: Fraction, delta: Fraction) -> GDP:
        loss = object.__new__(cls)
        object.__setattr__(loss, "mu_squared", mu_squared)
        object.__setattr__(loss, "delta", delta)
        return loss

    @property
    def mu(self) -> float:
        """Mu as a double, rounded up in its decimal meaning; exact if mu is such a decimal."""
        return decimal_sqrt_up(self.mu_squared)

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter that follows from mu, mu squared over two (Bun and Steinke 2016, Prop. 1.6)."""
        return self.mu_squared / 2

    def __add__(self, other: GDP) -> GDP:
        """The loss of both releases together.

        Mu squared and delta add (Smith and Thakurta 2022, Theorem 1).  The sum is a promise about releases whose
        losses were chosen after seeing earlier answers only when a filter fixed a bound on it beforehand.
        """
        if not isinstance(other, GDP):
            return NotImplemented
        return GDP._of(self.mu_squared + other.mu_squared, self.delta + other.delta)

    def __repr__(self) -> str:
        tail = f", delta={decimal_up(self.delta)!r}" if self.delta else ""
        return f"GDP(mu={self.mu!r}{tail})"

    def to_json(self) -> dict[str, str]:
        """The loss as texts, read back exactly by :func:`loss_from_json`."""
        return {"kind": self.kind, "mu_squared": to_text(self.mu_squared), "delta": to_text(self.delta)}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> GDP:
        """The loss that :meth:`to_json` wrote."""
        return cls.from_squared(from_text(stored["mu_squared"]), from_text(stored["delta"]))


_KINDS = {GDP.kind: GDP}


def loss_from_json(stored: Mapping[str, str]) -> GDP:
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
