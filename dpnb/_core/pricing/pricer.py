"""The state of a query and the expected errors of its answer: computed without the table."""

from __future__ import annotations

from dataclasses import replace

from dpnb._compile import LinearQuery
from dpnb._compile.sensitivity import cells_of_unit
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.pricing.forecasts import ExpectedErrors
from dpnb._core.pricing.public_knowledge import PublicSizes, RowCounts, known_row_counts
from dpnb._core.pricing.query_state import QueryState, batch_observation, batch_table_of, request_of, rows_of_batch
from dpnb._core.pricing.resolve import refuse_unknown_error, resolve
from dpnb._core.tables import PrivateTables
from dpnb._plan.checks import check_view
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView, BoundsView, Count, Discovery, Proportions
from dpnb._plan.plan import Plan
from dpnb._target import MAX_AMOUNT, MIN_AMOUNT, Keys, Target
from dpnb.accounting.grid import grid_down, grid_up, is_on_grid
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import RequestError
from dpnb.ledger import Charge, Ledger, refuse_unreadable
from dpnb.results.estimates.expected import in_rank, output_units
from dpnb.results.observations import CombinedObservations, Observation

_LEAST_SQUARED, _MOST_SQUARED = MIN_AMOUNT**2, MAX_AMOUNT**2


class QueryPricer(NotCopyable):
    """Prices the queries of one session."""

    def __init__(self, tables: PrivateTables, account: Accountant, version: str, public: PublicSizes) -> None:
        self.tables, self.account, self.version = tables, account, version
        self.public = public

    def state(self, plan: Plan, view: AnyView, groups: Keys) -> QueryState:
        """The current state of a query; single groups can only be requested after an observation of all groups."""
        query = self.tables.compile(plan)
        check_view(plan, view, self.tables.schema(plan.source))
        subset, refinement = cell_subset(query, groups), self.refinement(query, view)
        if subset is not None and not refinement.observations:
            raise RequestError(
                f"groups: the first observation of the {plan.words} must include all of its groups; release it without "
                "groups= first, or group by these keys alone, as in groupby(..., keys=[...])"
            )
        refuse_separate_shares(view, refinement, subset)
        if query.is_cumulative:
            refuse_cumulative(query, subset, individually=self.account.filter.is_individual)
        measured = query if subset is None else self.tables.compile(plan, subset)
        return QueryState(query, measured, view, refinement)

    def refinement(self, query: LinearQuery, view: AnyView | None = None) -> CombinedObservations:
        """The observations of a query that can be combined."""
        if isinstance(query.plan.aggregation, Discovery):
            return CombinedObservations()  # each observation may have other groups, so they cannot be combined
        return self.combine(query, self.observations(query.plan, view))

    def observations(self, plan: Plan, view: AnyView | None = None) -> list[Charge]:
        """The observations of a query that can be combined: those in which every unit certainly took part.

        A batch estimates all groups together, so its observations are not used for statistics of several groups at
        once, whose intervals need independent noise.

        Under individual accounting a later observation may include fewer units than an earlier one, or clipped
        contributions.  The sums are then different quantities, and their weighted mean would estimate neither; so such
        an observation is not combined with others.  Which ones these are is a function of the ledger alone.
        """
        charges, first_exclusion = self.all_observations(plan), self.account.first_exclusion
        if isinstance(view, Proportions | BoundsView):
            charges = [charge for charge in charges if batch_table_of(charge) is None]
        return charges if first_exclusion is None else [charge for charge in charges if charge.id < first_exclusion]

    def all_observations(self, plan: Plan) -> list[Charge]:
        """Every observation of a query; those of a batch once all of its tables are answered.

        Refused before one of them is read if they need more memory together than a query may.
        """
        ledger, identity = self.account.ledger, (self.version, self.account.root_node, query_key(plan))
        number = ledger.count_observations(*identity)
        if not number:
            return []
        self.tables.refuse_observed(plan, number)
        return [charge for charge in ledger.observations(*identity) if self._is_complete(charge)]

    def _is_complete(self, charge: Charge) -> bool:
        table = batch_table_of(charge)
        return table is None or bool(rows_of_batch(self.account.ledger, charge, table))

    def is_final(self, plan: Plan) -> bool:
        """Whether a query was released as final, so that it must not be observed again."""
        charges = self.all_observations(plan)
        return bool(charges) and charges[0].tau is None

    def combine(self, query: LinearQuery, charges: list[Charge]) -> CombinedObservations:
        """The observations of a query in some rows of the ledger, combined."""
        return combined(self.tables, self.account.ledger, query, charges)

    def rows_in_rank(self, state: QueryState) -> RowCounts | None:
        """The known numbers of rows of a query with quantiles, whose errors are in rows of rank; None for others."""
        ranked = in_rank(state.view) or any(output_units(state.view))
        return self.row_counts(state, Count()) if ranked else None

    def row_counts(self, state: QueryState, counted: Count | None = None) -> RowCounts | None:
        """The known numbers of rows on which the query's errors depend, or which are `counted`."""

        def known(plan: Plan) -> tuple[LinearQuery, CombinedObservations] | None:
            charges = self.observations(plan)
            if not charges:
                return None  # it is compiled only then
            query = self.tables.compile(plan)
            return query, self.combine(query, charges)

        unit = self.tables.unit(state.query.plan.source)
        return known_row_counts(state.query, state.view, self.public, unit, known, counted)

    def price(self, state: QueryState, target: Target, rows: RowCounts | None) -> tuple[QueryState, GDP, GDP]:
        """The query as it would be measured, its total loss, and the cost, which is on the grid.

        The cost is rounded up for a half-width, so that it is met, and down for a loss or a share, so that it is not
        exceeded; noise is calibrated to the rounded cost (`dpnb.accounting.grid`).

        If a further observation might exclude units, it is not combined with earlier ones and is charged in full; for
        some groups only, it is refused.
        """
        total = self.resolve(state, target, rows)
        cost = state.missing_loss(total)
        if cost.mu_squared and not self.account.admits_all_units(cost):
            if target.groups:
                raise RequestError(
                    f"groups: some units may be excluded from a further observation of the {state.description}, so it "
                    "is not combined with earlier ones; query these groups alone, as in groupby(..., keys=[...])"
                )
            state = replace(state, is_standalone=True)
            total = self.resolve(state, target, rows)
            cost = state.missing_loss(total)
        rounded = self._rounded(cost, up=target.kind == "within")
        if rounded is not cost:
            cost, total = rounded, GDP.from_mu_squared(state.known_loss.mu_squared + rounded.mu_squared)
        _refuse_unusual(state, cost)
        return state, total, cost

    def _rounded(self, cost: GDP, *, up: bool) -> GDP:
        """The cost on the grid; one that is exactly what is left stays, so that it leaves nothing."""
        squared, guarantee = cost.mu_squared, self.account.guarantee
        if is_on_grid(squared):
            return cost
        if guarantee.has_budget and squared == guarantee.remaining(self.account.filter).mu_squared:
            return cost
        return GDP.from_mu_squared(grid_up(squared) if up else grid_down(squared), cost.delta)

    def resolve(self, state: QueryState, target: Target, rows: RowCounts | None) -> GDP:
        """The total loss at which the query meets the target."""
        forecast = self.forecast(state, target, rows)
        return resolve(
            target,
            description=state.description,
            known=state.known_loss,
            budget=self.account.budget,
            remaining=lambda share: self.account.guarantee.remaining(self.account.filter, share),
            errors=forecast.error_model,
            refuse_unknown=lambda: refuse_unknown_error(
                state.query.plan,
                state.view,
                rows,
                enough=forecast.rows_are_enough(),
                n_observations=len(state.refinement.observations),
                is_standalone=state.is_standalone,
                has_budget=self.account.guarantee.has_budget,
            ),
        )

    def forecast(self, state: QueryState, target: Target, rows: RowCounts | None) -> ExpectedErrors:
        """The current and the expected errors of a query."""
        return ExpectedErrors(state, target, rows, self.tables.schema(state.query.plan.source))


