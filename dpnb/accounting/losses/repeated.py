"""The loss of several equal mechanisms in pure DP that are charged together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpnb.accounting.exact import from_text, non_negative, shown, to_text
from dpnb.accounting.losses.epsilon import EpsilonLoss, PureDP
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError


@dataclass(frozen=True, init=False, repr=False)
class Repeated(EpsilonLoss):
    """Several mechanisms with equal losses in pure DP, each chosen after the answers of the ones before.

    All of them are admitted before the first runs.  Together they are in pure DP with the sum of the epsilons, which is
    `epsilon`.  A filter or odometer that counts them one after another counts less: `count` times the loss `once`, and
    :class:`~dpnb.accounting.GDPFilter` one residue after another.

    Parameters
    ----------
    once : PureDP
        The loss of one of them.
    count : int
        Their number, at least 1.

    Attributes
    ----------
    epsilon : Fraction
        The sum of the epsilons.
    count : int

    Raises
    ------
    InvalidValueError
        `once` is not in pure DP, or `count` is not a whole number of at least 1.

    Examples
    --------
    >>> from dpnb.accounting import ZCDP, PureDP, Repeated, convert
    >>> ten = Repeated(PureDP(0.02), 10)
    >>> ten, ten.epsilon
    (Repeated(PureDP(epsilon=0.02), 10), Fraction(1, 5))
    >>> round(convert(ten, ZCDP).rho, 4), round(convert(PureDP(0.2), ZCDP).rho, 4)
    (Fraction(1, 500), Fraction(199, 10000))
    """

    __slots__ = ("count",)
    count: int
    kind: ClassVar[str] = "repeated"

    def __init__(self, once: PureDP, count: int) -> None:
        loss: object = once
        if type(loss) is not PureDP:
            raise InvalidValueError(f"once: must be a PureDP, got {shown(once)}; give for example PureDP(0.1)")
        whole: object = count
        if isinstance(whole, bool) or not isinstance(whole, int) or whole < 1:
            raise InvalidValueError(
                f"count: must be a whole number of at least 1, got {shown(count)}; give for example 3"
            )
        object.__setattr__(self, "parts", (whole * loss.epsilon,))
        object.__setattr__(self, "count", whole)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """That of the sum; a new tuple, so that `like` compares the numbers of mechanisms."""
        return (*PureDP.names,)

    @property
    def once(self) -> PureDP:
        """The loss of one of them."""
        return PureDP.of(self.epsilon / self.count)

    def _of_same_kind(self, parts: tuple[Fraction, ...]) -> Repeated:
        """As many mechanisms with another sum."""
        new = object.__new__(Repeated)
        object.__setattr__(new, "parts", parts)
        object.__setattr__(new, "count", self.count)
        return new

    def like(self, other: object) -> bool:
        """Whether `other` is the loss of as many mechanisms.

        Parameters
        ----------
        other : Loss
            Another loss.
        """
        return type(other) is Repeated and other.count == self.count

    def format(self, *, up: bool, with_delta: bool = False) -> str:
        return f"{super().format(up=up)} in {self.count} steps"

    @safe_repr
    def __repr__(self) -> str:
        return f"Repeated({self.once!r}, {self.count})"

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "epsilon": to_text(self.once.epsilon), "count": str(self.count)}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> Repeated:
        if unknown := stored.keys() - {"kind", "epsilon", "count"}:
            raise InvalidValueError(f"a stored loss has an unknown entry {min(unknown)!r}; use the dpnb that wrote it")
        count = stored["count"]
        if not (count.isascii() and count.isdecimal() and len(count) < 10):
            raise InvalidValueError(f"count: must be a number of mechanisms, got {shown(count)}; was the file edited?")
        return cls(PureDP.of(non_negative(from_text(stored["epsilon"]), name="epsilon")), int(count))
