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
from dpnb._core.measurement_ids import measurement_ids
from dpnb._core.pricing.batch_observations import record_of
from dpnb._core.pricing.estimation import EstimateReader
from dpnb._core.pricing.pricer import QueryPricer, cell_subset, refuse_after_final, refuse_separate_shares
from dpnb._core.pricing.query_state import Keys
from dpnb._core.pricing.stored_request import plan_of, request_of
from dpnb._core.pricing.target import StoredRequest, Target
from dpnb._core.tables import PrivateTables
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView, BoundsView, Discovery, Proportions
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import decimal_down
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import BudgetExceeded, DpnbError, LedgerError, PlanError, RequestError
from dpnb.ledger import Charge
from dpnb.ledger.charge import digest
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.partition_selection import named
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.progress import Stage, at, work
from dpnb.results.answer import Answer
from dpnb.results.bounds import BoundsAnswer
from dpnb.results.estimates.outputs import dates_of
from dpnb.results.observations import CombinedObservations, Observation, first_tau

FAILED = (
    "the query failed after it was charged; the charge stands and nothing was released; "
    "releasing it with the same arguments uses the same charge"
)

INTERRUPTED = (
    "after the query was charged; the charge stands and nothing was released; releasing it with the same arguments "
    "uses the same charge"
)

SOME_EXCLUDED = (
    "about the units that could still pay for it: each has its own budget, and some may be excluded; which and how "
    "many is private"
)

MAX_COMPILED = 16
"""Number of compiled queries that the log keeps; few, since a query may have many group keys."""

ReleaseOf = Callable[[Plan, AnyView], Callable[..., Answer]]
"""Returns the `release` method of a query; passed to answers so that they can be refined."""


