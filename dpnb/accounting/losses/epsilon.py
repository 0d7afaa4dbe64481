"""Losses that have an epsilon: PureDP, BoundedRange, several of either, ApproxDP and PointwiseDP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpnb.accounting.exact import Number, from_text, non_negative, shown, to_text
from dpnb.accounting.losses.loss import Loss
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError


class EpsilonLoss(Loss):
    """Base class of the losses that have an epsilon: PureDP, BoundedRange, Repeated, ApproxDP and PointwiseDP.

    Examples
    --------
    >>> from dpnb.accounting import ApproxDP, EpsilonLoss, PureDP
    >>> PureDP(0.5).epsilon
    Fraction(1, 2)
    >>> isinstance(ApproxDP(0.5, 1e-6), EpsilonLoss)
    True
    """

    __slots__ = ()

    @property
    def epsilon(self) -> Fraction:
        """The parameter epsilon, in nats."""
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
        The number is negative, not finite or not a number.

    Examples
    --------
    >>> from dpnb.accounting import PureDP
    >>> PureDP(0.1) + PureDP(0.2)
    PureDP(epsilon=0.3)
    """

    __slots__ = ()
    kind: ClassVar[str] = "pure-dp"
    names: ClassVar[tuple[str, ...]] = ("epsilon",)

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "parts", (non_negative(epsilon, name="epsilon"),))


class BoundedRange(EpsilonLoss):
    """Bounded range: the logarithms of ratios of probabilities of neighbours lie in an interval of that length.

    Durfee and Rogers 2019, Definition 3.1.  The interval contains 0, so it is in pure DP with `epsilon`, the range; but
    it is less than most of what is in pure DP: see :func:`~dpnb.accounting.convert`.

    Parameters
    ----------
    range : Number
        At least 0, in nats; a float means its shortest decimal.

    Attributes
    ----------
    epsilon : Fraction
        The range.

    Raises
    ------
    InvalidValueError
        The number is negative, not finite or not a number.

    Examples
    --------
    >>> from dpnb.accounting import GDP, BoundedRange, PureDP, convert
    >>> BoundedRange(0.2)
    BoundedRange(range=0.2)
    >>> convert(BoundedRange(0.2), GDP) == convert(PureDP(0.1), GDP)
    True
    """

    __slots__ = ()
    kind: ClassVar[str] = "bounded-range"
    names: ClassVar[tuple[str, ...]] = ("range",)

    def __init__(self, range: Number) -> None:
        object.__setattr__(self, "parts", (non_negative(range, name="range"),))


class _WithDelta(EpsilonLoss):
    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ("epsilon", "delta")

    def __init__(self, epsilon: Number, delta: Number = 0.0) -> None:
        object.__setattr__(self, "parts", (non_negative(epsilon, name="epsilon"), non_negative(delta, name="delta")))

    @property
    def delta(self) -> Fraction:
        return self.parts[1]


class ApproxDP(_WithDelta):
    """Approximate differential privacy: P(S) <= e^epsilon Q(S) + delta for every event S.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    delta : Number, default 0
        At least 0.

    Attributes
    ----------
    epsilon, delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or not a number.

    Examples
    --------
    >>> from dpnb.accounting import ApproxDP
    >>> ApproxDP(0.1, 1e-7) + ApproxDP(0.2, 2e-7)
    ApproxDP(epsilon=0.3, delta=3e-07)
    """

    __slots__ = ()
    kind: ClassVar[str] = "approx-dp"


class PointwiseDP(_WithDelta):
    """Pointwise differential privacy: the realised loss is outside [-epsilon, epsilon] with probability <= delta.

    Stronger than (epsilon, delta)-DP, and not closed under post-processing (Whitehouse et al. 2023, Definition 2).

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    delta : Number, default 0
        At least 0.

    Attributes
    ----------
    epsilon, delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or not a number.

    Examples
    --------
    >>> from dpnb.accounting import PointwiseDP
    >>> PointwiseDP(0.1, 1e-7).delta
    Fraction(1, 10000000)
    """

    __slots__ = ()
    kind: ClassVar[str] = "pointwise-dp"


