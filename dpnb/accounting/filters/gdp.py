"""The filter of Gaussian differential privacy, and what it charges for mechanisms in pure DP.

Claim (Smith and Thakurta 2022, Theorem 1).  If each release is mu_i-GDP given the past, with mu_i chosen from the
past, and the sum of mu_i^2 never exceeds mu0^2, then all releases together are mu0-GDP.

Proof, by a Brownian motion.  Fix two neighbours, with b = 0 for one and b = 1 for the other.  Given the past, release
i is a randomised function of a draw from N(b mu_i, 1) that does not otherwise depend on b (Blackwell's theorem; Dong,
Roth and Su 2022).  So it suffices to make all these draws from one draw from N(b mu0, 1).

Let X_t = b t + B_t for t from 0 to mu0^2, B a Brownian motion.  Its end is N(b mu0^2, mu0^2), hence, divided by mu0, a
draw from N(b mu0, 1).  Given its end, X is a Brownian bridge, whose distribution does not depend on b; so the whole
path is a randomised function of that draw.  Let T_i = mu_1^2 + ... + mu_i^2 and use the draws::

    (X at T_i - X at T_(i-1)) / mu_i    (or a fresh N(0, 1), if mu_i = 0)

Since mu_i is known at the time T_(i-1), and what X does after that time is a Brownian motion with the same drift that
is independent of the past, draw i is N(b mu_i, 1) given the past.  All T_i are at most mu0^2, so the path is long
enough.  ∎

The argument does not need a bound on the number of releases.  For releases with a delta see the notes of
:class:`dpnb.Budget`.

A loss in pure DP is charged the *residue* of the budget that is left, or a reserve; a bounded range, the residue.  The
proofs are in :mod:`dpnb.accounting.conversions.residue` and :mod:`dpnb.accounting.conversions.reserve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import epsilon_of_pure_gdp, residue_charge
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import (
    Number,
    decimal_down,
    decimal_sqrt_down,
    decimal_sqrt_up,
    decimal_up,
    display_down,
    display_up,
    exact,
    non_negative,
    of_budget,
)
from dpnb.accounting.filters.sum_filter import SumFilter, share_of, times_within
from dpnb.accounting.losses import GDP, EpsilonLoss, GaussianLoss, Loss, PureDP, PureGDP, Repeated
from dpnb.accounting.losses.epsilon import is_range
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.errors import BudgetExceeded, LedgerError

_STEPS = 16
"""How many repetitions are counted one by one; the others have at most the charge of the conversion to GDP."""
_HALVINGS = 20  # of the bisection for the largest epsilon that a refusal names, which has four digits


@dataclass(frozen=True, init=False, repr=False)
class GDPFilter(SumFilter[GaussianLoss]):
    """Admits losses while the sum of mu squared stays within mu0 squared; then all releases together are mu0-GDP.

    Smith and Thakurta 2022 (Fully Adaptive Composition for Gaussian Differential Privacy), Theorem 1: the bound is the
    same as for mus fixed in advance.  Losses may have a delta; the sum of the deltas stays within the filter's delta.
    A loss in pure DP is charged what it takes from the remaining budget (Regehr et al. 2026, arXiv:2602.15815), which
    is at most what :func:`~dpnb.accounting.convert` makes of it.

    Part of the budget can be set aside as a reserve for losses in pure DP, which are charged to it while their
    epsilons are within what is left of it.  `headroom` and `budget_fraction` are about the Gaussian part of the
    budget, unless that is 0; `reserve_headroom` is about the reserve.

    The `guaranteed_epsilon` is that of :func:`~dpnb.accounting.conversions.epsilon_of_pure_gdp` (without a reserve
    Dong, Roth and Su 2022, Corollary 2.13) at the part of delta that the filter's own delta leaves.

    Parameters
    ----------
    mu : Number
        The budget mu0, at least 0; a float means its shortest decimal.
    delta : Number, default 0
        Budget for the losses' deltas, in [0, 1]; with 1 the `guaranteed_epsilon` is infinite.
    pure_epsilon : Number, default 0
        The reserve beside mu0, at least 0, in nats; `budget` and `spent` are then `PureGDP`.

    Raises
    ------
    InvalidValueError
        mu or pure_epsilon is negative, or delta is outside [0, 1].

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPFilter, PureDP
    >>> half = GDPFilter(1).step(GDP("0.6"))
    >>> half.headroom, half.affordable(), half.admits(GDP(0.8)), half.admits(GDP(0.81))
    (0.64, GDP(mu=0.8), True, False)

    A loss in pure DP, and what a conversion alone would charge for it; then one with a reserve:

    >>> from dpnb.accounting import convert
    >>> scan, filter_ = PureDP(0.15), GDPFilter(mu=0.2367)
    >>> round(filter_.step(scan).headroom, 2), round(filter_.step(convert(scan, GDP)).headroom, 2)
    (0.56, 0.37)

    >>> filter_ = GDPFilter(mu=0.5, pure_epsilon=0.3).step(PureDP(0.2)).step(GDP(0.3))
    >>> filter_.affordable()
    PureGDP(mu=0.4, epsilon=0.1)
    >>> filter_.step(PureDP(0.2)).spent.epsilon  # it takes what is left of the reserve, and the rest jointly
    Fraction(3, 10)
    >>> filter_.budget_fraction(GDP("0.3")), filter_.budget_fraction(PureDP(0.1))
    (0.36, 0.0)
    >>> round(GDPFilter(mu=0.21, pure_epsilon=0.15).guaranteed_epsilon(delta=1e-6), 3)
    1.0
    """

    name = "gdp"
    is_served = True
    records_charge = True
    counted_filters = ("gdp",)
    interleaving_obstacle = None  # Haney et al. 2023, Section 3
    is_by_residue: bool = False  # whether a charge of `spent` depended on what was left

    def __init__(self, mu: Number, delta: Number = 0.0, pure_epsilon: Number = 0) -> None:
        gaussian, reserve = GDP(mu, delta), non_negative(pure_epsilon, name="pure_epsilon")
        self._start(PureGDP.of(*gaussian.parts, reserve) if reserve else gaussian)

    def _start(self, budget: GaussianLoss) -> None:
        super()._start(budget)
        self._set(_in_headroom=slice(2, 3) if self._is_pure else slice(2))  # of the reserve, or the Gaussian part

    @classmethod
    def from_loss(cls, budget: Loss) -> Self:
        """The filter whose budget is a loss, exact in mu squared; refused if no theorem converts that to GDP.

        Parameters
        ----------
        budget : GDP or PureGDP
            The budget.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPFilter
        >>> GDPFilter.from_loss(GDP(mu=1))
        GDPFilter(budget=GDP(mu=1.0), spent=GDP(mu=0.0))
        """
        new = object.__new__(cls)
        new._start(budget if isinstance(budget, GaussianLoss) else convert(budget, GDP))
        return new

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        reserve = budget.pure_epsilon
        return cls.from_loss(PureGDP.of(*budget.loss.parts, reserve) if reserve else budget.loss)

    def to_filter_loss(self, loss: Loss) -> GaussianLoss:
        """The loss as this filter counts it now: one of the budget's kind as it is, another by `launch_charge`.

        ZCDP and RDP do not imply GDP.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Examples
        --------
        >>> from dpnb.accounting import GDPFilter, PureDP
        >>> round(GDPFilter(mu=1).to_filter_loss(PureDP(0.1)).mu, 4)
        0.1001
        >>> GDPFilter(mu=1, pure_epsilon=0.1).to_filter_loss(PureDP(0.1))
        PureGDP(mu=0.0, epsilon=0.1)
        """
        return loss if isinstance(loss, GaussianLoss) and type(loss) is type(self.budget) else self.launch_charge(loss)

    def launch_charge(self, loss: Loss) -> GaussianLoss:
        """What a mechanism is charged at launch in the current state.

        With a reserve this differs from `to_filter_loss` for a `PureGDP`, whose pure part may exceed what is left of
        the reserve.

        Parameters
        ----------
        loss : Loss
            The loss of the mechanism.

        Raises
        ------
        ConversionError
            The loss is neither GDP nor has an epsilon.

        Examples
        --------
        >>> from dpnb.accounting import GDPFilter, PureGDP
        >>> GDPFilter(mu=1, pure_epsilon=0.1).launch_charge(PureGDP(0.2, mu=0.5)).epsilon
        Fraction(1, 10)
        """
        charge = self._unconverted(loss)
        if charge.epsilon and charge.epsilon > (left := as_amount(self.budget - self.spent)).epsilon:
            mu, reserve = left.mu_squared, left.epsilon
            residue = residue_charge(
                as_amount(loss).epsilon, mu_squared=mu, pure_epsilon=reserve, count=loss.count, is_range=is_range(loss)
            )
            if residue is not None:
                charge = PureGDP.of(residue + charge.mu_squared, charge.delta, left.epsilon)
            elif not self._is_pure:  # it does not fit
                beside = charge.epsilon if self.budget.epsilon else Fraction(0)
                charge = PureGDP.of(convert(loss, GDP).mu_squared, charge.delta, beside)
        return self._of_kind(charge)

    def _unconverted(self, loss: Loss) -> PureGDP:
        """The parts of a loss; what has neither mu nor epsilon is converted to GDP, if a theorem allows it.

        A range leaves what half of it in pure DP leaves, but may not be taken from a reserve.
        """
        if is_range(loss) and not self.budget.epsilon:
            return PureGDP.of(Fraction(0), Fraction(0), as_amount(loss).epsilon / 2)
        is_amount = isinstance(loss, EpsilonLoss | GaussianLoss) and not is_range(loss)
        return as_amount(loss if is_amount else convert(loss, GDP))

    def _of_kind(self, amount: PureGDP) -> GaussianLoss:
        """An amount in the kind of the budget, which without a reserve has no epsilon."""
        return amount if len(self.budget.parts) == len(amount.parts) else GDP.of(*amount.parts[:2])

    def step(self, loss: Loss) -> Self:
        charge = self.to_filter_loss(loss)
        total = self.spent + charge
        if not total.within(self.budget):
            raise BudgetExceeded(self._refusal(loss))
        # With a reserve the sum allows no statement for other budgets anyhow.
        if charge is loss or isinstance(loss, GDP) or len(self.budget.parts) > 2 or not self._unconverted(loss).epsilon:
            return self._changed(spent=total)
        return self._changed(spent=total, is_by_residue=True)

    @property
    def rule(self) -> str:
        reserve, mu = map(display_down, (decimal_down(self.budget.epsilon), decimal_sqrt_down(self.budget.mu_squared)))
        if self._is_pure:
            return f"the sum of the epsilons must stay within {reserve}"
        beside = f", and the sum of the epsilons in pure DP within the reserve {reserve}" if self.budget.epsilon else ""
        return f"the sum of mu^2 must stay within {mu}^2{self._delta_rule}{beside}"

    def guaranteed_epsilon(self, delta: Number) -> float:
        budget = self.budget
        return self._guarantee(delta, lambda good: epsilon_of_pure_gdp(budget.epsilon, budget.mu_squared, good))

    @property
    def counts_range(self) -> bool:  # type: ignore[override]
        """Unless it has a reserve, which counts epsilon."""
        return not self.budget.epsilon

    @property
    def _is_pure(self) -> bool:
        """Whether the budget is a reserve and nothing else."""
        gaussian, _, *reserve = self.budget.parts
        return any(reserve) and not gaussian

    @property
    def mu_squared_left(self) -> Fraction:
        """What is left of the Gaussian part."""
        return self.budget.parts[0] - self.spent.parts[0]

    @property
    def reserve(self) -> Fraction:
        """The reserve beside the Gaussian part of the budget; 0 if there is none."""
        gaussian, _, *reserve = self.budget.parts
        return reserve[0] if gaussian and reserve else Fraction(0)

    @property
    def reserve_headroom(self) -> float:
        whole = self.budget.epsilon
        return decimal_down(1 - self.spent.epsilon / whole) if whole else 0.0

    def budget_fraction(self, loss: Loss) -> float:
        n = 2 if self.budget.parts[0] else len(self.budget.parts)
        return share_of(self.to_filter_loss(loss).parts[:n], self.budget.parts[:n])

    def max_repetitions(self, loss: Loss) -> int | None:
        """How many more losses like `loss` are admitted, rounded down; None if its cost is 0.

        A loss with an epsilon beyond the reserve is charged more, the less is left.

        Parameters
        ----------
        loss : Loss
            The loss of one release, or of a mechanism.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPFilter, PureDP, convert
        >>> GDPFilter(mu=1).max_repetitions(PureDP(0.3)), GDPFilter(mu=1).max_repetitions(convert(PureDP(0.3), GDP))
        (10, 7)
        >>> GDPFilter(mu=0.3, pure_epsilon=1).max_repetitions(PureDP(0.2))
        6
        """
        if isinstance(loss, GDP) or not (once := self._unconverted(loss)).epsilon:
            return super().max_repetitions(loss)
        inside = times_within(as_amount(self.budget - self.spent).parts, once.parts) or 0
        state = self._changed(spent=self.spent + self._of_kind(once.with_parts(tuple(inside * p for p in once.parts))))
        for count in range(_STEPS):
            charge = state.launch_charge(loss)
            if not state.admits(charge):
                return inside + count
            state = state.step(charge)
        rest = times_within((state.budget - state.spent).parts[:2], convert(loss, GDP).parts)
        return inside + _STEPS + (rest or 0)

    @property
    def _is_anything_left(self) -> bool:
        left = self.budget - self.spent
        return bool(left.mu_squared or left.epsilon)

    def largest_launch(self, loss: Loss) -> str | None:
        """The largest epsilon that fits, for a mechanism in pure DP."""
        if not isinstance(loss, PureDP | Repeated):
            return None
        low, high = decimal_down((self.budget - self.spent).epsilon), decimal_up(loss.epsilon)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.admits(loss.with_parts((exact(middle),))) else (low, middle)
        epsilon = float(display_down(low))
        return f"epsilon={epsilon!r}" if epsilon else ""

    def recorded_charge(self, loss: Loss, counted: Loss) -> PureGDP | None:
        """What a row of the ledger says that it was charged, unless it is that of Gaussian noise."""
        return None if isinstance(loss, GDP) else as_amount(counted)

    def recorded_loss(self, loss: Loss, charged: PureGDP | None) -> GaussianLoss:
        """What a row of the ledger was charged; without it, the loss converted to GDP, whatever is left."""
        if charged is None and isinstance(loss, GaussianLoss) and type(loss) is type(self.budget):
            return loss
        amount = as_amount(convert(loss, GDP)) if charged is None else charged
        if amount.epsilon and not self.budget.epsilon:
            raise LedgerError(f"filter={self.name!r} charges no {charged!r} for {loss!r}; was the ledger edited?")
        return self._of_kind(amount)

    @property
    def sums_up_for_every_budget(self) -> bool:
        """Whether no charge depended on what was left."""
        return not self.is_by_residue and len(self.budget.parts) == 2

    @property
    def label(self) -> str:
        return "pure DP" if self._is_pure else "GDP"

    @property
    def theorem(self) -> str:
        if self._is_pure:
            return "Rogers et al. 2016, Theorem 3.3: the sum of the epsilons"
        beside = ", and the sum of the epsilons of scans and selections against the reserve" if self.reserve else ""
        return (
            "Smith and Thakurta 2022, Theorem 1, and Regehr et al. 2026 for mechanisms in pure DP: the sum of mu^2 "
            f"against mu0^2{beside}"
        )

    @property
    def guarantee(self) -> str:
        """What is guaranteed, for example ``0.2368-GDP``."""
        reserve = display_up(decimal_up(self.budget.epsilon))
        if self._is_pure:
            return f"{reserve}-DP"
        gaussian = f"{display_up(decimal_sqrt_up(self.budget.mu_squared))}-GDP"
        return f"{gaussian} and a reserve of epsilon {reserve} in pure DP" if self.reserve else gaussian

    @property
    def spent_words(self) -> str:
        """The spent mu of the budget, and epsilon of the reserve."""
        gaussian = of_budget("mu", decimal_sqrt_up(self.spent.parts[0]), decimal_sqrt_down(self.budget.parts[0]))
        if not any(self.budget.parts[2:]):
            return gaussian
        reserve = of_budget("epsilon", decimal_up(self.spent.epsilon), decimal_down(self.budget.epsilon))
        return reserve if self._is_pure else f"{gaussian}, and {reserve} of the reserve"
