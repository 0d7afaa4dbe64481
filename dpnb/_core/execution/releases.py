"""Releases: the loss for the target, noise for the loss, and the noisy sums."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from dpnb._compile.work import stored_bytes, stored_words_bytes
from dpnb._core.accountant.admission import admit, refuse_above
from dpnb._core.execution.executor import Kind, PricedRow
from dpnb._core.pricing.previews import error_at
from dpnb._core.pricing.pricer import QueryPricer, cell_subset, refuse_after_final
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Plan
from dpnb._request import Conditions, Release
from dpnb._target import Keys
from dpnb.accounting.prefix_sums import square_root_of_prefix_sums
from dpnb.errors import BudgetExceeded, LedgerError, RequestError
from dpnb.ledger import Charge
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.partition_selection import named
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.progress import Stage, at
from dpnb.results.estimates.expected import in_rank_words
from dpnb.results.observations import first_tau


class ReleaseKind(Kind[Release]):
    """Releases of queries."""

    def __init__(self, pricer: QueryPricer, source: NoiseSource, individuals: IndividualAccounting | None) -> None:
        super().__init__(pricer)
        self._source, self._individuals = source, individuals

    def lock(self, request: Release) -> AbstractContextManager[object]:
        """Under individual accounting, rows are answered in the order in which they were charged."""
        return nullcontext() if self._individuals is None else self._individuals.lock.checked()

    def price(self, request: Release, conditions: Conditions) -> list[PricedRow]:
        """The additional loss at which the query meets its target; zero if its observations meet it already."""
        plan, target, pricer = request.plan, request.target, self.pricer
        state = pricer.state(plan, request.view, target.groups)
        rows = pricer.row_counts(state) if target.kind == "within" else None  # no other target uses them
        state, total, loss = pricer.price(state, target, rows)
        if state.is_standalone and conditions.combined:
            raise BudgetExceeded(
                f"{state.description}: can be refined only while every unit certainly takes part; a further "
                "observation might exclude units and could not be combined with earlier ones; nothing was charged"
            )
        earlier = state.combined.observations
        squared, known = loss.mu_squared, state.known_loss
        if not squared and not earlier:
            raise RequestError(f"{state.description}: {target.words} measures nothing; give a larger target")
        sigma = tau = None
        stored = 0
        if squared:
            refuse_after_final(state, target)
            pricer.account.refuse_if_no_unit_left(state.description, pricer.version)
            refuse_above(conditions.at_most, loss, state.description)
            note = in_rank_words(state.view) if target.kind == "within" else None
            buys = partial(error_at, pricer, state, target)
            admit(pricer.account, state.description, loss, known, buys=buys, note=note)
            stored = stored_bytes(state.measured.numbers, loss) + stored_words_bytes(state.description)
            sigma = sigma_for(state.measured.l2_sensitivity_squared, loss)
            if earlier:
                tau = state.combined.tau
            elif not target.final:
                tau = first_tau(sigma, target.alpha)
        charges = pricer.observations(plan, request.view) if earlier else []
        columns = {
            "query_key": query_key(plan),
            "total_loss": total if total.mu_squared >= known.mu_squared else known,
            "loss": loss,
            "sigma": sigma,
            "tau": tau,
            "observations": tuple([charge.id for charge in charges]),
        }
        return [PricedRow(request, request.key, columns, state.description, stored)]

    def answer(self, request: Release, row: Charge) -> Charge:
        """The noisy sums of the groups that the target applies to."""
        return self.measured(request.plan, request.target.groups, row)

    def measured(self, plan: Plan, groups: Keys, row: Charge) -> Charge:
        """A row with the noisy sums of some groups of a query, or of all."""
        tables, units, source = self.pricer.tables, self._individuals, self._source
        query = tables.compile(plan)
        subset = cell_subset(query, groups)
        query = query if subset is None else tables.compile(plan, subset)
        if row.sigma is None:  # never: it was released with its charge
            raise LedgerError(f"ledger: row {row.id} must have a noise scale; it has none")
        if not isinstance(plan.aggregation, Discovery):
            with at(Stage.ADDING if query.clip_squared is None else Stage.UNITS):
                sums = tables.opened.sums(query) if units is None else units.sums(row, query)
            with at(Stage.NOISE):
                measured = square_root_of_prefix_sums(sums) if query.is_cumulative else sums
                return replace(row, status="released", measurement=measure(measured, sigma=row.sigma, source=source))
        with at(Stage.GROUPS):
            keys, counts = tables.opened.groups(query) if units is None else units.groups(row, query)
        changed = query.l2_sensitivity_squared  # groups, each of which a unit changes by one
        with at(Stage.NOISE):
            indices, released = named(counts, sigma=row.sigma, groups=changed, delta=row.gdp.delta, source=source)
            group_keys = tuple(keys[index] for index in indices)
            return replace(row, status="released", measurement=released, group_keys=group_keys)

    def is_answer(self, request: Release, rows: Sequence[Charge]) -> bool:
        """Whether a row is that of the request, and combines it with observations of the same query only."""
        if not super().is_answer(request, rows) or rows[0].query_key != query_key(request.plan):
            return False
        (row,) = rows
        observed = self.pricer.account.ledger.by_id(row.observations)
        return [one.id for one in observed] == sorted(row.observations) and all(
            (one.query_key, one.node, one.table_version) == (row.query_key, row.node, row.table_version)
            for one in observed
        )
