"""The state of a query and the expected errors of its answer: computed without the table."""

from __future__ import annotations

from dataclasses import replace

from dpnb._compile import LinearQuery
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.options import GREATEST_AMOUNT, LEAST_AMOUNT
from dpnb._core.pricing.forecasts import ExpectedErrors
from dpnb._core.pricing.public_knowledge import PublicSizes, RowCounts, known_row_counts, refuse_unknown_error
from dpnb._core.pricing.question import Keys, QueryState
from dpnb._core.pricing.stored_request import request_of
from dpnb._core.pricing.target import Target, resolve
from dpnb._core.tables import PrivateTables
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView, Discovery, Proportions
from dpnb._plan.plan import Plan
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import RequestError
from dpnb.ledger import Charge
from dpnb.results.observations import CombinedObservations, Observation


class QueryPricer(NotCopyable):
    """Prices the queries of one session.

    Parameters
    ----------
    tables : PrivateTables
        The declared tables.
    account : Accountant
        The accountant that charges the queries.
    version : str
        Version of the tables.
    public : PublicSizes
        The public sizes of the data.
    """

    def __init__(self, tables: PrivateTables, account: Accountant, version: str, public: PublicSizes) -> None:
        self.tables, self.account, self.version = tables, account, version
        self.public = public

    def question(self, plan: Plan, view: AnyView, groups: Keys) -> QueryState:
        """The current state of a query.

        Raises
        ------
        RequestError
            If the query has no such group, or only some groups are requested before an observation of all groups.
        """
        query = self.tables.compile(plan)
        for key in groups:
            if key not in query.keys:
                raise RequestError(f"groups: must be keys of the {plan.words}; {key!r} is not; name some of its keys")
        only, refinement = only_of(query, groups), self.refinement(query)
        if only is not None and not refinement.observations:
            raise RequestError(
                f"groups: the first observation of the {plan.words} must include all of its groups; release it without "
                "groups= first, or group by these keys alone, as in groupby(..., keys=[...])"
            )
        refuse_shares_apart(view, refinement, only)
        measured = query if only is None else self.tables.compile(plan, only)
        return QueryState(query, measured, view, refinement)

    def refinement(self, query: LinearQuery) -> CombinedObservations:
        """All observations of a query that can be combined."""
        if isinstance(query.plan.aggregation, Discovery):
            return (
                CombinedObservations()
            )  # which groups there are may differ from look to look: nothing can be combined
        return self.refinement_of(query, self.looks(query.plan))

    def looks(self, plan: Plan) -> list[Charge]:
        """The observations of a query that can be combined: those in which every unit certainly took part.

        Under individual accounting a later observation may include fewer units than an earlier one, or clipped
        contributions.  The sums are then different quantities, and their weighted mean would estimate neither; so such
        an observation is not combined with others.  Which ones these are is a function of the ledger alone.
        """
        looks, until = self.all_looks(plan), self.account.first_exclusion
        return looks if until is None else [look for look in looks if look.id < until]

    def all_looks(self, plan: Plan) -> list[Charge]:
        """Every observation of a query."""
        return self.account.ledger.observations(self.version, self.account.root_node, query_key(plan))

    def refinement_of(self, query: LinearQuery, charges: list[Charge]) -> CombinedObservations:
        """The observations of a query in some rows of the ledger, combined."""
        looks = []
        for charge in charges:
            if charge.measurement is not None:
                only = only_of(query, request_of(charge).groups)
                measured = query if only is None else self.tables.compile(query.plan, only)
                looks.append(Observation(charge.gdp, charge.measurement, measured.l2_sensitivity_squared, only))
        return CombinedObservations(tuple(looks), charges[0].tau if looks else None, query.cells)

    def rows(self, question: QueryState) -> RowCounts | None:
        """The known numbers of rows on which the query's errors depend."""

        def known(plan: Plan) -> tuple[LinearQuery, CombinedObservations]:
            query = self.tables.compile(plan)
            return query, self.refinement(query)

        unit = self.tables.unit(question.query.plan.source)
        return known_row_counts(question.query, question.view, self.public, unit, known)

    def price(self, question: QueryState, target: Target, rows: RowCounts | None) -> tuple[QueryState, GDP, GDP]:
        """The query as it would be measured, its total loss, and the cost.

        If a further observation might exclude units, it is not combined with earlier ones and is charged in full.

        Raises
        ------
        RequestError
            If such an observation is requested for some groups only, its noise scale is out of range, or as for
            `resolve`.
        """
        total = self.resolve(question, target, rows)
        cost = question.missing(total)
        if cost.mu_squared and not self.account.admits_all_units(cost):
            if target.groups:
                raise RequestError(
                    f"groups: some units may be excluded from a further observation of the {question.words}, so it is "
                    "not combined with earlier ones; query these groups alone, as in groupby(..., keys=[...])"
                )
            question = replace(question, is_standalone=True)
            total = self.resolve(question, target, rows)
            cost = question.missing(total)
        _refuse_unusual(question, cost)
        return question, total, cost

    def resolve(self, question: QueryState, target: Target, rows: RowCounts | None) -> GDP:
        """The total loss at which the query meets the target."""
        expectations = self.expectations(question, target, rows)
        return resolve(
            target,
            words=question.words,
            known=question.known,
            budget=self.account.budget,
            share_left=lambda share: self.account.promise.remaining(self.account.filter, share),
            errors=expectations.errors(),
            unknown=lambda: refuse_unknown_error(
                question.query.plan,
                question.view,
                rows,
                enough=expectations.rows_are_enough(),
                looks=len(question.refinement.observations),
                alone=question.is_standalone,
            ),
        )

    def expectations(self, question: QueryState, target: Target, rows: RowCounts | None) -> ExpectedErrors:
        """The current and the expected errors of a query."""
        return ExpectedErrors(question, target, rows, self.tables.schema(question.query.plan.source))