class ReleasePipeline(NotCopyable):
    """Releases of one session.

    Parameters
    ----------
    pricer : QueryPricer
        Prices the queries of the session.
    source : NoiseSource
        Source of the noise.
    notice : str, optional
        A warning if answers are not real or not private.
    release_of : callable
        Returns the `release` method of a query.
    changed : callable
        Called when something was charged or answered.
    individuals : IndividualAccounting, optional
        What each unit has paid, under individual accounting.
    """

    def __init__(
        self,
        pricer: QueryPricer,
        source: NoiseSource,
        notice: str | None,
        release_of: ReleaseOf,
        changed: Callable[[], None],
        individuals: IndividualAccounting | None = None,
    ) -> None:
        self.pricer, self._source, self.notice, self._individuals = pricer, source, notice, individuals
        self._release_of, self.changed = release_of, changed
        self._compile_unfiltered = lru_cache(MAX_COMPILED)(partial(_compiled, pricer.tables))
        self.log = RequestLog(pricer.account, self.estimates_of)

    @property
    def account(self) -> Accountant:
        """The accountant that charges the releases."""
        return self.pricer.account

    @property
    def version(self) -> str:
        """Version of the tables."""
        return self.pricer.version

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
                    charge = self.answer_charge(plan, target, charge, charge.sigma)
            self.log.note_request(charge, registry.current_cell())
            self.changed()
            with at(Stage.WRITING):
                return self.answer_of(charge)

    def _make_ready(self, plan: Plan, view: AnyView, target: Target) -> None:
        """Check, before anything is charged, that rows can be read; skipped if the answer is already recorded."""
        known = self.find_request(plan, view, target)
        if known is None or (known.sigma is not None and known.measurement is None):
            self.pricer.tables.ready()

    def _charge(self, plan: Plan, view: AnyView, target: Target, inside: str, combined: bool) -> Charge:
        """Find the request in the ledger, or admit and write its charge; durable when this returns."""
        text, request = plan.to_json(), target.to_json(view)
        account, version = self.pricer.account, self.pricer.version
        key, ledger = self._key(text, request), account.ledger
        with ledger.transaction():
            known = ledger.by_request_key(key)
            if known is not None:
                return known
            account.tree.refuse_ended(inside or account.root_node, version)
            state = self.pricer.state(plan, view, target.groups)
            state, total, loss = self.pricer.price(state, target, self.pricer.row_counts(state))
            if state.is_standalone and combined:
                raise BudgetExceeded(
                    f"{state.description}: can be refined only while every unit certainly takes part; a further "
                    "observation might exclude units and could not be combined with earlier ones; nothing was charged"
                )
            refinement = state.combined
            if not loss.mu_squared and not refinement.observations:
                raise RequestError(f"{state.description}: {target.words} measures nothing; give a larger target")
            sigma = tau = None
            if loss.mu_squared:
                refuse_after_final(state, target)
                account.refuse_if_no_unit_left(state.description, version)
                admit(account, state.description, loss, state.known_loss)
                sigma = sigma_for(state.measured.l2_sensitivity_squared, loss)
                if refinement.observations:
                    tau = refinement.tau
                elif not target.final:
                    tau = first_tau(sigma, target.alpha)
            charges = self.pricer.observations(plan, view) if refinement.observations else []
            return ledger.reserve(
                request_key=key,
                node=account.root_node,
                table_version=version,
                query_key=query_key(plan),
                plan=text,
                arguments=request,
                total_loss=max(total, state.known_loss, key=lambda loss: loss.mu_squared),
                loss=loss,
                sigma=sigma,
                tau=tau,
                observations=tuple(charge.id for charge in charges),
                cell_id=registry.current_cell(),
            )

    def answer_charge(self, plan: Plan, target: Target, charge: Charge, sigma: float) -> Charge:
        """Read rows, draw noise and write the answer, also for a charge that was not answered before.

        A noisy value that did not reach the ledger must not be shown, for example in a traceback, since the charge will
        be answered with other noise.  So the writing is guarded like the reading.
        """
        ledger = self.pricer.account.ledger

        @isolated_numeric_settings()
        def answered() -> Charge:
            tables = self.pricer.tables
            query = tables.compile(plan, cell_subset(tables.compile(plan), target.groups))
            measurement, keys = self._measured(query, charge, sigma)
            with at(Stage.WRITING):
                return ledger.release(charge, measurement, keys)

        try:
            return run_guarded(answered, FAILED, interrupted=INTERRUPTED, public_errors=LedgerError)
        except BaseException:
            with suppress(LedgerError):  # if this cannot be written either, the charge has no answer
                ledger.fail(charge)
            self.changed()
            raise

    def _measured(self, query: LinearQuery, charge: Charge, sigma: float) -> tuple[Measurement, Keys | None]:
        tables, units = self.pricer.tables.opened, self._individuals
        if not isinstance(query.plan.aggregation, Discovery):
            with at(Stage.ADDING if query.clip_squared is None else Stage.UNITS):
                sums = tables.sums(query) if units is None else units.sums(charge, query)
            with at(Stage.NOISE):
                return measure(sums, sigma=sigma, source=self._source), None
        with at(Stage.GROUPS):
            keys, counts = tables.groups(query) if units is None else units.groups(charge, query)
        groups = query.l2_sensitivity_squared  # each of which a unit changes by one
        with at(Stage.NOISE):
            indices, released = named(counts, sigma=sigma, groups=groups, delta=charge.gdp.delta, source=self._source)
        return released, tuple(keys[index] for index in indices)

    def refused(self, description: str, error: DpnbError) -> None:
        """Record that a request was refused before anything was charged."""
        self.log.note_refusal(description, error, registry.current_cell())
        self.changed()

    # --- answers ------------------------------------------------------------------------------------------------

    def unanswered(self, plan: Plan, view: AnyView) -> list[tuple[Charge, StoredRequest]]:
        """Requests for a query that were charged but not answered; repeating each answers it, free."""
        account, version = self.pricer.account, self.pricer.version
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

    def total_loss(self, plan: Plan) -> GDP:
        """The total loss of a query with all its observations."""
        query = self.pricer.tables.compile(plan)
        return self.pricer.refinement(query).known_loss(query.l2_sensitivity_squared)

    def best(self, plan: Plan, view: AnyView) -> Answer | None:
        """All observations of a query, combined, at 95%; the latest one if units may have been excluded from all."""
        query = self.pricer.tables.compile(plan)
        charges = self.pricer.observations(plan, view)
        if not charges and self.account.first_exclusion is not None:
            charges = self.pricer.all_observations(plan)[-1:]
        if not charges or isinstance(plan.aggregation, Discovery):
            return None
        refinement = self.pricer.combine(query, charges)
        total_loss = refinement.known_loss(query.l2_sensitivity_squared)
        request = StoredRequest(Fraction(95, 100), view, False, ())
        return self.answer_from(
            query, request, charges, cost=(GDP(0), 0.0), total_loss=total_loss, time=charges[-1].time
        )

    def answer_of(self, charge: Charge) -> Answer:
        """The answer of a released row of the ledger."""
        query = self.pricer.tables.compile(plan_of(charge))
        request = request_of(charge)
        cost = charge.gdp, self.pricer.account.cost_fraction(charge.id)
        charges = self.pricer.account.ledger.by_id(charge.observations)
        return self.answer_from(query, request, charges, cost=cost, total_loss=charge.total_loss, time=charge.time)

    def estimates_of(self, charge: Charge, plan: Plan, request: StoredRequest) -> EstimateReader:
        """The estimates of a released row of the ledger, which are those of its answer.

        They do not depend on which rows of the table count, so queries that differ only in that are compiled once.
        """
        charges = (
            [charge] if charge.observations == (charge.id,) else self.pricer.account.ledger.by_id(charge.observations)
        )
        reader = self._reader(self._compile_unfiltered(replace(plan, where=None).to_json()), request, charges)
        if not reader.refinement.observations:
            raise PlanError("a table of the batch is not answered yet")
        return reader

    def answer_from(
        self,
        query: LinearQuery,
        request: StoredRequest,
        charges: list[Charge],
        *,
        cost: tuple[GDP, float],
        total_loss: GDP,
        time: str,
    ) -> Answer:
        plan, view = query.plan, request.view
        reader = self._reader(query, request, charges)
        refinement, table = reader.refinement, reader.table
        sources = measurement_ids(refinement, charges, view)
        kind, simultaneous = Answer, request.simultaneous
        if isinstance(view, BoundsView):
            kind, simultaneous = BoundsAnswer, True
        return kind(
            description=describe_plan(plan, view),
            names=tuple(group.name for group in plan.group_by) if table is None else (table.name,),
            keys=reader.keys if table is None else tuple((row,) for row in table.rows),
            outputs=reader.outputs if table is None else table.outputs,
            arrays=reader.arrays if table is None else table.arranged(reader.arrays),
            confidence=decimal_down(request.confidence),
            simultaneous=simultaneous,
            notice=self.notice,
            population=self._population(charges),
            condition=reader.condition,
            worst_case=self.pricer.account.individual,
            measurement_ids=sources if table is None else sources * len(table.rows),
            anytime_arrays=reader.anytime_arrays if table is None else table.arranged(reader.anytime_arrays),
            is_refined=len(refinement.observations) > 1,
            dates=dates_of(plan.aggregation, view),
            plan=plan,
            view=view,
            cost=cost[0],
            cost_fraction=cost[1],
            total_loss=total_loss,
            n_observations=len(refinement.observations),
            time=time,
            origin=_Origin(self, query, request, charges),
        )

    def _reader(self, query: LinearQuery, request: StoredRequest, charges: list[Charge]) -> EstimateReader:
        if isinstance(query.plan.aggregation, Discovery):
            keys = charges[0].group_keys or ()
            refinement = CombinedObservations((Observation(charges[0].gdp, charges[0].measurement),), None, len(keys))  # type: ignore[arg-type]
        else:
            keys, refinement = query.keys or ((),), self.pricer.combine(query, charges)
        return EstimateReader(query, request, refinement, keys, self.pricer.tables.schema(query.plan.source))

    def _population(self, charges: list[Charge]) -> str | None:
        """The units that an answer is about, if that may not be all: a function of the ledger alone."""
        first = self.pricer.account.first_exclusion
        return SOME_EXCLUDED if first is not None and any(charge.id >= first for charge in charges) else None


