"""The privacy budget of a session, or what a curator declares instead of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from dpnb.accounting.conversions import mu_beside_reserve
from dpnb.accounting.exact import (
    Frozen,
    Number,
    decimal_up,
    exact,
    failure_probability,
    from_text,
    non_negative,
    positive,
    shown,
    to_text,
)
from dpnb.accounting.losses import GDP
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError
from dpnb.required import explains_missing


@dataclass(frozen=True, init=False, repr=False)
class Budget(Frozen):
    """The total privacy loss of one privacy unit over everything that a session releases.

    Parameters
    ----------
    epsilon : Number
        Greater than 0, in nats; a float means its shortest decimal, so 0.1 is exactly 1/10.
    delta : Number
        Between 0 and 1, both excluded; choose it far below one over the number of units.
    discovery_delta : Number, default 0
        The part of delta that is set aside for discovering groups; 0 if the groups are always given by keys.
    pure_epsilon : Number, default 0
        A reserve for mechanisms in pure DP, such as above-threshold scans and selections, below epsilon: they are
        charged to it while the sum of their epsilons is within it.  Requires the filter ``"gdp"``.

    Attributes
    ----------
    loss : GDP
        The same budget in GDP: the largest mu0 for which mu0-GDP implies (epsilon, delta - discovery_delta)-DP (Dong,
        Roth and Su 2022, Corollary 2.13), rounded down; or the mu of :meth:`gdp`.  The GDP filter enforces it, with
        discovery_delta as its delta.  With a reserve, the Gaussian part: the largest mu0 that leaves room for the
        reserve (:func:`~dpnb.accounting.conversions.mu_beside_reserve`).
    epsilon, delta : Fraction or None
        The arguments as exact numbers; None for :meth:`gdp` and :meth:`pure`.
    discovery_delta, pure_epsilon : Fraction
        The arguments as exact numbers.

    Notes
    -----
    A release that discovers groups is delta_m-approximate mu_m-GDP: both neighbours' outputs are mixtures with the same
    weight 1 - delta_m of a part that is mu_m-GDP.  Along a path the good parts have a weight of at least the product of
    the 1 - delta_m, hence at least 1 - sum delta_m; so with sum mu_m^2 <= mu0^2 and sum delta_m <= discovery_delta
    all releases together are (epsilon, discovery_delta + delta')-DP for delta' = delta - discovery_delta.

    How large a reserve to choose: as large as the epsilons of the scans and selections that are planned, and no larger,
    since what is left of it cannot be used for other queries.  A scan within the reserve takes nothing from the
    Gaussian part; one beyond it takes what is left of the reserve, and the more of the Gaussian part.  Under (1,
    1e-6)-DP, a reserve of 0.05, 0.10, 0.15, 0.20 or 0.30 leaves room for 263, 240, 216, 192 or 149 Gaussian releases
    at mu = 1/70, of 274 without a reserve.  :mod:`dpnb.accounting.conversions.reserve` has the proof.

    Raises
    ------
    InvalidValueError
        A number is out of range, or so small that mu0 is 0.

    Examples
    --------
    >>> Budget(epsilon=1, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    >>> Budget.gdp(0.5)
    Budget.gdp(mu=0.5)
    >>> Budget(epsilon=1, delta=1e-6).loss.mu, Budget(epsilon=1, delta=1e-6, pure_epsilon=0.1).loss.mu
    (0.2367043806634357, 0.22162667592946206)
    """

    is_limited: ClassVar[bool] = True
    loss: GDP
    epsilon: Fraction | None
    delta: Fraction | None
    discovery_delta: Fraction
    pure_epsilon: Fraction

    @explains_missing(
        "dpnb.Budget(epsilon=1.0, delta=1e-6)",
        {
            "epsilon": "the largest privacy loss of one person by everything that is released; 1 is common",
            "delta": "the probability with which the guarantee may fail; choose it far below one over the number of "
            "persons",
        },
    )
    def __init__(self, epsilon: Number, delta: Number, discovery_delta: Number = 0, pure_epsilon: Number = 0) -> None:
        exact_epsilon = positive(epsilon, name="epsilon")
        exact_delta = exact(delta, name="delta")
        if not 0 < exact_delta < 1:
            raise InvalidValueError(
                f"delta must lie between 0 and 1, both excluded, got {shown(delta)}; Gaussian noise cannot guarantee "
                "delta = 0; use for example 1e-6"
            )
        discovery = exact(discovery_delta, name="discovery_delta")
        if not 0 <= discovery < exact_delta:
            raise InvalidValueError(
                f"discovery_delta must be at least 0 and below delta, got {shown(discovery_delta)} of "
                f"{shown(delta)}; give for example a tenth of delta"
            )
        reserve = non_negative(pure_epsilon, name="pure_epsilon")
        mu = mu_beside_reserve(epsilon, delta=exact_delta - discovery, pure_epsilon=pure_epsilon)
        if mu == 0:
            raise InvalidValueError(
                f"epsilon and delta are too small to answer any query, got {shown(epsilon)}, {shown(delta)}; "
                "give for example epsilon=1, delta=1e-6"
            )
        self._set(
            loss=GDP(mu, discovery),
            epsilon=exact_epsilon,
            delta=exact_delta,
            discovery_delta=discovery,
            pure_epsilon=reserve,
        )

    @classmethod
    def gdp(cls, mu: Number, discovery_delta: Number = 0, pure_epsilon: Number = 0) -> Budget:
        """A budget in Gaussian differential privacy; it has no delta, so ``release(epsilon=)`` is not available.

        Parameters
        ----------
        mu : Number
            Greater than 0: all releases together are mu-GDP.  A float means its shortest decimal.
        discovery_delta : Number, default 0
            For discovering groups: all releases together are then mu-GDP but for a part of this weight.
        pure_epsilon : Number, default 0
            A reserve for mechanisms in pure DP, in addition to mu.

        Raises
        ------
        InvalidValueError
            mu is not a positive number, or another number is out of range.

        Examples
        --------
        >>> dpnb.Budget.gdp(0.5)
        Budget.gdp(mu=0.5)
        >>> dpnb.Budget.gdp(0.5, discovery_delta=1e-8)
        Budget.gdp(mu=0.5, discovery_delta=1e-08)
        """
        return cls.from_mu_squared(positive(mu, name="mu") ** 2, discovery_delta, pure_epsilon)

    @classmethod
    def from_mu_squared(cls, mu_squared: Number, discovery_delta: Number = 0, pure_epsilon: Number = 0) -> Budget:
        """A GDP budget with mu squared given, so that mu may be irrational, for example for a share of another budget.

        Parameters
        ----------
        mu_squared : Number
            Greater than 0: all releases together are mu-GDP for its square root.
        discovery_delta, pure_epsilon : Number, default 0
            As for :meth:`gdp`.

        Raises
        ------
        InvalidValueError
            mu_squared is not a positive number, or another number is out of range.

        Examples
        --------
        >>> dpnb.Budget.from_mu_squared("0.25")
        Budget.gdp(mu=0.5)
        """
        budget = object.__new__(cls)
        discovery = non_negative(discovery_delta, name="discovery_delta")
        if discovery >= 1:
            raise InvalidValueError(
                f"discovery_delta must be below 1, got {shown(discovery_delta)}; give for example 1e-8"
            )
        budget._set(
            loss=GDP.of(positive(mu_squared, name="mu_squared"), discovery),
            epsilon=None,
            delta=None,
            discovery_delta=discovery,
            pure_epsilon=non_negative(pure_epsilon, name="pure_epsilon"),
        )
        return budget

    @classmethod
    def pure(cls, pure_epsilon: Number) -> Budget:
        """A budget in pure differential privacy, for mechanisms in pure DP only; Gaussian queries are refused.

        It is enforced by the filter ``"gdp"``, as a reserve without a Gaussian part.

        Parameters
        ----------
        pure_epsilon : Number
            Greater than 0, in nats: all mechanisms together are pure_epsilon-DP.

        Raises
        ------
        InvalidValueError
            pure_epsilon is not a positive number.

        Examples
        --------
        >>> dpnb.Budget.pure(0.2)
        Budget.pure(pure_epsilon=0.2)
        """
        reserve = positive(pure_epsilon, name="pure_epsilon")
        budget = object.__new__(cls)
        budget._set(loss=GDP(0), epsilon=None, delta=None, discovery_delta=Fraction(0), pure_epsilon=reserve)
        return budget

    @property
    def limit(self) -> Budget:
        """The budget itself; None for :class:`~dpnb.accounting.NoBudget`."""
        return self

    @property
    def reference(self) -> Budget:
        """The scale of losses: this budget."""
        return self

    @cached_property
    def is_pure(self) -> bool:
        """Whether it is a budget in pure DP, without room for Gaussian noise."""
        return not any(self.loss.parts)

    def to_json(self) -> dict[str, str]:
        """The budget as texts, which are equal for equal budgets.

        Examples
        --------
        >>> dpnb.Budget(epsilon=1, delta=1e-6).to_json()
        {'epsilon': '1', 'delta': '1/1000000'}
        """
        parts = {"discovery_delta": self.discovery_delta, "pure_epsilon": self.pure_epsilon}
        set_aside = {name: to_text(part) for name, part in parts.items() if part}
        if self.epsilon is None or self.delta is None:
            gaussian = {"mu_squared": to_text(self.loss.mu_squared)} if self.loss.mu_squared else {}
            return {**gaussian, **set_aside}
        return {"epsilon": to_text(self.epsilon), "delta": to_text(self.delta), **set_aside}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> Budget:
        """The budget that :meth:`to_json` wrote.

        Parameters
        ----------
        stored : mapping of str to str
            What :meth:`to_json` wrote.

        Raises
        ------
        KeyError, ValueError, InvalidValueError
            `stored` cannot be read.

        Examples
        --------
        >>> dpnb.Budget.from_json(dpnb.Budget(epsilon=1, delta=1e-6).to_json())
        Budget(epsilon=1.0, delta=1e-06)
        """
        discovery, reserve = (from_text(stored.get(name, "0")) for name in ("discovery_delta", "pure_epsilon"))
        if "mu_squared" in stored:
            return cls.from_mu_squared(from_text(stored["mu_squared"]), discovery, reserve)
        if "epsilon" not in stored:
            return cls.pure(from_text(stored["pure_epsilon"]))
        epsilon, delta = from_text(stored["epsilon"]), from_text(stored["delta"])
        return cls(epsilon, delta, discovery, reserve)

    @safe_repr
    def __repr__(self) -> str:
        discovery = f", discovery_delta={decimal_up(self.discovery_delta)!r}" if self.discovery_delta else ""
        reserve = f", pure_epsilon={decimal_up(self.pure_epsilon)!r}" if self.pure_epsilon else ""
        if self.epsilon is None or self.delta is None:
            if not self.loss.mu_squared:
                return f"Budget.pure(pure_epsilon={decimal_up(self.pure_epsilon)!r})"
            return f"Budget.gdp(mu={self.loss.mu!r}{discovery}{reserve})"
        return f"Budget(epsilon={decimal_up(self.epsilon)!r}, delta={decimal_up(self.delta)!r}{discovery}{reserve})"


def checked_budget(budget: object) -> Budget:
    """A single budget."""
    if isinstance(budget, Budget):
        return budget
    raise InvalidValueError(
        "budget: must be one dpnb.Budget(epsilon, delta), dpnb.Budget.gdp(mu) or dpnb.Budget.pure(epsilon), or for a "
        f"session None, which declares that there is no budget; got {budget!r}"
    )


_DISCOVERY_SHARE = Fraction(1, 10)
"""The part of `odometer_delta` that is set aside for the deltas of discoveries."""


@dataclass(frozen=True, init=False, repr=False)
class NoBudget(Frozen):
    """No limit of the privacy loss: odometers report it (Rogers et al. 2016, Section 6, "pay as you go").

    An odometer, and what it fails with, must be chosen before the first answer.  So the odometers have the parameters
    of a session with the budget (1, `odometer_delta`), of which a tenth of delta is for discovering groups.  This
    `reference` is a scale only: it limits nothing, and the odometers remain valid far beyond it, where they are a few
    percent larger than if they had been tuned to the larger loss.

    Parameters
    ----------
    odometer_delta : Number, default 1e-6
        In [1e-300, 1): the probability that the statement of an odometer is ever wrong.  It is also the delta at which
        ``release(epsilon=)`` is converted.

    Attributes
    ----------
    delta, discovery_delta : Fraction
        `odometer_delta`, and the part of it for the deltas of discoveries.
    epsilon : None
    reference : Budget
        The budget (1, `odometer_delta`).

    Raises
    ------
    InvalidValueError
        `odometer_delta` is out of range.

    Examples
    --------
    >>> from dpnb.accounting import NoBudget
    >>> NoBudget().reference
    Budget(epsilon=1.0, delta=1e-06, discovery_delta=1e-07)
    """

    is_limited: ClassVar[bool] = False
    delta: Fraction
    reference: Budget

    def __init__(self, odometer_delta: Number = 1e-6) -> None:
        delta = failure_probability(odometer_delta, name="odometer_delta")
        self._set(delta=delta, reference=Budget(1, delta, delta * _DISCOVERY_SHARE))

    @property
    def limit(self) -> None:
        """None: nothing limits the privacy loss."""
        return

    @property
    def epsilon(self) -> None:
        """None: there is no epsilon."""
        return

    @property
    def pure_epsilon(self) -> Fraction:
        """0: there is no reserve."""
        return Fraction(0)

    is_pure: ClassVar[bool] = False
    """Queries with Gaussian noise are answered."""

    @property
    def discovery_delta(self) -> Fraction:
        """The part of `odometer_delta` that is set aside for the deltas of discoveries."""
        return self.reference.discovery_delta

    def to_json(self) -> dict[str, str]:
        """The declaration as texts, which are equal for equal declarations, and equal to those of no budget.

        Examples
        --------
        >>> from dpnb.accounting import NoBudget
        >>> NoBudget().to_json()
        {'limit': 'none', 'odometer_delta': '1/1000000'}
        """
        return {"limit": "none", "odometer_delta": to_text(self.delta)}

    @safe_repr
    def __repr__(self) -> str:
        return f"NoBudget(odometer_delta={decimal_up(self.delta)!r})"


def budget_from_json(stored: Mapping[str, str]) -> Budget | NoBudget:
    """The budget, or its absence, that ``to_json`` wrote.

    Raises `KeyError`, `ValueError` or `InvalidValueError` if it cannot be read.
    """
    if "limit" not in stored:
        return Budget.from_json(stored)
    if stored["limit"] != "none":
        raise ValueError(stored["limit"])
    return NoBudget(from_text(stored["odometer_delta"]))
