"""A question that can be previewed and released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Protocol, TypedDict, Unpack, overload

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.pricing.target import KINDS, StoredRequest
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import Number, exact, from_text
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import DpnbError, RequestError
from dpnb.render.page import with_timestamp
from dpnb.results.answer import Answer
from dpnb.results.explanation import Explanation
from dpnb.results.preview import Preview, Previews

CONFIDENCE = exact(0.95)

PICKER_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of what is left that a preview without arguments shows."""


class QueryRunner(Protocol):
    """What a query needs of the session that it is asked of: `dpnb._core.core.SessionCore` has it."""

    name: str
    notice: str | None
    account: Accountant

    def preview(self, plan: Plan, view: AnyView, **target: Any) -> Preview:
        """What a release would cost and give."""
        ...

    def release(self, plan: Plan, view: AnyView, **target: Any) -> Answer:
        """Answer a question, and charge what that adds."""
        ...

    def best(self, plan: Plan, view: AnyView) -> Answer | None:
        """Everything released about a question so far."""
        ...

    def unanswered(self, plan: Plan, view: AnyView) -> list[StoredRequest]:
        """What was charged for a question and never answered."""
        ...

    def explain(self, plan: Plan, view: AnyView) -> Explanation:
        """What one privacy unit contributes."""
        ...


class PreviewOptions(TypedDict, total=False):
    """What a preview takes beside its target, for the overloads of `Query.preview`."""

    confidence: Number
    simultaneous: bool
    final: bool
    groups: object


class PreviewTarget(PreviewOptions, total=False):
    """One target."""

    mu: Number | None
    rho: Number | None
    epsilon: Number | None
    share: Number | None
    within: Number | Mapping[Any, Number] | None


class PreviewTargets(PreviewOptions, total=False):
    """Several amounts of one target."""

    mu: Sequence[Number]
    rho: Sequence[Number]
    epsilon: Sequence[Number]
    share: Sequence[Number]
    within: Sequence[Number | Mapping[Any, Number]]


