"""What the ledger has of a query: its answers, and the charges without one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpnb.errors import DpnbError, RequestError
from dpnb.results.answer import Answer

if TYPE_CHECKING:
    from dpnb._core.core import SessionCore
    from dpnb._plan.measurements import AnyView
    from dpnb._plan.plan import Plan


class RecordedAnswers:
    """The recorded answers of a query; free."""

    __slots__ = ()

    if TYPE_CHECKING:  # of the query
        is_two_way: bool
        plan: Plan
        view: AnyView
        runner: SessionCore

        @property
        def description(self) -> str:
            """The query in words."""

    def _has_answer(self) -> bool:
        with suppress(DpnbError):  # the ledger cannot be read
            return self.best is not None
        return False

    @property
    def answer(self) -> Answer:
        """The answer of this query, however it was released: all observations combined, at 95% confidence.  Free.

        After a release by the button of the picker it is what the picker shows.  ``query.plot()`` draws it.

        Raises
        ------
        RequestError
            Nothing was released yet.

        Examples
        --------
        >>> import dpnb
        >>> session = dpnb.Session.rehearse(
        ...     name="people", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"age": dpnb.Bounded(0, 100)}
        ... )
        >>> query = session.frame.count()
        >>> query.release(mu=0.1).item() == query.answer.item()
        True
        """
        best = self.best
        if best is None:
            raise RequestError(
                f".answer of {self.description}: nothing was released yet; .preview() shows costs and expected errors, "
                "and .release(share=0.05) releases it for 5% of what is left"
            )
        return best

    @property
    def best(self) -> Answer | None:
        """All observations of this query, combined, at 95% confidence; None before the first release.  Free.

        Unlike a repeated `release`, this changes with each new observation.
        """
        answer = self.runner.releases.best(self.plan, self.view)
        return answer if answer is None or not self.is_two_way else replace(answer, is_two_way=True)

    @property
    def unanswered(self) -> list[dict[str, Any]]:
        """Targets that were charged but never answered, after a crash or an interrupt.  Releasing them again is free.

        Each target is a dict of arguments of `release`, for example ``{"mu": Fraction(1, 5)}``.
        """
        return [target.to_arguments() for target in self.runner.releases.unanswered(self.plan, self.view)]
