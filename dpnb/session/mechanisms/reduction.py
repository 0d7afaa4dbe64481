"""One answer, refined until it is good enough."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

from dpnb.accounting.exact import from_text, shown_up
from dpnb.accounting.losses import GDP, Loss
from dpnb.answer.answer import Answer
from dpnb.answer.faces import cost_up
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.interactive.protocol import Charged
from dpnb.interactive.stopping import StoppingRule
from dpnb.query.plan import Plan
from dpnb.session.mechanisms.mechanism import Mechanism
from dpnb.session.releases import Releases
from dpnb.session.tree import Launch

FACTOR = 2
"""By which mu squared, and so the inverse of the variance, grows from look to look: at the end at most this factor more
is paid than was needed."""

Look = Callable[[Fraction], Answer]


class NoiseReduction(Mechanism):
    """An answer that is refined look by look; the analyst, or a rule that sees released intervals, says when to stop.

    Each look pays only for what it adds: what is paid in the end is what asking once at the last level costs
    (:mod:`dpnb.interactive.refinement`).  The intervals hold although the stopping depends on the answers.

    Parameters
    ----------
    launch : Launch
    releases : Releases
    words : str
        The question.
    look : callable
        Releases the question at a mu squared.
    """

    charged: ClassVar[Charged] = "step by step"
    terms: ClassVar[str] = (
        "One question, looked at again and again. Each look is charged before it is taken, for what it adds; stopping "
        "early saves the rest."
    )

    def __init__(self, launch: Launch, releases: Releases, words: str, look: Look) -> None:
        super().__init__(launch, releases)
        self._words, self._look = words, look
        self._first = from_text(launch.about["first"])
        most = launch.about["asked"]["most"]
        self._most = None if most is None else from_text(most)
        self._taken = 0
        self.answer: Answer | None = None
        """The last look's answer; None before the first in this kernel."""
        self.met: bool | None = None
        """Whether the rule of the last `until` was met; None before one."""

    @property
    def _next(self) -> Fraction | None:
        """The mu squared of the next look; None when `most` has been reached."""
        squared: Fraction = self._first * FACTOR**self._taken
        if self._most is None or squared < self._most:
            return squared
        before = self._first * FACTOR ** (self._taken - 1) if self._taken else Fraction(0)
        return self._most if before < self._most else None

    def step(self) -> Answer:
        """Take the next look, at twice the information of the last.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.
        RequestError
            `most` has been reached.
        MechanismClosed
            It was closed.
        """
        squared = self._next
        if squared is None:
            raise RequestError(
                f"{self.name}: the most that was allowed, mu={GDP.from_squared(self._most or 0).mu!r}, has been "
                "reached; launch another one under a new name with a larger most="
            )
        self.answer = self._look(squared)
        self._taken += 1
        return self.answer

    def until(self, rule: StoppingRule) -> Answer:
        """Take looks until a rule is met, and close; or until `most` or the budget is reached, and stay open.

        `met` says which it was.  Asked again, also in a later kernel, it gives the same looks free and stops at the
        same one.

        Parameters
        ----------
        rule : StoppingRule
            Of :mod:`dpnb.interactive`, for example ``RelativeError(0.05)``; or any object with a ``met(low, high)``
            that is given released limits.

        Raises
        ------
        BudgetExceeded
            The filter refuses even the first look.
        MechanismClosed
            It was closed before the rule was met.
        """
        self._taken = 0
        while self._next is not None:
            try:
                answer = self.step()
            except BudgetExceeded:
                if self.answer is None:
                    raise
                break
            if rule.met(answer.cells.low, answer.cells.high):
                self.met = True
                self.close()
                return answer
        self.met = False
        if self.answer is None:
            raise RequestError(f"{self.name}: most= allows no look; give a larger one")
        return self.answer

    @property
    def cost(self) -> Loss:
        """How well the question is known by now: what its looks cost together."""
        return self._releases.known(Plan.from_json(self._launch.about["asked"]["plan"]))

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        cost = self.cost
        paid = f"known at {cost_up(cost)}" if cost else "not looked at yet"
        return f"{self._words}: {paid}"

    def __repr__(self) -> str:
        met = "" if self.met is None else "; criterion met" if self.met else "; criterion not met"
        first = f"first look at mu {shown_up(GDP.from_squared(self._first).mu)}"
        return f"<{self.kind} {self.name!r}, {self.state}: {self.summary}; {first}{met}; charged {self.charged}>"
