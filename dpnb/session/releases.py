"""Previews and releases of one session: the order charge, read, noise, release.

Compile and bound the question, let the filter admit its loss, write the charge to the ledger, and only then read rows,
draw noise, write the answer, show it.  A crash in between can waste budget; it can never exceed it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpnb.accounting.exact import from_text
from dpnb.accounting.losses import GDP
from dpnb.answer.answer import Answer
from dpnb.answer.estimates import estimate
from dpnb.answer.estimates.expected import RANK, half_widths, in_rank
from dpnb.answer.estimates.noisy import Cells
from dpnb.answer.estimates.outputs import outputs_of
from dpnb.answer.preview import Preview
from dpnb.errors import PlanError, RequestError
from dpnb.interactive.refinement import Look, Refinement, first_tau
from dpnb.ledger import Charge
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import Source
from dpnb.mechanisms.threshold import named
from dpnb.query.discover import present_groups
from dpnb.query.execute import execute
from dpnb.query.guard import guarded
from dpnb.query.identity import question_of
from dpnb.query.linear import LinearQuery
from dpnb.query.linear.explain import contribution, explanation
from dpnb.query.plan import AnyView, Columns, Count, Discovery, Plan, Shares, Sum, Units, question_words
from dpnb.query.schema import Key
from dpnb.session.account import Account
from dpnb.session.knowledge import Rows, known_rows, refuse_unknown, rows_needed
from dpnb.session.tables import Tables
from dpnb.session.target import Errors, Label, Request, Target, resolve

FAILED = (
    "the question failed after it was charged; the charge stands and nothing was released; "
    "asking with the same arguments takes up the same charge"
)

Keys = tuple[tuple[Key, ...], ...]
Asked = Callable[[Plan, AnyView], Callable[..., Answer]]
"""Gives the `release` of a question; handed to answers so that they can be refined."""


@dataclass(frozen=True)
class Question:
    """A plan and a view with what is known of them by now.

    Parameters
    ----------
    query : LinearQuery
        Of all cells.
    measured : LinearQuery
        Of the cells that are to be looked at.
    view : View
    refinement : Refinement
    """

    query: LinearQuery
    measured: LinearQuery
    view: AnyView
    refinement: Refinement

    @property
    def words(self) -> str:
        """The question in words."""
        return question_words(self.query.plan, self.view)

    @property
    def known(self) -> GDP:
        """How well the cells to be looked at are known."""
        if isinstance(self.query.plan.aggregation, Discovery):
            return GDP(0)
        return self.refinement.known(self.measured.l2_sensitivity_squared, self.measured.only)

    @property
    def discovery_delta(self) -> Fraction:
        """What a discovery takes of the budget's discovery_delta."""
        aggregation = self.query.plan.aggregation
        return from_text(aggregation.delta) if isinstance(aggregation, Discovery) else Fraction(0)

    def missing(self, total: GDP) -> GDP:
        """What a release must cost so that the cells are known as well as by `total`."""
        squared = max(total.mu_squared - self.known.mu_squared, Fraction(0))
        return GDP.from_squared(squared, self.discovery_delta)