def refuse_separate_shares(
    view: AnyView, refinement: CombinedObservations, subset: tuple[int, ...] | None = None
) -> None:
    """Refuse shares and bounds of groups of which some were observed more often than others.

    An analyst who stops refining each group at a different, chosen moment can bias the total arbitrarily, and the
    intervals do not allow for that.
    """
    if isinstance(view, Proportions) and (refinement.differs_by_cell or subset is not None):
        raise RequestError(
            "shares: depend on all groups at once, so they are not available once groups were refined separately; "
            "use the counts, or refine all groups together"
        )
    if isinstance(view, BoundsView) and (refinement.differs_by_cell or subset is not None):
        raise RequestError(
            "bounds: depend on all bins at once, so groups= is not available; refine the whole query, or release it "
            "on other rows"
        )


def refuse_cumulative(query: LinearQuery, subset: tuple[int, ...] | None, *, individually: bool) -> None:
    """Refuse a cumulative count of some groups, or one that cannot be charged to each unit by its own rows.

    What is measured of a unit in one group is its number of rows there times the same vector, so its charge follows
    from the square of that number.  In several groups it does not.
    """
    if subset is not None:
        raise RequestError(
            f"groups: each number of the {query.plan.words} is computed from all groups up to it; refine all of them, "
            "without groups="
        )
    if individually and cells_of_unit(query.contribution_bounds, query.cells) > 1:
        raise RequestError(
            f"{query.plan.words}: under accounting='individual' a unit must be in one group only; add "
            ".bound_contributions(max_groups_per_unit=1), or release the counts, with .size(), instead"
        )


