"""The base class of losses: exact parts that are added, and stored as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpnb.accounting.exact import amount_text, decimal_down, from_text, non_negative, shown, to_text
from dpnb.copying import safe_repr
from dpnb.errors import ConversionError, InvalidValueError

ZERO = Fraction(0)


@dataclass(frozen=True, init=False, repr=False)
class Loss:
    """Base class of all losses: a tuple of exact parts that are added under composition.

    Attributes
    ----------
    parts : tuple of Fraction
        The additive numbers, none negative; all zero for a loss of 0.

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
        """Weight of the bad part; 0 for a kind without a delta."""
        return ZERO

    @property
    def once(self) -> Loss:
        """The loss of one of ``count`` equal mechanisms that it is the loss of."""
        return self

    @property
    def count(self) -> int:
        """The number of mechanisms; 1 unless it is `Repeated`."""
        return 1

    @property
    def noise_mu_squared(self) -> Fraction | None:
        """The largest mu squared of Gaussian noise that costs no more; None for a loss that has only an epsilon."""
        return None

    @property
    def words(self) -> str:
        """The loss in few words, rounded up, for example ``mu 0.5``."""
        return self.format(up=True).replace("=", " ")

    def with_parts(self, parts: tuple[Fraction, ...]) -> Self:
        """A loss of the same kind with other parts.

        Parameters
        ----------
        parts : tuple of Fraction
            At least 0.

        Raises
        ------
        InvalidValueError
            A part is negative.
        """
        return self._of_same_kind(not_negative(parts))

    def _of_same_kind(self, parts: tuple[Fraction, ...]) -> Self:
        """`with_parts` without the check, for parts that cannot be negative."""
        new = object.__new__(type(self))
        object.__setattr__(new, "parts", parts)
        return new

    @classmethod
    def of(cls, *parts: Fraction) -> Self:
        """The loss with these parts, for numbers that are already exact.

        Parameters
        ----------
        *parts : Fraction
            At least 0.

        Raises
        ------
        InvalidValueError
            A part is negative.
        """
        new = object.__new__(cls)
        object.__setattr__(new, "parts", not_negative(parts))
        return new

    def like(self, other: object) -> bool:
        """Whether the parts of `other` have the same meaning, so that the two can be added and compared.

        Parameters
        ----------
        other : Loss
            Another loss.

        Examples
        --------
        >>> from dpnb.accounting import ApproxDP
        >>> ApproxDP(1, 1e-6).like(ApproxDP(2, 0))
        True
        """
        return type(other) is type(self)

    def __add__(self, other: Self) -> Self:
        """The loss of both releases together, if both were fixed beforehand.

        For losses that were chosen after seeing earlier answers, the sum is a guarantee only if a filter fixed a bound
        on it beforehand.
        """
        if type(other) is not type(self) or (self.names is not other.names and not self.like(other)):
            return NotImplemented
        return self._of_same_kind(tuple([a + b if b else a for a, b in zip(self.parts, other.parts, strict=True)]))

    def __sub__(self, other: Self) -> Self:
        """The remainder of a budget after `other`; raises `InvalidValueError` if the budget does not cover it."""
        if type(other) is not type(self) or (self.names is not other.names and not self.like(other)):
            return NotImplemented
        return self.with_parts(tuple([a - b for a, b in zip(self.parts, other.parts, strict=True)]))

    def within(self, budget: Self) -> bool:
        """Whether every part is at most the budget's.

        Parameters
        ----------
        budget : Loss
            A loss of the same kind.

        Raises
        ------
        ConversionError
            The budget is of another kind.

        Examples
        --------
        >>> from dpnb.accounting import ApproxDP
        >>> ApproxDP(1, 0).within(ApproxDP(2, 1e-6))
        True
        """
        if type(budget) is not type(self) or (self.names is not budget.names and not self.like(budget)):
            raise ConversionError(
                f"budget: must be {type(self).__name__}, got {shown(budget)}; convert one of the two beforehand"
            )
        for part, bound in zip(self.parts, budget.parts, strict=True):
            # The comparison of Fractions without its type dispatch, which is slower.
            if part and part.numerator * bound.denominator > bound.numerator * part.denominator:
                return False
        return True

    def __bool__(self) -> bool:
        """Whether any part is above 0."""
        return any(self.parts)

    def format(self, *, up: bool, with_delta: bool = False, digits: int | None = None) -> str:
        """The loss as text for a message, for example ``mu=0.5 and delta=1e-06``.

        Parameters
        ----------
        up : bool
            Whether to round up, as required for a loss; a budget is rounded down.
        with_delta : bool, default False
            Whether to show a delta of 0.
        digits : int, optional
            Number of significant digits; that of a double by default.

        Examples
        --------
        >>> from dpnb.accounting import ApproxDP
        >>> ApproxDP("1/3", 0).format(up=True)
        'epsilon=0.33333333333333337'
        >>> ApproxDP("1/3", 0).format(up=True, digits=4)
        'epsilon=0.3334'
        """
        named = zip(self.names, self.parts, strict=True)
        return " and ".join(
            f"{name}={amount_text(part, up, digits)}" for name, part in named if part or with_delta or name != "delta"
        )

    @safe_repr
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.format(up=True).replace(' and ', ', ')})"

    def __reduce__(self) -> tuple[Any, ...]:
        return loss_from_json, (self.to_json(),)  # pickling and copying

    def to_json(self) -> dict[str, str]:
        """The loss as texts, read back exactly by :func:`loss_from_json`.

        Examples
        --------
        >>> from dpnb.accounting import ApproxDP
        >>> ApproxDP(1, 1e-6).to_json()
        {'kind': 'approx-dp', 'epsilon': '1', 'delta': '1/1000000'}
        """
        named = zip(self.names, self.parts, strict=True)
        return {"kind": self.kind, **{name: to_text(part) for name, part in named}}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> Self:
        """The loss that :meth:`to_json` wrote.

        Parameters
        ----------
        stored : mapping of str to str
            What :meth:`to_json` wrote.

        Examples
        --------
        >>> from dpnb.accounting import ApproxDP
        >>> ApproxDP.from_json(ApproxDP(1, 1e-6).to_json())
        ApproxDP(epsilon=1.0, delta=1e-06)
        """
        if unknown := stored.keys() - {"kind", *cls.names}:  # which would not be counted
            raise InvalidValueError(f"a stored loss has an unknown entry {min(unknown)!r}; use the dpnb that wrote it")
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
        Equal to the loss that was written.

    Raises
    ------
    InvalidValueError
        Unknown kind, a missing or an unknown entry, or an entry that is not a stored number.

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
    """The parts of a loss, unchanged; raises `InvalidValueError` if one is negative."""
    for part in parts:
        if part.numerator < 0:
            raise InvalidValueError(
                f"a loss must not be negative, got {decimal_down(part)!r}; subtract from a budget only a loss within it"
            )
    return parts