class Releases:
    """Previews and releases.

    Parameters
    ----------
    tables : Tables
    account : Account
    source : Source
        Of noise.
    version : str
    public_size : int, optional
    notice : str, optional
    asked : callable
    changed : callable
        Called when something was charged or answered.
    """

    def __init__(
        self,
        tables: Tables,
        account: Account,
        source: Source,
        *,
        version: str,
        public_size: int | None,
        notice: str | None,
        asked: Asked,
        changed: Callable[[], None],
    ) -> None:
        self._tables, self._account, self._source = tables, account, source
        self._version, self._public_size, self._notice = version, public_size, notice
        self._asked, self._changed = asked, changed

    # --- before -------------------------------------------------------------------------------------------------

    def preview(self, plan: Plan, view: AnyView, target: Target) -> Preview:
        """What a release would cost and give."""
        with self._account.ledger.lock:
            question = self._question(plan, view, target.groups)
            rows = self._rows(question)
            total = self._resolve(question, target, rows)
            cost = question.missing(total)
            before, promise = self._account.filter, self._account.promise
            expected = self._errors(question, target, rows)
        errors = expected.at(_scale(question, total)) if cost.mu_squared else expected.now
        counted = promise.enters(cost)
        fits = before.admits(counted)
        query = question.query
        discovery = isinstance(plan.aggregation, Discovery)
        return Preview(
            words=question.words,
            asked=target.words,
            target=total,
            cost=cost,
            cost_share=before.share(counted),
            confidence=float(target.confidence),
            errors=errors,
            error_unit=RANK if in_rank(view) else None,
            names=() if discovery else tuple(group.name for group in plan.by),
            keys=tuple(query.keys[cell] for cell in _cells(question)) if query.keys else ((),),
            outputs=outputs_of(plan, view),
            headroom_after=before.step(counted).headroom if fits else 0.0,
            fits=fits,
            largest=None if fits else self._account.largest(question.known),
            times=before.times(counted),
            contribution=contribution(query, self._tables.unit(plan.source)),
            refining=promise.refining,
            assumption=_assumption(question, rows, errors),
            notice=self._notice,
        )

    def explain(self, plan: Plan, view: AnyView) -> tuple[str, list[tuple[str, str]]]:
        """The question in words, and what one unit can change in it."""
        query = self._tables.compile(plan)
        return question_words(plan, view), explanation(query, self._tables.unit(plan.source))

    def _question(self, plan: Plan, view: AnyView, groups: Keys) -> Question:
        query = self._tables.compile(plan)
        only = None
        if groups:
            missing = [key for key in groups if key not in query.keys]
            if missing:
                raise RequestError(f"groups: {missing[0]!r} is no group of the {plan.words}")
            only = tuple(sorted(query.keys.index(key) for key in set(groups)))
            only = None if len(only) == query.cells else only
        measured = query if only is None else self._tables.compile(plan, only)
        return Question(query, measured, view, self._refinement(query))

    def _refinement(self, query: LinearQuery) -> Refinement:
        if isinstance(query.plan.aggregation, Discovery):
            return Refinement()  # which groups there are may differ from look to look: nothing can be combined
        return self._refinement_of(query, self._account.ledger.looks(self._version, question_of(query.plan)))

    def _refinement_of(self, query: LinearQuery, charges: list[Charge]) -> Refinement:
        looks = []
        for charge in charges:
            if charge.measurement is not None:
                only = _only(query, Request.from_json(charge.request).groups)
                measured = query if only is None else self._tables.compile(query.plan, only)
                looks.append(Look(charge.loss, charge.measurement, measured.l2_sensitivity_squared, only))
        return Refinement(tuple(looks), charges[0].tau if looks else None, query.cells)

    def _rows(self, question: Question) -> Rows | None:
        def known(plan: Plan) -> tuple[LinearQuery, Refinement]:
            query = self._tables.compile(plan)
            return query, self._refinement(query)

        return known_rows(question.query, question.view, self._public_size, known)

    def _resolve(self, question: Question, target: Target, rows: Rows | None) -> GDP:
        return resolve(
            target,
            words=question.words,
            known=question.known,
            budget=self._account.budget,
            share_left=lambda share: self._account.promise.left(self._account.filter, share),
            errors=self._errors(question, target, rows),
            unknown=lambda: refuse_unknown(question.query.plan, question.view),
        )

    def _errors(self, question: Question, target: Target, rows: Rows | None) -> Errors:
        query, refinement, view = question.query, question.refinement, question.view
        outputs = outputs_of(query.plan, view)
        count = len(outputs[1]) if outputs else 1
        alpha = _alpha(target.alpha, query.cells * count if target.simultaneous else 1)
        final = target.final or isinstance(query.plan.aggregation, Discovery)
        cells = _cells(question)
        schema = self._tables.schema(query.plan.source)
        known = refinement.combined() if refinement.looks else None

        def widths(sigma: Cells, radius: Cells) -> Cells | None:
            found = half_widths(
                query,
                view,
                sigma,
                radius,
                schema,
                known=None if known is None else known[0],
                rows=None if rows is None else rows.each,
            )
            return None if found is None else found[cells]

        def at(sigma: float) -> Cells | None:
            radius = refinement.radius_at(sigma, alpha, final=final)
            if known is None or question.measured.only is None:
                return widths(np.full(query.cells, sigma), np.full(query.cells, radius))
            sigmas, radii = known[1].copy(), refinement.radius(alpha)
            sigmas[cells], radii[cells] = np.minimum(sigmas[cells], sigma), radius
            return widths(sigmas, radii)

        labels = [
            [_names(query.keys[cell] if query.keys else (), outputs, place) for place in range(count)] for cell in cells
        ]
        now = None if known is None else widths(known[1], refinement.radius(alpha))
        mixed = isinstance(view, Columns)
        return Errors(question.words, labels, mixed, question.measured.l2_sensitivity_squared, now, at)

    # --- releasing ----------------------------------------------------------------------------------------------

    def release(self, plan: Plan, view: AnyView, target: Target) -> Answer:
        """Answer a question and charge what that adds; the identical request gives the very same answer, free."""
        charge = self._charge(plan, view, target)
        if charge.sigma is not None and charge.measurement is None:
            charge = self._answer_charge(
                self._tables.compile(plan, self._only(plan, target.groups)), charge, charge.sigma
            )
        self._changed()
        return self._answer(plan, charge)

    def _only(self, plan: Plan, groups: Keys) -> tuple[int, ...] | None:
        return _only(self._tables.compile(plan), groups)

    def _charge(self, plan: Plan, view: AnyView, target: Target) -> Charge:
        """Find the request in the ledger, or admit and write its charge; durable when this returns."""
        text, request = plan.to_json(), target.to_json(view)
        key = hashlib.sha256(json.dumps([self._version, text, request]).encode()).hexdigest()
        ledger = self._account.ledger
        with ledger.transaction():
            known = ledger.find(key)
            if known is not None:
                return known
            question = self._question(plan, view, target.groups)
            refinement = question.refinement
            total = self._resolve(question, target, self._rows(question))
            loss = question.missing(total)
            if not loss.mu_squared and not refinement.looks:
                raise RequestError(f"{question.words}: {target.words} measures nothing; ask for more")
            sigma = tau = None
            if loss.mu_squared:
                _refuse_after_final(question, target)
                self._account.admit(question.words, loss, question.known)
                sigma = sigma_for(question.measured.l2_sensitivity_squared, loss)
                tau = refinement.tau if refinement.looks else None if target.final else first_tau(sigma, target.alpha)
            discovery = isinstance(plan.aggregation, Discovery)
            return ledger.reserve(
                key=key,
                version=self._version,
                question=question_of(plan),
                plan=text,
                request=request,
                target=max(total, question.known, key=lambda loss: loss.mu_squared),
                loss=loss,
                sigma=sigma,
                tau=tau,
                looks=() if discovery else tuple(look.id for look in ledger.looks(self._version, question_of(plan))),
            )

    def _answer_charge(self, query: LinearQuery, charge: Charge, sigma: float) -> Charge:
        """Read rows, draw noise, write the answer; what was charged and not answered before is taken up here."""
        try:
            measurement, keys = guarded(lambda: self._measured(query, charge, sigma), FAILED)
        except BaseException:
            self._account.ledger.fail(charge)
            self._changed()
            raise
        return self._account.ledger.release(charge, measurement, keys)

    def _measured(self, query: LinearQuery, charge: Charge, sigma: float) -> tuple[Measurement, Keys | None]:
        source = query.plan.source
        rows, schema = self._tables.rows(source), self._tables.schema(source)
        if not isinstance(query.plan.aggregation, Discovery):
            return measure(execute(query, rows, schema), sigma=sigma, source=self._source), None
        keys, counts = present_groups(query, rows, schema)
        groups = query.l2_sensitivity_squared  # each of which a unit changes by one
        places, released = named(counts, sigma=sigma, groups=groups, delta=charge.loss.delta, source=self._source)
        return released, tuple(keys[place] for place in places)

    # --- answers ------------------------------------------------------------------------------------------------

    def best(self, plan: Plan, view: AnyView) -> Answer | None:
        """Everything known of a question, combined, at 95%."""
        query = self._tables.compile(plan)
        looks = self._account.ledger.looks(self._version, question_of(plan))
        if not looks or isinstance(plan.aggregation, Discovery):
            return None
        refinement = self._refinement_of(query, looks)
        known = refinement.known(query.l2_sensitivity_squared)
        request = Request(Fraction(95, 100), view, False, ())
        return self._shaped(query, request, looks, cost=(GDP(0), 0.0), known=known, time=looks[-1].time)

    def _answer(self, plan: Plan, charge: Charge) -> Answer:
        query, request = self._tables.compile(plan), Request.from_json(charge.request)
        cost = charge.loss, self._account.paid(charge.id)
        looks = self._account.ledger.by_id(charge.looks)
        return self._shaped(query, request, looks, cost=cost, known=charge.target, time=charge.time)

    def _shaped(
        self,
        query: LinearQuery,
        request: Request,
        looks: list[Charge],
        *,
        cost: tuple[GDP, float],
        known: GDP,
        time: str,
    ) -> Answer:
        plan, view = query.plan, request.view
        if isinstance(plan.aggregation, Discovery):
            keys = looks[0].keys or ()
            refinement = Refinement((Look(looks[0].loss, looks[0].measurement),), None, len(keys))  # type: ignore[arg-type]
        else:
            keys, refinement = query.keys or ((),), self._refinement_of(query, looks)
        outputs = outputs_of(plan, view)
        count = len(keys) * (len(outputs[1]) if outputs else 1)
        radius = refinement.radius(_alpha(1 - request.confidence, count if request.simultaneous else 1))
        sums, sigma = refinement.combined()
        return Answer(
            words=question_words(plan, view),
            names=tuple(group.name for group in plan.by),
            keys=keys,
            outputs=outputs,
            cells=estimate(query, view, sums, sigma, radius, self._tables.schema(plan.source)),
            confidence=float(request.confidence),
            simultaneous=request.simultaneous,
            notice=self._notice,
            sources=_sources(refinement, looks, view),
            plan=plan,
            view=view,
            cost=cost[0],
            cost_share=cost[1],
            known=known,
            looks=len(refinement.looks),
            time=time,
            refine=self._asked(plan, view),
            read=lambda other: self._reread(query, request, other, looks, cost=cost, known=known, time=time),
        )

    def _reread(
        self,
        query: LinearQuery,
        request: Request,
        view: AnyView,
        looks: list[Charge],
        *,
        cost: tuple[GDP, float],
        known: GDP,
        time: str,
    ) -> Answer:
        if isinstance(view, Shares) and not (query.plan.by and isinstance(query.plan.aggregation, Count | Sum | Units)):
            raise PlanError(f"share: needs counts or sums by group; this is the {query.plan.words}")
        other = Request(request.confidence, view, request.simultaneous, request.groups)
        return self._shaped(query, other, looks, cost=cost, known=known, time=time)


