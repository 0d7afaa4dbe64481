"""Losses with a mu: GDP, also together with pure DP, and the zCDP that GDP implies."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, TypeGuard

from dpnb.accounting.exact import (
    Number,
    amount_text,
    decimal_sqrt_down,
    decimal_sqrt_up,
    decimal_up,
    display_down,
    display_up,
    non_negative,
)
from dpnb.accounting.losses.epsilon import EpsilonLoss
from dpnb.accounting.losses.loss import ZERO, Loss
from dpnb.errors import ConversionError


class GaussianLoss(Loss):
    """Base class of the losses that have a mu: `GDP` and `PureGDP`.

    Examples
    --------
    >>> from dpnb.accounting import GDP, PureGDP
    >>> [loss.mu for loss in (GDP(0.5), PureGDP(0.1, mu=0.5))]
    [0.5, 0.5]
    """

    __slots__ = ()

    @property
    def mu_squared(self) -> Fraction:
        """Mu squared."""
        return self.parts[0]

    @property
    def delta(self) -> Fraction:
        return self.parts[1]

    @property
    def epsilon(self) -> Fraction:
        """The parameter of a mechanism in pure DP, in nats; 0 for `GDP`."""
        return self.parts[2] if len(self.parts) > 2 else Fraction(0)

    @property
    def mu(self) -> float:
        """Mu as a double, rounded up in its decimal meaning; exact if mu is the shortest decimal of a double."""
        return decimal_sqrt_up(self.mu_squared)

    @property
    def noise_mu_squared(self) -> Fraction:
        """Mu squared."""
        return self.mu_squared

    def format(self, *, up: bool, with_delta: bool = False, digits: int | None = None) -> str:
        mu = self.mu if up else decimal_sqrt_down(self.mu_squared)
        texts = [f"mu={mu!r}" if digits is None else f"mu={(display_up if up else display_down)(mu, digits)}"]
        if self.delta or with_delta:
            texts.append(f"delta={amount_text(self.delta, up, digits)}")
        if self.epsilon:
            texts.append(f"epsilon={amount_text(self.epsilon, up, digits)}")
        return " and ".join(texts)

    @property
    def words(self) -> str:
        """The loss to four digits, rounded up, for example ``mu 0.04 and epsilon 0.1``."""
        named = (("mu", self.mu), ("delta", decimal_up(self.delta)), ("epsilon", decimal_up(self.epsilon)))
        shown = [f"{name} {display_up(value)}" for name, value in named if value or (name == "mu" and not self.epsilon)]
        return " and ".join(shown)


class GDP(GaussianLoss):
    """Gaussian differential privacy: telling neighbours apart is no easier than N(0, 1) from N(mu, 1).

    Stored as mu squared, because mu squared is additive, so that remainders of a budget are exact (Smith and Thakurta
    2022, Theorem 1).

    Parameters
    ----------
    mu : Number
        At least 0; a float means its shortest decimal.
    delta : Number, default 0
        At least 0; above 0 it is delta-approximate GDP.

    Attributes
    ----------
    mu_squared : Fraction
    delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or not a number.

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

    def __init__(self, mu: Number, delta: Number = ZERO) -> None:
        object.__setattr__(self, "parts", (non_negative(mu, name="mu") ** 2, non_negative(delta, name="delta")))

    @classmethod
    def from_mu_squared(cls, mu_squared: Number, delta: Number = ZERO) -> GDP:
        """The loss with this mu squared, so that mu may be irrational.

        Parameters
        ----------
        mu_squared : Number
            At least 0.
        delta : Number, default 0
            As for the constructor.

        Raises
        ------
        InvalidValueError
            A number is negative, not finite or not a number.

        Examples
        --------
        >>> from dpnb.accounting import GDP
        >>> GDP.from_mu_squared("0.25")
        GDP(mu=0.5)
        """
        new = object.__new__(cls)
        parts = non_negative(mu_squared, name="mu_squared"), non_negative(delta, name="delta")
        object.__setattr__(new, "parts", parts)
        return new

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter that follows from mu, mu squared over two (Bun and Steinke 2016, Proposition 1.6)."""
        # Computed in integers: four times as fast as a division of Fractions.
        return Fraction(self.mu_squared.numerator, 2 * self.mu_squared.denominator)


class PureGDP(GaussianLoss):
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


class ZCDP(Loss):
    """Zero-concentrated differential privacy: D_a <= rho a for a > 1 (Bun and Steinke 2016, Definition 1.1).

    Parameters
    ----------
    rho : Number
        At least 0; a float means its shortest decimal.
    delta : Number, default 0
        At least 0; above 0 it is approximate zCDP (Whitehouse et al. 2023, Definition 3).

    Attributes
    ----------
    rho, delta : Fraction

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or not a number.

    Examples
    --------
    >>> from dpnb.accounting import ZCDP
    >>> ZCDP(0.1) + ZCDP(0.2, 1e-9)
    ZCDP(rho=0.3, delta=1e-09)
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
        return self.parts[1]

    @property
    def noise_mu_squared(self) -> Fraction:
        """Twice rho."""
        return 2 * self.rho


# --- losses in the components of GDP budgets --------------------------------------------------------------------------


def is_gaussian(loss: Loss | None) -> TypeGuard[GDP]:
    """Whether a loss is that of Gaussian noise."""
    return isinstance(loss, GDP)


def as_amount(loss: Loss) -> PureGDP:
    """A loss in mu squared, delta and epsilon, without a conversion.

    Raises
    ------
    ConversionError
        It has other parts.
    """
    if isinstance(loss, PureGDP):
        return loss
    if isinstance(loss, GaussianLoss):
        return PureGDP.of(loss.mu_squared, loss.delta, Fraction(0))
    if isinstance(loss, EpsilonLoss):
        return PureGDP.of(Fraction(0), loss.delta, loss.epsilon)
    raise ConversionError(f"loss: must have a mu or an epsilon; got {loss!r}; convert it beforehand")
