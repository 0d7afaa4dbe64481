"""What every kind of loss is: exact parts that add up, and that are stored as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpnb.accounting.exact import decimal_down, decimal_up, from_text, non_negative, shown, to_text
from dpnb.copying import safe_repr
from dpnb.errors import ConversionError, InvalidValueError

__all__ = ["Loss", "loss_from_json", "not_negative"]

_ZERO = Fraction(0)


@dataclass(frozen=True, init=False, repr=False)
class Loss:
    """Exact parts that add up; the base of every kind.

    Attributes
    ----------
    parts : tuple of Fraction
        The numbers that add up, none negative; all zero for a release that costs nothing.

    Examples
    --------
    >>> from dpnb.accounting import GDP
    >>> GDP(0.3) + GDP(0.4)
    GDP(mu=0.5)
    >>> GDP(0.3).within(GDP(0.4)), GDP(0.3).format(up=True)
    (True, 'mu=0.3')
    """

    __slots__ = ("parts",)
    parts: tuple[Fraction, ...]
    kind: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "kind"):
            _KINDS[cls.kind] = cls

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part; 0 for a kind that knows none."""
        return _ZERO

    def with_parts(self, parts: tuple[Fraction, ...]) -> Self:
        """A loss of the same kind with other parts.

        Raises
        ------
        InvalidValueError
            A part is negative: no release gives anything back.
        """
        return self._of_same_kind(not_negative(parts))

    def _of_same_kind(self, parts: tuple[Fraction, ...]) -> Self:
        """The same without the check, for parts that cannot be negative."""
        new = object.__new__(type(self))
        object.__setattr__(new, "parts", parts)
        return new

    @classmethod
    def of(cls, *parts: Fraction) -> Self:
        """The loss with these parts, for figures that are exact already.

        Raises
        ------
        InvalidValueError
            A part is negative: no release gives anything back.
        """
        new = object.__new__(cls)
        object.__setattr__(new, "parts", not_negative(parts))
        return new

    def like(self, other: object) -> bool:
        """Whether `other` has parts of the same meaning, so that the two add up and compare."""
        return type(other) is type(self)

    def __add__(self, other: Self) -> Self:
        """The loss of both releases together, when both were fixed beforehand.

        The sum is a promise about losses that were chosen after seeing earlier answers only when a filter fixed a
        bound on it beforehand.
        """
        if not self.like(other):
            return NotImplemented
        return self._of_same_kind(tuple([a + b if b else a for a, b in zip(self.parts, other.parts, strict=True)]))

    def __sub__(self, other: Self) -> Self:
        """What is left of a budget after `other`, which it covers; otherwise an `InvalidValueError`."""
        if not self.like(other):
            return NotImplemented
        return self.with_parts(tuple([a - b for a, b in zip(self.parts, other.parts, strict=True)]))

    def within(self, budget: Self) -> bool:
        """Whether no part is above the budget's.

        Raises
        ------
        ConversionError
            The budget is of another kind.
        """
        if not self.like(budget):
            raise ConversionError(
                f"budget: must be {type(self).__name__}, got {shown(budget)}; convert one of the two beforehand"
            )
        for part, most in zip(self.parts, budget.parts, strict=True):
            # The comparison of Fractions, without its search for the type of the other side.
            if part and part.numerator * most.denominator > most.numerator * part.denominator:
                return False
        return True

    def __bool__(self) -> bool:
        """Whether it costs anything."""
        return any(self.parts)

    def format(self, *, up: bool, with_delta: bool = False) -> str:
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

    @safe_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.format(up=True).replace(' and ', ', ')})"

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


# Filled by each kind as it is defined.
_KINDS: dict[str, type[Loss]] = {}


def loss_from_json(stored: Mapping[str, str]) -> Loss:
    """The loss that a ``to_json`` wrote.

    Parameters
    ----------
    stored : mapping of str to str
        With a ``"kind"``.

    Returns
    -------
    Loss
        Equal to the one that was written.

    Raises
    ------
    InvalidValueError
        Unknown kind, a missing entry, or an entry that is no stored number.

    Examples
    --------
    >>> from dpnb.accounting import GDP, loss_from_json
    >>> GDP(0.5).to_json()
    {'kind': 'gdp', 'mu_squared': '1/4', 'delta': '0'}
    >>> loss_from_json(GDP(0.5).to_json())
    GDP(mu=0.5)
    """
    kind: object = stored.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidValueError(
            f"a stored loss must be of kind {', '.join(sorted(_KINDS))}, got {shown(kind)}; was it written by a newer "
            "dpnb?"
        )
    try:
        return _KINDS[kind].from_json(stored)
    except KeyError as missing:
        raise InvalidValueError(f"a stored {kind} loss must have an entry {missing}; was the file edited?") from None


def not_negative(parts: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """The parts of a loss.

    Raises
    ------
    InvalidValueError
        One of them is negative.
    """
    for part in parts:
        if part.numerator < 0:
            raise InvalidValueError(
                f"a loss must not be negative, got {decimal_down(part)!r}; take off a budget only what is within it"
            )
    return parts
