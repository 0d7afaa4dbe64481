"""Releases on rows of this process: the order charge, read, noise, release.

Compile and bound the query, let the filter admit its loss, write the charge to the ledger, and only then read rows,
draw noise and write the answer.  A crash in between can waste budget; it can never exceed it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace

from dpnb._backends.guard import isolated_numeric_settings, run_guarded
from dpnb._compile import LinearQuery
from dpnb._compile.work import stored_bytes, stored_words_bytes
from dpnb._core import registry
from dpnb._core.accountant.admission import admit, refuse_above
from dpnb._core.execution.protocol import ReleaseRequest, before_reading
from dpnb._core.history.words import AnswerReader
from dpnb._core.pricing.pricer import QueryPricer, cell_subset, find_request, refuse_after_final, request_key
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Plan
from dpnb._target import Keys, Target
from dpnb.copying import NotCopyable
from dpnb.errors import BudgetExceeded, LedgerError, RequestError
from dpnb.ledger import Charge
from dpnb.ledger.origin import refuse_beyond_room
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.partition_selection import named
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.progress import Stage, at
from dpnb.results.observations import first_tau

FAILED = (
    "the query failed after it was charged; the charge stands and nothing was released; "
    "releasing it with the same arguments uses the same charge"
)

INTERRUPTED = (
    "after the query was charged; the charge stands and nothing was released; releasing it with the same arguments "
    "uses the same charge"
)


class LocalReleases(NotCopyable):
    """Charges releases and answers them from rows of this process.

    `changed` is called when a charge could not be answered.
    """

    def __init__(
        self,
        pricer: QueryPricer,
        reader: AnswerReader,
        source: NoiseSource,
        changed: Callable[[], None],
        individuals: IndividualAccounting | None = None,
    ) -> None:
        self.pricer, self.source, self.changed, self._individuals = pricer, source, changed, individuals
        self.reader = reader

    def release(self, request: ReleaseRequest) -> Charge:
        """Charge a release and answer it, or find the row of the identical request."""
        with self._individuals.lock.checked() if self._individuals is not None else nullcontext():
            text, arguments = request.plan.to_json(), request.target.to_json(request.view)
            key = request_key(self.pricer, text, arguments)
            self._make_ready(key)
            charge = self._charge(request, key, text, arguments)
            if charge.sigma is not None and charge.measurement is None:
                charge = self.answer_charge(request.plan, request.target, charge, charge.sigma)
            return charge

    def _make_ready(self, key: str) -> None:
        """Check, before anything is charged, that rows can be read; skipped if the answer is already recorded."""
        known = find_request(self.pricer, key)
        if known is None or (known.sigma is not None and known.measurement is None):
            self.pricer.tables.ready()

    def _charge(self, request: ReleaseRequest, key: str, text: str, arguments: str) -> Charge:
        """Find the request in the ledger, or admit and write its charge; durable when this returns.

        The key is a digest of the plan and the arguments, both as JSON.
        """
        plan, view, target = request.plan, request.view, request.target
        account, version = self.pricer.account, self.pricer.version
        ledger = account.ledger
        with ledger.transaction():
            known = ledger.by_request_key(key)
            if known is not None:
                return known
            account.tree.refuse_ended(request.inside or account.root_node, version)
            state = self.pricer.state(plan, view, target.groups)
            rows = self.pricer.row_counts(state) if target.kind == "within" else None  # no other target uses them
            state, total, loss = self.pricer.price(state, target, rows)
            if state.is_standalone and request.combined:
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
                refuse_above(request.at_most, loss, state.description)
                admit(account, state.description, loss, state.known_loss)
                stored = stored_bytes(state.measured.numbers, loss) + stored_words_bytes(state.description)
                self.pricer.tables.work_limits.refuse_stored(state.description, stored)
                refuse_beyond_room(stored)
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
                arguments=arguments,
                total_loss=max(total, state.known_loss, key=lambda loss: loss.mu_squared),
                loss=loss,
                sigma=sigma,
                tau=tau,
                observations=tuple(charge.id for charge in charges),
                cell_id=registry.current_cell(),
            )

    def answer_charge(self, plan: Plan, target: Target, charge: Charge, sigma: float) -> Charge:
        """Read rows, draw noise and write the answer, also for a charge that was not answered before."""
        tables, ledger = self.pricer.tables, self.pricer.account.ledger

        def answered() -> Charge:
            query = tables.compile(plan, cell_subset(tables.compile(plan), target.groups))
            measurement, keys = self._measured(query, charge, sigma)
            with at(Stage.WRITING):
                answer = replace(charge, status="released", measurement=measurement, group_keys=keys)
                return ledger.release(charge, measurement, keys, self.reader.words_to_store(answer))

        return self.guarded(charge, answered)

    def guarded(self, charge: Charge, answered: Callable[[], Charge]) -> Charge:
        """The answered row of a charge, from a function that reads rows, draws noise and writes the answer.

        A noisy value that did not reach the ledger must not be shown, for example in a traceback, since the charge will
        be answered with other noise.  So the writing is guarded like the reading.
        """
        before_reading(charge)
        answered = isolated_numeric_settings()(answered)
        try:
            return run_guarded(answered, FAILED, interrupted=INTERRUPTED, public_errors=LedgerError)
        except BaseException:
            with suppress(LedgerError):  # if this cannot be written either, the charge has no answer
                self.pricer.account.ledger.fail(charge)
            self.changed()
            raise

    def _measured(self, query: LinearQuery, charge: Charge, sigma: float) -> tuple[Measurement, Keys | None]:
        tables, units = self.pricer.tables.opened, self._individuals
        if not isinstance(query.plan.aggregation, Discovery):
            with at(Stage.ADDING if query.clip_squared is None else Stage.UNITS):
                sums = tables.sums(query) if units is None else units.sums(charge, query)
            with at(Stage.NOISE):
                return measure(sums, sigma=sigma, source=self.source), None
        with at(Stage.GROUPS):
            keys, counts = tables.groups(query) if units is None else units.groups(charge, query)
        groups = query.l2_sensitivity_squared  # each of which a unit changes by one
        with at(Stage.NOISE):
            indices, released = named(counts, sigma=sigma, groups=groups, delta=charge.gdp.delta, source=self.source)
        return released, tuple(keys[index] for index in indices)
