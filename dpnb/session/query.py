"""A question that can be previewed and released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpnb.accounting.exact import Number
from dpnb.answer.answer import Answer
from dpnb.answer.preview import Preview
from dpnb.query.plan import Plan
from dpnb.session.target import target_from

if TYPE_CHECKING:
    from dpnb.session.session import Session


class Query:
    """A question asked of a session.  Free until it is released.

    Parameters
    ----------
    plan : Plan
        What is asked; serialisable, without data.
    session : Session
    """

    __slots__ = ("_session", "plan")

    def __init__(self, plan: Plan, session: Session) -> None:
        self.plan = plan
        self._session = session

    def preview(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Number | None = None,
        confidence: Number = 0.95,
    ) -> Preview:
        """What a release with the same arguments would cost and give; free, and made without the table.

        Raises
        ------
        RequestError, InvalidValueError, UnknownErrorSize
            As `release`.
        """
        target = target_from(mu=mu, rho=rho, epsilon=epsilon, share=share, within=within, confidence=confidence)
        return self._session._preview(self.plan, target)

    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Number | None = None,
        confidence: Number = 0.95,
    ) -> Answer:
        """Answer the question so that it is known at least this well, and charge what that adds.

        The same arguments give the very answer they gave the first time, at no cost, in any kernel.  A tighter target
        pays the difference; a looser one is free.

        Parameters
        ----------
        mu, rho, epsilon : Number, optional
            Total loss of what is known of this question: in GDP, in zCDP (mu = sqrt(2 rho)), or the mu that gives
            epsilon at the budget's delta.  Exactly one of these five.
        share : Number, optional
            Of the budget that is left, in (0, 1]; 1 spends exactly what is left.
        within : Number, optional
            Half-width of the interval, in the answer's units; of the smallest group.
        confidence : Number
            Of each interval by itself.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.  The message names the largest budget that fits.
        RequestError
            Not exactly one target, or an impossible one.
        InvalidValueError
            A number is not finite and positive.
        UnknownErrorSize
            ``within=`` for an error that depends on a count nobody has released.
        ExecutionError
            It failed after the charge; the charge stands, and the same request takes it up again.
        """
        target = target_from(mu=mu, rho=rho, epsilon=epsilon, share=share, within=within, confidence=confidence)
        return self._session._release(self.plan, target)

    @property
    def best(self) -> Answer | None:
        """Everything released about this question so far, combined, at 95%; None before the first release.  Free.

        Unlike a repeated `release`, this changes when more becomes known.
        """
        return self._session._best(self.plan)

    def __repr__(self) -> str:
        return f"<question: {self.plan.words}; .preview(within=...) is free, .release(within=...) is charged>"
