"""Losses that have an epsilon: PureDP, ApproxDP and PointwiseDP."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from dpnb.accounting.exact import Number, non_negative
from dpnb.accounting.losses.loss import Loss


class EpsilonLoss(Loss):
    """Base class of the losses that have an epsilon: PureDP, ApproxDP and PointwiseDP.

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


class _WithDelta(EpsilonLoss):
    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ("epsilon", "delta")

    def __init__(self, epsilon: Number, delta: Number = 0.0) -> None:
        object.__setattr__(self, "parts", (non_negative(epsilon, name="epsilon"), non_negative(delta, name="delta")))

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part."""
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
