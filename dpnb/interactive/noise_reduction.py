"""One answer, refined until it is good enough."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

from dpnb._core.accountant.tree import NOISE_REDUCTION, Launch
from dpnb._core.core import SessionCore
from dpnb._core.options import checked_amount
from dpnb._core.pricing.target import target_from
from dpnb._core.query import Query
from dpnb._plan.measurements import Discovery, view_from_json, view_to_json
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import Number, decimal_sqrt_down, display_up, exact, from_text, shown, to_text
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.interactive.launch_request import LONGEST_NAME, LaunchRequest
from dpnb.interactive.mechanism import SessionMechanism, own_query
from dpnb.interactive.protocol import Charged
from dpnb.interactive.stopping import StoppingRule
from dpnb.ledger import node_of
from dpnb.progress import Stage, work
from dpnb.render.numbers import format_cost_up
from dpnb.results.answer import Answer

FACTOR = 2
"""By which mu squared, and so the inverse of the variance, grows from look to look: at the end at most this factor more
is paid than was needed."""

INITIAL_SHARE = exact(0.01)
"""Of what is left, that a noise reduction looks at first."""


class NoiseReduction(SessionMechanism):
    """An answer that is refined look by look; the analyst, or a rule that sees released intervals, says when to stop.

    Each look pays only for what it adds: what is paid in the end is what asking once at the last level costs
    (:mod:`dpnb.results.observations`).  The intervals hold although the stopping depends on the answers.

    Parameters
    ----------
    launch : Launch
    core : SessionCore
    """

    charged: ClassVar[Charged] = "step by step"
    cost_description: ClassVar[str] = (
        "One question, looked at again and again. Each look is charged before it is taken, for what it adds; stopping "
        "early saves the rest."
    )

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        asked = launch.details["arguments"]
        self._plan, self._view = Plan.from_json(asked["plan"]), view_from_json(asked["view"])
        self._words = describe_plan(self._plan, self._view)
        self._first = from_text(launch.details["resolved"]["initial_mu_squared"])
        most = asked["max_mu_squared"]
        self._most = None if most is None else from_text(most)
        self._taken = 0
        self.answer: Answer | None = None
        """The last look's answer; None before the first in this kernel."""
        self.met: bool | None = None
        """Whether the rule of the last `until` was met; None before one."""

    def begin(self) -> None:
        """Go back to the first look: launched again, it gives its looks again, free, as in a notebook that is rerun."""
        self._taken, self.answer, self.met = 0, None, None

    def look(self, number: int) -> Answer:
        """The answer of a look, numbered from 0; free if it was taken before, in any kernel.

        Look k is at 2^k times the information of the first, or at that of `most` if this is less.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.
        RequestError
            `most` is reached by an earlier look.
        MechanismClosed
            It was closed, and the look never taken.
        """
        squared = self._squared(number)
        if squared is None:
            raise RequestError(
                f"{self.name}: the most that was allowed, mu={GDP.from_mu_squared(self._most or 0).mu!r}, has been "
                "reached; launch another one under a new name with a larger max_mu="
            )
        target, inside = target_from(rho=squared / 2), node_of(self.id)
        self.answer = self._releases.release(self._plan, self._view, target, inside=inside, combined=True)
        self._taken = number + 1
        return self.answer

    def _squared(self, number: int) -> Fraction | None:
        """The mu squared of a look; None beyond the last."""
        squared: Fraction = self._first * FACTOR**number
        if self._most is None or squared < self._most:
            return squared
        return self._most if not number or squared / FACTOR < self._most else None

    def step(self) -> Answer:
        """Take the next look, at twice the information of the last; see `look`."""
        return self.look(self._taken)

    def until(self, rule: StoppingRule) -> Answer:
        """Take looks until a rule is met, and close; or until `max_mu` or the budget is reached, and stay open.

        `met` says which it was.  Asked again, also in a later kernel, it gives the same looks free and stops at the
        same one.

        Parameters
        ----------
        rule : StoppingRule
            Of :mod:`dpnb.interactive`, such as ``RelativeError(0.05)``; or an object with ``is_satisfied(low, high)``
            that is given released limits.

        Raises
        ------
        RequestError
            It is not a rule; nothing was charged.
        BudgetExceeded
            The filter refuses even the first look.
        MechanismClosed
            It was closed before the rule was met.
        """
        if isinstance(rule, type) or not callable(getattr(rule, "is_satisfied", None)):
            raise RequestError(
                f"until: needs a rule that sees released limits, such as RelativeError(0.05), AbsoluteError(10) or "
                f"Apart(0) of dpnb.interactive, or an object with a method is_satisfied(low, high); got {shown(rule)}"
            )
        with work(Stage.CHARGING):
            answer, number = self.look(0), 0
            while not rule.is_satisfied(answer.arrays.low, answer.arrays.high):
                number += 1
                if self._squared(number) is None:
                    break
                try:
                    answer = self.look(number)
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
        """How well the question is known by now: what its looks cost together."""
        return self._releases.known(self._plan)

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        cost = self.cost
        paid = f"known at {format_cost_up(cost)}" if cost else "not looked at yet"
        return f"{self._words}: {paid}"

    def __str__(self) -> str:
        met = "" if self.met is None else "; criterion met" if self.met else "; criterion not met"
        first = f"first look at mu {display_up(GDP.from_mu_squared(self._first).mu)}"
        return f"<{self.kind} {self.name!r}, {self.state}: {self.summary}; {first}{met}; charged {self.charged}>"


def noise_reduction_request(
    core: SessionCore,
    named: Callable[[object], Launch | None],
    query: Query,
    name: str | None,
    initial_mu: Number | None,
    max_mu: Number | None,
) -> LaunchRequest:
    """The launch of a noise reduction; for the other arguments see :meth:`Session.noise_reduction`.

    Parameters
    ----------
    core : SessionCore
    named : callable
        What was launched under a name before.

    Raises
    ------
    RequestError
        The question is another session's, or a discovery.
    InvalidValueError
        A number is not positive.
    BudgetExceeded
        Nothing is left.
    """
    account = core.account
    plan, view = own_query(query, account.root_node, account.ledger)
    if isinstance(plan.aggregation, Discovery):
        raise RequestError("noise_reduction: which groups are found differs from look to look; discover them anew")
    allowed = None if max_mu is None else to_text(checked_amount(max_mu, "max_mu") ** 2)
    given = None if initial_mu is None else to_text(checked_amount(initial_mu, "initial_mu") ** 2)
    asked = {
        "plan": plan.to_json(),
        "view": view_to_json(view),
        "initial_mu_squared": given,
        "max_mu_squared": allowed,
    }
    title = describe_plan(plan, view)[:LONGEST_NAME] if name is None else name
    known = named(title)
    start = given
    if start is None and known is not None:
        start = known.details["resolved"].get("initial_mu_squared")
    if start is None:
        left = account.promise.remaining(account.filter, INITIAL_SHARE)
        if not left.mu_squared:
            raise BudgetExceeded("noise_reduction: nothing is left of the budget; nothing was charged")
        start = to_text(exact(decimal_sqrt_down(left.mu_squared)) ** 2)
    return LaunchRequest(NOISE_REDUCTION, title, asked, about={"initial_mu_squared": start})