def refuse_shares_apart(view: AnyView, refinement: CombinedObservations, only: tuple[int, ...] | None = None) -> None:
    """Refuse shares of groups of which some were observed more often than others.

    An analyst who stops refining each group at a different, chosen moment can bias the total arbitrarily, and the
    intervals do not allow for that.

    Raises
    ------
    RequestError
    """
    if isinstance(view, Proportions) and (refinement.differs_by_cell or only is not None):
        raise RequestError(
            "shares: depend on all groups at once, so they are not available once groups were refined separately; "
            "use the counts, or refine all groups together"
        )


def refuse_after_final(question: QueryState, target: Target) -> None:
    """Refuse a further observation after a final one, and a final observation that is not the first.

    Raises
    ------
    RequestError
    """
    if question.combined.is_final:
        raise RequestError(
            f"{question.words}: was released with final=True, whose interval holds only without further observations; "
            "nothing was charged; use another query"
        )
    if target.final and question.combined.observations:
        raise RequestError(
            f"final: must be the first observation of a query; there are {len(question.combined.observations)} of the "
            f"{question.words}; omit final"
        )


def only_of(query: LinearQuery, groups: Keys) -> tuple[int, ...] | None:
    """Indices of some groups, ascending; None for all."""
    only = tuple(sorted(query.keys.index(key) for key in set(groups)))
    return None if not only or len(only) == query.cells else only


def _refuse_unusual(question: QueryState, cost: GDP) -> None:
    """Refuse an observation whose noise scale is not a normal double, for example a tiny refinement.

    Raises
    ------
    RequestError
    """
    if cost.mu_squared and not LEAST_AMOUNT**2 <= cost.mu_squared <= GREATEST_AMOUNT**2:
        raise RequestError(
            f"{question.words}: the additional loss must be 0, or lie between mu=1e-100 and mu=1e100, so that noise "
            f"can be calibrated to it; got mu={cost.mu!r}; give another amount"
        )