class Query(NotCopyable):
    """A question asked of a session.  Free until it is released.

    Parameters
    ----------
    plan : Plan
        What is measured; serialisable, without data.
    view : View
        What is read off it.
    runner : QueryRunner
        What it is asked of.
    """

    __slots__ = ("plan", "runner", "view")

    def __init__(self, plan: Plan, view: AnyView, runner: QueryRunner) -> None:
        self.plan = plan
        self.view = view
        self.runner = runner

    @property
    def description(self) -> str:
        """The question in words."""
        return describe_plan(self.plan, self.view)

    @overload
    def preview(self, **options: Unpack[PreviewOptions]) -> Previews: ...
    @overload
    def preview(self, **target: Unpack[PreviewTarget]) -> Preview: ...
    @overload
    def preview(self, **targets: Unpack[PreviewTargets]) -> Previews: ...
    def preview(
        self,
        *,
        mu: Any = None,
        rho: Any = None,
        epsilon: Any = None,
        share: Any = None,
        within: Any = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        final: bool = False,
        groups: object = None,
    ) -> Preview | Previews:
        """What a release with the same arguments would cost and give; free, and made without the table.

        A list of amounts, as in ``preview(mu=[0.1, 0.2, 0.5])``, gives a table; no target at all gives the table of
        some shares of what is left.

        Raises
        ------
        RequestError, InvalidValueError, UnknownErrorSize
            As `release`.
        """
        target: dict[str, Any] = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
        target |= {"confidence": confidence, "simultaneous": simultaneous, "final": final, "groups": groups}
        lists = [kind for kind in KINDS if isinstance(target.get(kind), list | tuple)]
        if len(lists) > 1:
            raise RequestError(f"preview: one target may be a list; got {' and '.join(lists)}")
        if not any(target.get(kind) is not None for kind in KINDS):
            lists, target = ["share"], {**target, "share": PICKER_STEPS}
        if not lists:
            return self.runner.preview(self.plan, self.view, **target)
        amounts = target.pop(lists[0])
        if not amounts:
            raise RequestError(f"preview: {lists[0]} must name at least one amount; got an empty list")
        return self._previews(lists[0], amounts, **target)

    def _previews(self, kind: str, amounts: Sequence[Any], **target: Any) -> Previews:
        return Previews(
            tuple(self.runner.preview(self.plan, self.view, **{**target, kind: amount}) for amount in amounts)
        )

    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Number | Mapping[Any, Number] | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        final: bool = False,
        groups: object = None,
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
        within : Number or mapping, optional
            Half-width of the interval, in the answer's units (of quantiles: in rows of rank), for every group.  Or for
            each group or statistic its own, as in ``within={"free": 0.1, "95": 0.3}``; the others are as they come.
            For sums, counts and quantiles it is kept exactly.  For what depends on the data (means, ratios,
            regressions) it needs a public or released number of rows, or an earlier look: it is refused if it might
            come out more than 1.2 times as wide as asked, or cost more than 1.5 times what that needs.
        confidence : Number
            Of each interval by itself.
        simultaneous : bool
            All intervals of the answer hold at once with that confidence (by the union bound; of discovered groups
            exactly, given which are named).
        final : bool
            The interval has the whole confidence for this one look, and the question cannot be refined afterwards.
            Without it, the first look's interval is about 5% wider and leaves room for refinements.
        groups : list, optional
            Keys of the groups that are to be known so well.  The others stay as they are; not for a first look.

        Raises
        ------
        BudgetExceeded
            The filter refuses; nothing was charged.  The message names the largest budget that fits.
        RequestError
            Not exactly one target, or an impossible one; or the question was released with ``final=True``.
        InvalidValueError
            A number is not finite and positive.
        UnknownErrorSize
            ``within=`` for an error that depends on something nobody has released.
        ExecutionError
            It failed after the charge; the charge stands, and the same request takes it up again.
        """
        return self.runner.release(
            self.plan,
            self.view,
            mu=mu,
            rho=rho,
            epsilon=epsilon,
            share=share,
            within=within,
            confidence=confidence,
            simultaneous=simultaneous,
            final=final,
            groups=groups,
        )

    @property
    def best(self) -> Answer | None:
        """Everything released about this question so far, combined, at 95%; None before the first release.  Free.

        Unlike a repeated `release`, this changes when more becomes known.
        """
        return self.runner.best(self.plan, self.view)

    @property
    def unanswered(self) -> list[dict[str, Any]]:
        """Targets that were charged and never answered, after a crash or an interrupt.  Releasing them again is free.

        Each as the arguments of `release`, for example ``{"mu": Fraction(1, 5)}``.
        """
        asked = [request for request in self.runner.unanswered(self.plan, self.view) if request.amount]
        return [
            {
                request.kind: from_text(request.amount or "0"),
                **({} if request.confidence == CONFIDENCE else {"confidence": request.confidence}),
                **({"simultaneous": True} if request.simultaneous else {}),
                **({"final": True} if request.final else {}),
                **({"groups": list(request.groups)} if request.groups else {}),
            }
            for request in asked
        ]

    def explain(self) -> Explanation:
        """What one privacy unit contributes, what is clipped, and why the noise is this large.  Free."""
        return self.runner.explain(self.plan, self.view)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self._still(Previews.__repr__, str))

    def _repr_html_(self) -> str:
        """The preview without arguments, for where nobody can use a slider."""
        return with_timestamp(self._still(Previews._repr_html_, escape))

    def _still(self, face: Callable[[Previews], str], written: Callable[[str], str]) -> str:
        try:
            return face(self._previews("share", PICKER_STEPS))
        except DpnbError as error:  # a question can always be looked at
            return written(str(error))

    @safe_repr
    def __repr__(self) -> str:
        return f"<question: {self.description}; .preview() is free, .release(mu=...) is charged>"