def _compiled(tables: PrivateTables, plan: str) -> LinearQuery:
    return tables.compile(Plan.from_json(plan))


@dataclass(frozen=True, eq=False, repr=False)
class _Origin(NotCopyable):
    """The reference from an answer to its session, which a copied answer does not have."""

    releases: ReleasePipeline
    query: LinearQuery
    request: StoredRequest
    charges: list[Charge]

    def refine(self, answer: Answer, **target: Any) -> Answer:
        return self.releases._release_of(answer.plan, answer.view)(**target)

    def shares(self, answer: Answer) -> Answer:
        view = Proportions()
        if any(record_of(charge) for charge in self.charges):
            raise RequestError(
                "proportions: a batch estimates all groups together, so their errors are not independent; release the "
                "shares as a separate query, as in .value_counts(normalize=True).release(share=0.01)"
            )
        refuse_separate_shares(view, self.releases.pricer.combine(self.query, self.charges))
        return self.releases.answer_from(
            self.query,
            StoredRequest(self.request.confidence, view, self.request.simultaneous, self.request.groups),
            self.charges,
            cost=(answer.cost, answer.cost_fraction),
            total_loss=answer.total_loss,
            time=answer.time,
        )

    def past(self, answer: Answer) -> tuple[Answer, ...]:
        """The answer after each observation, computed from released values without reading a row."""
        return tuple(
            self.releases.answer_from(
                self.query,
                self.request,
                self.charges[:number],
                cost=(charge.gdp, self.releases.account.cost_fraction(charge.id)),
                total_loss=charge.total_loss,
                time=charge.time,
            )
            for number, charge in enumerate(self.charges, start=1)
        )