def _scale(question: Question, total: GDP) -> float:
    """Noise scale of the measured cells once they are known as well as by `total`."""
    return sigma_for(question.measured.l2_sensitivity_squared, GDP.from_squared(total.mu_squared))


def _refuse_after_final(question: Question, target: Target) -> None:
    if question.refinement.final:
        raise RequestError(
            f"{question.words}: was released with final=True, whose interval holds only if nothing follows; the budget "
            "is untouched; ask another question"
        )
    if target.final and question.refinement.looks:
        raise RequestError(
            f"final: must be the first look at a question, and there are {len(question.refinement.looks)} at the "
            f"{question.words}; leave final out"
        )


def _only(query: LinearQuery, groups: Keys) -> tuple[int, ...] | None:
    """Places of some groups, ascending; None for all."""
    only = tuple(sorted(query.keys.index(key) for key in set(groups)))
    return None if not only or len(only) == query.cells else only


def _cells(question: Question) -> list[int]:
    return list(range(question.query.cells)) if question.measured.only is None else list(question.measured.only)


def _alpha(alpha: Fraction, intervals: int) -> Fraction:
    """What each of several intervals may miss, so that all hold at once (the union bound)."""
    return alpha / max(intervals, 1)


def _names(key: tuple[Key, ...], outputs: tuple[str, tuple[Key, ...]] | None, place: int) -> tuple[Label, ...]:
    """What a mapping of errors may call a number: its statistic, or its group, as a tuple too."""
    names: list[Label] = [key, key[0]] if len(key) == 1 else [key] if key else []
    return (*names, *([outputs[1][place]] if outputs else []))


def _sources(refinement: Refinement, looks: list[Charge], view: AnyView) -> tuple[frozenset[tuple[int, int]], ...]:
    """For each group the measurements that it rests on; a share rests on those of all groups."""
    sources = tuple(
        frozenset(
            (charge.id, cell)
            for charge, look in zip(looks, refinement.looks, strict=True)
            if look.cells is None or cell in look.cells
        )
        for cell in range(refinement.count)
    )
    return (frozenset().union(*sources),) * len(sources) if isinstance(view, Shares) else sources


def _assumption(question: Question, rows: Rows | None, errors: Cells | None) -> str | None:
    """What the expected errors rest on."""
    if rows is not None:
        return f"about {rows.each.min():,.0f} rows in the smallest group ({rows.source})"
    plan, view = question.query.plan, question.view
    if errors is None and rows_needed(plan, view) is not None and not isinstance(view, Columns):
        return "the number of rows, which no released count tells; the interval comes with the answer"
    if errors is None:
        return "the answer itself, of which nothing is released yet; the interval comes with the answer"
    return None