def refuse_after_final(state: QueryState, target: Target) -> None:
    """Refuse a further observation after a final one, and a final observation that is not the first."""
    if state.combined.is_final:
        raise RequestError(
            f"{state.description}: was released with final=True, whose interval holds only without further "
            "observations; nothing was charged; use another query"
        )
    if target.final and state.combined.observations:
        raise RequestError(
            f"final: must be the first observation of a query; there are {len(state.combined.observations)} of the "
            f"{state.description}; omit final"
        )


def combined(tables: PrivateTables, ledger: Ledger, query: LinearQuery, charges: list[Charge]) -> CombinedObservations:
    """The observations of a query in some rows of a ledger, combined."""
    observations = []
    for charge in charges:
        table = batch_table_of(charge)
        if table is not None:
            rows = rows_of_batch(ledger, charge, table)
            with refuse_unreadable(f"row {charge.id}"):
                observations += [batch_observation(query, table, rows)] if rows else []
        elif charge.measurement is not None:
            subset = cell_subset(query, request_of(charge).target.groups)
            measured = query if subset is None else tables.compile(query.plan, subset)
            observations.append(Observation(charge.gdp, charge.measurement, measured.l2_sensitivity_squared, subset))
    return CombinedObservations(tuple(observations), charges[0].tau if observations else None, query.cells)


def cell_subset(query: LinearQuery, groups: Keys) -> tuple[int, ...] | None:
    """Indices of some groups, ascending; None for all."""
    if not groups:
        return None
    cells = {key: cell for cell, key in enumerate(query.keys)}
    for key in groups:
        if key not in cells:
            raise RequestError(f"groups: must be keys of the {query.plan.words}; {key!r} is not; name some of its keys")
    subset = tuple(sorted({cells[key] for key in groups}))
    return None if len(subset) == query.cells else subset


def _refuse_unusual(state: QueryState, cost: GDP) -> None:
    """Refuse an observation whose noise scale is not a normal double, for example a tiny refinement."""
    squared = cost.mu_squared
    if squared and not _LEAST_SQUARED <= squared <= _MOST_SQUARED:
        raise RequestError(
            f"{state.description}: the additional loss must be 0, or lie between mu=1e-100 and mu=1e100, so that noise "
            f"can be calibrated to it; got mu={cost.mu!r}; give another amount"
        )
