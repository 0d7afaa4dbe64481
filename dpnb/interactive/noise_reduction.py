"""One answer, refined until it is accurate enough."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

from dpnb._core.accountant.tree import Launch
from dpnb._core.core import SessionCore
from dpnb._core.pricing.resolve import refuse_in_pure_dp
from dpnb._plan.measurements import AnyView, Discovery
from dpnb._plan.plan import Plan, describe_plan
from dpnb._request import Conditions, ReduceNoise, Release
from dpnb._target import MAX_BITS, checked_loss, target_from
from dpnb.accounting.exact import Number, decimal_sqrt_down, display_up, exact, from_text, shown, to_text
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.interactive.mechanism import Charged, LaunchRequest, SessionMechanism, title_of
from dpnb.interactive.stopping import StoppingRule
from dpnb.ledger import node_of
from dpnb.progress import Stage, work
from dpnb.results.answer import Answer

FACTOR = 2
"""The factor by which mu squared, and so the inverse variance, grows between observations: the final cost exceeds the
minimum by at most this factor."""

INITIAL_SHARE = exact(0.01)
"""Share of the remaining budget for the first observation."""

_MU_BITS = MAX_BITS // 2 - 1
"""Bits of `initial_mu` and `max_mu`: observations are requested by rho, which is half of the square."""


class NoiseReduction(SessionMechanism):
    """An answer that is refined step by step, until the analyst or a rule on released intervals stops it.

    Each observation is charged only for what it adds: the total is the cost of one release at the last level
    (see :ref:`proof-refinement`).  The intervals are valid although the stopping depends on the answers.

    Parameters
    ----------
    launch : Launch
    core : SessionCore

    Attributes
    ----------
    answer : Answer or None
        The answer of the last observation; None before the first in this kernel.
    met : bool or None
        Whether the rule of the last `until` was satisfied; None before the first call.

    Examples
    --------
    >>> from dpnb.interactive import RelativeError
    >>> total = session.noise_reduction(df["cost"].sum(), max_mu=0.3)
    >>> total.until(RelativeError(0.05)).description
    'sum of cost'
    >>> total.state
    'closed'
    """

    charged: ClassVar[Charged] = "step by step"
    cost_description: ClassVar[str] = (
        "One query, observed repeatedly. Each observation is charged before it is taken, for what it adds; stopping "
        "early saves the rest."
    )

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        one = launch.mechanism
        if not isinstance(one, ReduceNoise):  # never: its kind is that of a noise reduction
            raise TypeError(launch.kind)
        self._plan, self._view = one.plan, one.view
        self._description = describe_plan(self._plan, self._view)
        self._initial_mu_squared = from_text(launch.resolved["initial_mu_squared"])
        self._max_mu_squared = None if one.max_mu is None else one.max_mu**2
        self._n_observations = 0
        self.answer: Answer | None = None
        self.met: bool | None = None

    def begin(self) -> None:
        """Return to the first observation; after a relaunch, as in a rerun notebook, recorded observations are free."""
        self._n_observations, self.answer, self.met = 0, None, None

    def observe(self, number: int) -> Answer:
        """The answer of an observation, numbered from 0; free if it was taken before, in any kernel.

        Observation k has 2^k times the information of the first, or that of `max_mu` if this is less.

        Parameters
        ----------
        number : int
            From 0.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.
        RequestError
            An earlier observation reaches `max_mu`.
        MechanismClosed
            The mechanism was closed before this observation was taken.

        Examples
        --------
        >>> total = session.noise_reduction(df["cost"].sum(), max_mu=0.3)
        >>> total.observe(1).n_observations
        1
        """
        squared = self._mu_squared(number)
        if squared is None:
            raise RequestError(
                f"{self.name}: max_mu={GDP.from_mu_squared(self._max_mu_squared or 0).mu!r} has been reached; launch "
                "another one under a new name with a larger max_mu="
            )
        target, inside = target_from(rho=squared / 2), node_of(self.id)
        request = Release(self._plan, self._view, target)
        self.answer = self._releases.release(request, Conditions(inside, combined=True))
        self._n_observations = number + 1
        return self.answer

    def _mu_squared(self, number: int) -> Fraction | None:
        """The mu squared of an observation; None beyond the last."""
        squared: Fraction = self._initial_mu_squared * FACTOR**number
        if self._max_mu_squared is None or squared < self._max_mu_squared:
            return squared
        return self._max_mu_squared if not number or squared / FACTOR < self._max_mu_squared else None

    def step(self) -> Answer:
        """Take the next observation, with twice the information of the last; see `observe`.

        Examples
        --------
        >>> total = session.noise_reduction(df["cost"].sum(), max_mu=0.3)
        >>> total.step().n_observations
        1
        >>> total.step().n_observations
        2
        """
        return self.observe(self._n_observations)

    def until(self, rule: StoppingRule) -> Answer:
        """Take observations until a rule is satisfied, and close; or until `max_mu` or the budget is reached.

        In the second case the mechanism stays open; `met` shows which case occurred.  A repeated call, also in a later
        kernel, returns the same observations at no cost and stops at the same one.

        Parameters
        ----------
        rule : StoppingRule
            A rule of :mod:`dpnb.interactive`, such as ``RelativeError(0.05)``; or an object with a method
            ``is_satisfied(low, high)``, which is called with the ends of released intervals.

        Raises
        ------
        RequestError
            `rule` is not a stopping rule; nothing was charged.
        BudgetExceeded
            The filter refuses even the first observation.
        MechanismClosed
            The mechanism was closed before the rule was satisfied.

        Examples
        --------
        >>> from dpnb.interactive import RelativeError
        >>> total = session.noise_reduction(df["cost"].sum(), max_mu=0.3)
        >>> total.until(RelativeError(0.05)).description
        'sum of cost'
        """
        if isinstance(rule, type) or not callable(getattr(rule, "is_satisfied", None)):
            raise RequestError(
                f"until: needs a stopping rule, such as RelativeError(0.05), AbsoluteError(10) or ExcludesValue(0) of "
                f"dpnb.interactive, or an object with a method is_satisfied(low, high); got {shown(rule)}"
            )
        with work(Stage.CHARGING):
            answer, number = self.observe(0), 0
            while not rule.is_satisfied(answer.arrays.low, answer.arrays.high):
                number += 1
                if self._mu_squared(number) is None:
                    break
                try:
                    answer = self.observe(number)
                except BudgetExceeded:
                    break
            else:
                self.met = True
                self.close()
                return answer
            self.met = False
            return answer

    @property
    def cost(self) -> Loss:
        """The loss of all observations of its query together."""
        return self._releases.total_loss(self._plan)

    @property
    def summary(self) -> str:
        """The current status, in few words."""
        cost = self.cost
        known = f"known at {self._format_cost(cost)}" if cost else "not observed yet"
        return f"{self._description}: {known}"

    def __str__(self) -> str:
        met = "" if self.met is None else "; criterion met" if self.met else "; criterion not met"
        first = f"first observation at mu {display_up(GDP.from_mu_squared(self._initial_mu_squared).mu)}"
        return f"<{self.kind} {self.name!r}, {self.state}: {self.summary}; {first}{met}; charged {self.charged}>"


def noise_reduction_request(
    core: SessionCore,
    named: Callable[[object], Launch | None],
    plan: Plan,
    view: AnyView,
    name: str | None,
    initial_mu: Number | None,
    max_mu: Number | None,
) -> LaunchRequest:
    """The launch of a noise reduction; for the arguments see :meth:`dpnb.Session.noise_reduction`.

    `named` returns the earlier launch of a name.
    """
    account = core.account
    if isinstance(plan.aggregation, Discovery):
        raise RequestError(
            "noise_reduction: needs a query with fixed groups; those of a discovery differ between observations; "
            "release another .discover() instead"
        )
    refuse_in_pure_dp(account.guarantee.budget, describe_plan(plan, view))
    most = None if max_mu is None else checked_loss(max_mu, "max_mu", bits=_MU_BITS)
    first = None if initial_mu is None else checked_loss(initial_mu, "initial_mu", bits=_MU_BITS)
    title = title_of(describe_plan(plan, view)) if name is None else name
    known = named(title)
    start = None if first is None else to_text(first**2)
    if start is None and known is not None:
        start = known.resolved.get("initial_mu_squared")
    if start is None:
        if not account.guarantee.has_budget:
            raise RequestError(
                "noise_reduction: needs initial_mu= in a session without a budget, where there is no share of what "
                "remains; got none; give for example initial_mu=0.02; nothing was charged"
            )
        remaining = account.guarantee.remaining(account.filter, INITIAL_SHARE)
        if not remaining.mu_squared:
            raise BudgetExceeded("noise_reduction: no budget remains; nothing was charged")
        start = to_text(exact(decimal_sqrt_down(remaining.mu_squared)) ** 2)
    return LaunchRequest(title, ReduceNoise(plan, view, first, most), resolved={"initial_mu_squared": start})
