"""The loss of a pure-DP and a GDP mechanism together."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from dpnb.accounting.exact import Number, decimal_down, decimal_sqrt_down, decimal_sqrt_up, decimal_up, non_negative
from dpnb.accounting.losses.loss import Loss

__all__ = ["PureGDP"]


class PureGDP(Loss):
    """The loss of an epsilon-DP mechanism and a mu-GDP mechanism together.

    Telling neighbours apart is no easier than from one bit of randomised response with parameter epsilon and one draw
    from N(0, 1) or N(mu, 1).  The parts add separately: two bits with parameters a and b are (a + b)-DP, so they reveal
    no more than one bit with a + b, and mu squared adds as for `GDP`.

    Parameters
    ----------
    epsilon : Number
        At least 0, in nats; a float means its shortest decimal.
    mu : Number
        At least 0.
    delta : Number, default 0
        At least 0: weight of the bad part.

    Attributes
    ----------
    epsilon, mu_squared, delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or not a number.

    Examples
    --------
    >>> from dpnb.accounting import PureGDP
    >>> PureGDP(0.1, mu=0.3) + PureGDP(0.05, mu=0.4)
    PureGDP(mu=0.5, epsilon=0.15)
    """

    __slots__ = ()
    kind: ClassVar[str] = "pure-gdp"
    names: ClassVar[tuple[str, ...]] = ("mu_squared", "delta", "epsilon")

    def __init__(self, epsilon: Number, mu: Number, delta: Number = 0.0) -> None:
        mu_squared = non_negative(mu, name="mu") ** 2
        parts = (mu_squared, non_negative(delta, name="delta"), non_negative(epsilon, name="epsilon"))
        object.__setattr__(self, "parts", parts)

    @property
    def mu_squared(self) -> Fraction:
        """Mu squared."""
        return self.parts[0]

    @property
    def delta(self) -> Fraction:
        """Weight of the bad part."""
        return self.parts[1]

    @property
    def epsilon(self) -> Fraction:
        """The parameter of the pure-DP mechanism, in nats."""
        return self.parts[2]

    @property
    def mu(self) -> float:
        """Mu as a double, rounded up in its decimal meaning."""
        return decimal_sqrt_up(self.mu_squared)

    def format(self, *, up: bool, with_delta: bool = False) -> str:
        """The loss for a message, with mu itself: see :meth:`Loss.format`.

        Parameters
        ----------
        up : bool
            Whether to round up, as required for a loss; a budget is rounded down.
        with_delta : bool, default False
            Whether to show a delta of 0.

        Examples
        --------
        >>> from dpnb.accounting import PureGDP
        >>> PureGDP(0.1, mu="1/3").format(up=False)
        'mu=0.3333333333333333 and epsilon=0.1'
        """
        rounded = decimal_up if up else decimal_down
        texts = [f"mu={self.mu if up else decimal_sqrt_down(self.mu_squared)!r}"]
        if self.delta or with_delta:
            texts.append(f"delta={rounded(self.delta)!r}")
        if self.epsilon:
            texts.append(f"epsilon={rounded(self.epsilon)!r}")
        return " and ".join(texts)