OnceLoss = PureDP | BoundedRange
_KINDS: dict[str, type[OnceLoss]] = {kind.names[0]: kind for kind in (PureDP, BoundedRange)}


@dataclass(frozen=True, init=False, repr=False)
class Repeated(EpsilonLoss):
    """Several mechanisms with equal losses in pure DP or bounded range, each chosen after the answers before it.

    All of them are admitted before the first runs.  Together they are in pure DP with the sum of the epsilons, which is
    ``epsilon``.  A filter or odometer that counts them one after another counts less: ``count`` times the loss
    ``once``, and :class:`~dpnb.accounting.GDPFilter` one residue after another.

    Parameters
    ----------
    once : PureDP or BoundedRange
        The loss of one of them.
    count : int
        Their number, at least 1.

    Attributes
    ----------
    epsilon : Fraction
        The sum of the epsilons.

    Raises
    ------
    InvalidValueError
        ``once`` is of another kind, or ``count`` is not a whole number of at least 1.

    Examples
    --------
    >>> from dpnb.accounting import ZCDP, PureDP, Repeated, convert
    >>> ten = Repeated(PureDP(0.02), 10)
    >>> ten, ten.epsilon
    (Repeated(PureDP(epsilon=0.02), 10), Fraction(1, 5))
    >>> round(float(convert(ten, ZCDP).rho), 4), round(float(convert(PureDP(0.2), ZCDP).rho), 4)
    (0.002, 0.0199)
    """

    __slots__ = ("count", "of_kind")
    count: int
    of_kind: type[OnceLoss]
    kind: ClassVar[str] = "repeated"

    def __init__(self, once: OnceLoss, count: int) -> None:
        loss: object = once
        if type(loss) not in (PureDP, BoundedRange):
            raise InvalidValueError(
                f"once: must be a PureDP or BoundedRange, got {shown(once)}; give for example PureDP(0.1)"
            )
        whole: object = count
        if isinstance(whole, bool) or not isinstance(whole, int) or whole < 1:
            raise InvalidValueError(
                f"count: must be a whole number of at least 1, got {shown(count)}; give for example 3"
            )
        self._fill((whole * once.epsilon,), whole, type(once))

    def _fill(self, parts: tuple[Fraction, ...], count: int, of_kind: type[OnceLoss]) -> None:
        for name, value in (("parts", parts), ("count", count), ("of_kind", of_kind)):
            object.__setattr__(self, name, value)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """That of the sum; a new tuple, so that `like` compares the kinds and the numbers of mechanisms."""
        return (*self.of_kind.names,)

    @property
    def once(self) -> OnceLoss:
        """The loss of one of them."""
        return self.of_kind.of(self.epsilon / self.count)

    def _of_same_kind(self, parts: tuple[Fraction, ...]) -> Repeated:
        """As many mechanisms with another sum."""
        new = object.__new__(Repeated)
        new._fill(parts, self.count, self.of_kind)
        return new

    def like(self, other: object) -> bool:
        return type(other) is Repeated and (other.count, other.of_kind) == (self.count, self.of_kind)

    def format(self, *, up: bool, with_delta: bool = False, digits: int | None = None) -> str:
        return f"{super().format(up=up, digits=digits)} in {self.count} steps"

    @safe_repr
    def __repr__(self) -> str:
        return f"Repeated({self.once!r}, {self.count})"

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, self.of_kind.names[0]: to_text(self.once.epsilon), "count": str(self.count)}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> Repeated:
        name = "range" if "range" in stored else "epsilon"
        if unknown := stored.keys() - {"kind", name, "count"}:
            raise InvalidValueError(f"a stored loss has an unknown entry {min(unknown)!r}; use the dpnb that wrote it")
        count = stored["count"]
        if not (count.isascii() and count.isdecimal() and len(count) <= 10):
            raise InvalidValueError(f"count: must be a number of mechanisms, got {shown(count)}; was the file edited?")
        return cls(_KINDS[name].of(non_negative(from_text(stored[name]), name=name)), int(count))


def is_range(loss: Loss) -> bool:
    """Whether a loss is in bounded range, of one mechanism or of several."""
    return isinstance(loss, BoundedRange) or (isinstance(loss, Repeated) and loss.of_kind is BoundedRange)
