"""Releases of one session: the order charge, read, noise, release.

Compile and bound the query, let the filter admit its loss, write the charge to the ledger, and only then read rows,
draw noise, write the answer and show it.  A crash in between can waste budget; it can never exceed it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from msgspec.structs import replace

from dpnb._backends.guard import run_guarded
from dpnb._backends.numpy_settings import isolated_numeric_settings
from dpnb._compile import LinearQuery
from dpnb._core import registry
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.admission import admit
from dpnb._core.history.log import RequestLog
from dpnb._core.pricing.estimation import EstimateReader
from dpnb._core.pricing.question import Keys
from dpnb._core.pricing.questions import QueryPricer, only_of, refuse_after_final, refuse_shares_apart
from dpnb._core.pricing.stored_request import plan_of, request_of
from dpnb._core.pricing.target import StoredRequest, Target
from dpnb._core.tables import PrivateTables
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView, Discovery, Proportions
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import decimal_down
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import BudgetExceeded, DpnbError, LedgerError, RequestError
from dpnb.ledger import Charge
from dpnb.ledger.charge import digest
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.mechanisms.threshold import named
from dpnb.progress import Stage, at, work
from dpnb.results.answer import Answer
from dpnb.results.observations import CombinedObservations, Observation, first_tau

FAILED = (
    "the query failed after it was charged; the charge stands and nothing was released; "
    "releasing it with the same arguments uses the same charge"
)

INTERRUPTED = (
    "after the query was charged; the charge stands and nothing was released; releasing it with the same arguments "
    "uses the same charge"
)

LEFT_OUT = (
    "about the units that could still pay for it: each has its own budget, and some may be excluded; which and how "
    "many is private"
)

QUERIES_KEPT = 16
"""Compiled queries kept for the log; few, since a query may have many group keys."""

Asked = Callable[[Plan, AnyView], Callable[..., Answer]]
"""Returns the `release` method of a query; passed to answers so that they can be refined."""


class ReleasePipeline(NotCopyable):
    """Releases of one session.

    Parameters
    ----------
    questions : QueryPricer
        Prices the queries of the session.
    source : NoiseSource
        Source of the noise.
    notice : str, optional
        A warning if answers are not real or not private.
    asked : callable
        Returns the `release` method of a query.
    changed : callable
        Called when something was charged or answered.
    individuals : IndividualAccounting, optional
        What each unit has paid, under individual accounting.
    """

    def __init__(
        self,
        questions: QueryPricer,
        source: NoiseSource,
        notice: str | None,
        asked: Asked,
        changed: Callable[[], None],
        individuals: IndividualAccounting | None = None,
    ) -> None:
        self._questions, self._source, self.notice, self._individuals = questions, source, notice, individuals
        self._asked, self.changed = asked, changed
        self._everywhere = lru_cache(QUERIES_KEPT)(partial(_compiled, questions.tables))
        self.log = RequestLog(questions.account, self.error_of)

    @property
    def account(self) -> Accountant:
        """The accountant that charges the releases."""
        return self._questions.account

    @property
    def version(self) -> str:
        """Version of the tables."""
        return self._questions.version

    # --- releasing ----------------------------------------------------------------------------------------------

    def release(self, plan: Plan, view: AnyView, target: Target, *, inside: str = "", combined: bool = False) -> Answer:
        """Answer a query and charge the additional loss; the identical request returns the recorded answer, free.

        A new request is refused once the session, or the mechanism on the node `inside`, is closed; with `combined`,
        also an observation that could not be combined with earlier ones.
        """
        with work(Stage.CHARGING):
            with self._individuals.lock.checked() if self._individuals is not None else nullcontext():
                self._make_ready(plan, view, target)
                charge = self._charge(plan, view, target, inside, combined)
                if charge.sigma is not None and charge.measurement is None:
                    charge = self._answer_charge(plan, target, charge, charge.sigma)
            self.log.note_request(charge, registry.current_cell())
            self.changed()
            with at(Stage.WRITING):
                return self.answer_of(charge)

    def _make_ready(self, plan: Plan, view: AnyView, target: Target) -> None:
        """Make sure, before anything is charged, that rows can be read; skipped if there is an answer already."""
        known = self.find_request(plan, view, target)
        if known is None or (known.sigma is not None and known.measurement is None):
            self._questions.tables.ready()

    def _charge(self, plan: Plan, view: AnyView, target: Target, inside: str, combined: bool) -> Charge:
        """Find the request in the ledger, or admit and write its charge; durable when this returns."""
        text, request = plan.to_json(), target.to_json(view)
        account, version = self._questions.account, self._questions.version
        key, ledger = self._key(text, request), account.ledger
        with ledger.transaction():
            known = ledger.by_request_key(key)
            if known is not None:
                return known
            account.tree.refuse_ended(inside or account.root_node, version)
            question = self._questions.question(plan, view, target.groups)
            question, total, loss = self._questions.price(question, target, self._questions.rows(question))
            if question.is_standalone and combined:
                raise BudgetExceeded(
                    f"{question.words}: can be refined only while every unit certainly takes part; a further "
                    "observation might exclude units and could not be combined with earlier ones; nothing was charged"
                )
            refinement = question.combined
            if not loss.mu_squared and not refinement.observations:
                raise RequestError(f"{question.words}: {target.words} measures nothing; give a larger target")
            sigma = tau = None
            if loss.mu_squared:
                refuse_after_final(question, target)
                account.refuse_if_no_unit_left(question.words, version)
                admit(account, question.words, loss, question.known)
                sigma = sigma_for(question.aggregation.l2_sensitivity_squared, loss)
                tau = (
                    refinement.tau
                    if refinement.observations
                    else None
                    if target.final
                    else first_tau(sigma, target.alpha)
                )
            looks = self._questions.looks(plan) if refinement.observations else []
            return ledger.reserve(
                key=key,
                branch=account.root_node,
                version=version,
                question=query_key(plan),
                plan=text,
                request=request,
                target=max(total, question.known, key=lambda loss: loss.mu_squared),
                loss=loss,
                sigma=sigma,
                tau=tau,
                looks=tuple(look.id for look in looks),
                cell=registry.current_cell(),
            )

    def _answer_charge(self, plan: Plan, target: Target, charge: Charge, sigma: float) -> Charge:
        """Read rows, draw noise and write the answer, also for a charge that was not answered before.

        A noisy value that did not reach the ledger must not be shown, for example in a traceback, since the charge will
        be answered with other noise.  So the writing is guarded as the reading is.
        """
        ledger = self._questions.account.ledger

        @isolated_numeric_settings()
        def answered() -> Charge:
            tables = self._questions.tables
            query = tables.compile(plan, only_of(tables.compile(plan), target.groups))
            measurement, keys = self._measured(query, charge, sigma)
            with at(Stage.WRITING):
                return ledger.release(charge, measurement, keys)

        try:
            return run_guarded(answered, FAILED, interrupted=INTERRUPTED, public_errors=LedgerError)
        except BaseException:
            with suppress(LedgerError):  # if that cannot be written either, it stays a charge without an answer
                ledger.fail(charge)
            self.changed()
            raise

    def _measured(self, query: LinearQuery, charge: Charge, sigma: float) -> tuple[Measurement, Keys | None]:
        tables, units = self._questions.tables.opened, self._individuals
        if not isinstance(query.plan.aggregation, Discovery):
            with at(Stage.ADDING if query.clip_squared is None else Stage.UNITS):
                sums = tables.sums(query) if units is None else units.sums(charge, query)
            with at(Stage.NOISE):
                return measure(sums, sigma=sigma, source=self._source), None
        with at(Stage.GROUPS):
            keys, counts = tables.groups(query) if units is None else units.groups(charge, query)
        groups = query.l2_sensitivity_squared  # each of which a unit changes by one
        with at(Stage.NOISE):
            places, released = named(counts, sigma=sigma, groups=groups, delta=charge.gdp.delta, source=self._source)
        return released, tuple(keys[place] for place in places)

    def refused(self, question: str, error: DpnbError) -> None:
        """Remember, for the panel, that a request was refused before anything was charged."""
        self.log.note_refusal(question, error, registry.current_cell())
        self.changed()

    # --- answers ------------------------------------------------------------------------------------------------

    def unanswered(self, plan: Plan, view: AnyView) -> list[tuple[Charge, StoredRequest]]:
        """Requests for a query that were charged but not answered; repeating each answers it, free."""
        account, version = self._questions.account, self._questions.version
        charges = account.ledger.unanswered(version, account.root_node, query_key(plan))
        requests = [(charge, request_of(charge)) for charge in charges if charge.plan == plan.to_json()]
        return [(charge, request) for charge, request in requests if request.view == view]

    def find_request(self, plan: Plan, view: AnyView, target: Target) -> Charge | None:
        """The row of the identical request, if any kernel has made it before; nothing is charged or read."""
        with self.account.ledger.lock.checked():  # another thread may write a row that is rolled back
            return self.account.ledger.by_request_key(self._key(plan.to_json(), target.to_json(view)))

    def _key(self, plan: str, request: str) -> str:
        """Identity of a request."""
        return digest([self.version, self.account.root_node, plan, request])

    def known(self, plan: Plan) -> GDP:
        """Total loss of a query: what its observations cost together."""
        query = self._questions.tables.compile(plan)
        return self._questions.refinement(query).known_loss(query.l2_sensitivity_squared)

    def best(self, plan: Plan, view: AnyView) -> Answer | None:
        """All observations of a query, combined, at 95%; the latest one if none can be combined."""
        query = self._questions.tables.compile(plan)
        looks = self._questions.looks(plan) or self._questions.all_looks(plan)[-1:]
        if not looks or isinstance(plan.aggregation, Discovery):
            return None
        refinement = self._questions.refinement_of(query, looks)
        known = refinement.known_loss(query.l2_sensitivity_squared)
        request = StoredRequest(Fraction(95, 100), view, False, ())
        return self._shaped(query, request, looks, cost=(GDP(0), 0.0), known=known, time=looks[-1].time)

    def answer_of(self, charge: Charge) -> Answer:
        """The answer of a released row of the ledger."""
        query = self._questions.tables.compile(plan_of(charge))
        request = request_of(charge)
        cost = charge.gdp, self._questions.account.budget_fraction(charge.id)
        looks = self._questions.account.ledger.by_id(charge.observations)
        return self._shaped(query, request, looks, cost=cost, known=charge.total_loss, time=charge.time)

    def error_of(self, charge: Charge, plan: Plan, request: StoredRequest) -> str:
        """The error of the answer of a released row of the ledger, in words.

        It does not depend on which rows of the table count, so queries that differ only in that are compiled once.
        """
        looks = (
            [charge]
            if charge.observations == (charge.id,)
            else self._questions.account.ledger.by_id(charge.observations)
        )
        return self._reading(self._everywhere(replace(plan, where=None).to_json()), request, looks).error

    def _shaped(
        self,
        query: LinearQuery,
        request: StoredRequest,
        looks: list[Charge],
        *,
        cost: tuple[GDP, float],
        known: GDP,
        time: str,
    ) -> Answer:
        plan, view = query.plan, request.view
        reading = self._reading(query, request, looks)
        refinement = reading.refinement
        return Answer(
            description=describe_plan(plan, view),
            names=tuple(group.name for group in plan.group_by),
            keys=reading.keys,
            outputs=reading.outputs,
            arrays=reading.cells,
            confidence=decimal_down(request.confidence),
            simultaneous=request.simultaneous,
            notice=self.notice,
            population=self._about(looks),
            condition=reading.given,
            worst_case=self._questions.account.individual,
            measurement_ids=_sources(refinement, looks, view),
            anytime_arrays=reading.anytime,
            is_refined=len(refinement.observations) > 1,
            plan=plan,
            view=view,
            cost=cost[0],
            cost_fraction=cost[1],
            total_loss=known,
            n_observations=len(refinement.observations),
            time=time,
            origin=_Origin(self, query, request, looks),
        )

    def _reading(self, query: LinearQuery, request: StoredRequest, looks: list[Charge]) -> EstimateReader:
        if isinstance(query.plan.aggregation, Discovery):
            keys = looks[0].group_keys or ()
            refinement = CombinedObservations((Observation(looks[0].gdp, looks[0].measurement),), None, len(keys))  # type: ignore[arg-type]
        else:
            keys, refinement = query.keys or ((),), self._questions.refinement_of(query, looks)
        return EstimateReader(query, request, refinement, keys, self._questions.tables.schema(query.plan.source))

    def _about(self, looks: list[Charge]) -> str | None:
        """The units that an answer is about, if that may not be all: a function of the ledger alone."""
        first = self._questions.account.first_exclusion
        return LEFT_OUT if first is not None and any(look.id >= first for look in looks) else None


def _compiled(tables: PrivateTables, plan: str) -> LinearQuery:
    return tables.compile(Plan.from_json(plan))


@dataclass(frozen=True, eq=False, repr=False)
class _Origin(NotCopyable):
    """The reference from an answer to its session, which a copied answer does not have."""

    releases: ReleasePipeline
    query: LinearQuery
    request: StoredRequest
    looks: list[Charge]

    def refine(self, answer: Answer, **target: Any) -> Answer:
        return self.releases._asked(answer.plan, answer.view)(**target)

    def shares(self, answer: Answer) -> Answer:
        view = Proportions()
        refuse_shares_apart(view, self.releases._questions.refinement_of(self.query, self.looks))
        return self.releases._shaped(
            self.query,
            StoredRequest(self.request.confidence, view, self.request.simultaneous, self.request.groups),
            self.looks,
            cost=(answer.cost, answer.cost_fraction),
            known=answer.total_loss,
            time=answer.time,
        )

    def past(self, answer: Answer) -> tuple[Answer, ...]:
        """The answer after each observation, computed from released values without reading a row."""
        return tuple(
            self.releases._shaped(
                self.query,
                self.request,
                self.looks[:number],
                cost=(look.gdp, self.releases.account.budget_fraction(look.id)),
                known=look.total_loss,
                time=look.time,
            )
            for number, look in enumerate(self.looks, start=1)
        )


def _sources(
    refinement: CombinedObservations, looks: list[Charge], view: AnyView
) -> tuple[frozenset[tuple[int, int]], ...]:
    """For each group, the measurements that it is computed from; a share depends on those of all groups."""
    sources = tuple(
        frozenset(
            (charge.id, cell)
            for charge, look in zip(looks, refinement.observations, strict=True)
            if look.cells is None or cell in look.cells
        )
        for cell in range(refinement.count)
    )
    return (frozenset().union(*sources),) * len(sources) if isinstance(view, Proportions) else sources
