"""What is known of a question by now, and what its answer's errors would be: made without the table."""

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
    """The questions of one session.

    Parameters
    ----------
    tables : Tables
    account : Account
    version : str
        Of the tables.
    public : PublicFigures
    """

    def __init__(self, tables: PrivateTables, account: Accountant, version: str, public: PublicSizes) -> None:
        self.tables, self.account, self.version = tables, account, version
        self.public = public

    def question(self, plan: Plan, view: AnyView, groups: Keys) -> QueryState:
        """What is known of a question by now.

        Raises
        ------
        RequestError
            It has no such group, or only some groups are to be looked at before there was a look at all of them.
        """
        query = self.tables.compile(plan)
        for key in groups:
            if key not in query.keys:
                raise RequestError(f"groups: {key!r} is no group of the {plan.words}; name some of its keys")
        only, refinement = only_of(query, groups), self.refinement(query)
        if only is not None and not refinement.observations:
            raise RequestError(
                f"groups: the first look at the {plan.words} is at all of its groups; release it without groups= "
                "first, or group by these keys alone, as in groupby(..., keys=[...])"
            )
        refuse_shares_apart(view, refinement, only)
        measured = query if only is None else self.tables.compile(plan, only)
        return QueryState(query, measured, view, refinement)

    def refinement(self, query: LinearQuery) -> CombinedObservations:
        """All looks at a question that the ledger has."""
        if isinstance(query.plan.aggregation, Discovery):
            return (
                CombinedObservations()
            )  # which groups there are may differ from look to look: nothing can be combined
        return self.refinement_of(query, self.looks(query.plan))

    def looks(self, plan: Plan) -> list[Charge]:
        """The looks at a question that can be combined: those in which everybody surely took part.

        Where each unit has a budget of its own, a later look may be of fewer units than an earlier one, and one that
        was clipped of less of them.  Their sums are then different quantities, and their weighted mean would be a third
        one that nobody asked about; so such a look stands alone.  Which looks these are follows from the ledger alone.
        """
        looks, until = self.all_looks(plan), self.account.first_exclusion
        return looks if until is None else [look for look in looks if look.id < until]

    def all_looks(self, plan: Plan) -> list[Charge]:
        """Every look at a question."""
        return self.account.ledger.observations(self.version, self.account.root_node, query_key(plan))

    def refinement_of(self, query: LinearQuery, charges: list[Charge]) -> CombinedObservations:
        """What some rows of the ledger say about a question."""
        looks = []
        for charge in charges:
            if charge.measurement is not None:
                only = only_of(query, request_of(charge).groups)
                measured = query if only is None else self.tables.compile(query.plan, only)
                looks.append(Observation(charge.gdp, charge.measurement, measured.l2_sensitivity_squared, only))
        return CombinedObservations(tuple(looks), charges[0].tau if looks else None, query.cells)

    def rows(self, question: QueryState) -> RowCounts | None:
        """How many rows its errors may rest on."""

        def known(plan: Plan) -> tuple[LinearQuery, CombinedObservations]:
            query = self.tables.compile(plan)
            return query, self.refinement(query)

        unit = self.tables.unit(question.query.plan.source)
        return known_row_counts(question.query, question.view, self.public, unit, known)

    def price(self, question: QueryState, target: Target, rows: RowCounts | None) -> tuple[QueryState, GDP, GDP]:
        """The question as it would be looked at, how well it would be known, and what that costs.

        Where somebody might be left out of a further look, the look stands alone and is paid for in full.

        Raises
        ------
        RequestError
            Such a look is asked for at some groups only, no usual noise belongs to it, or what `resolve` raises.
        """
        total = self.resolve(question, target, rows)
        cost = question.missing(total)
        if cost.mu_squared and not self.account.admits_all_units(cost):
            if target.groups:
                raise RequestError(
                    f"groups: some units may be left out of a further look at the {question.words}, so it is not "
                    "combined with earlier ones; ask for these groups alone, as in groupby(..., keys=[...])"
                )
            question = replace(question, is_standalone=True)
            total = self.resolve(question, target, rows)
            cost = question.missing(total)
        _refuse_unusual(question, cost)
        return question, total, cost

    def resolve(self, question: QueryState, target: Target, rows: RowCounts | None) -> GDP:
        """The loss at which the question is known as well as asked."""
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
        """Its errors as they are, and as they would be."""
        return ExpectedErrors(question, target, rows, self.tables.schema(question.query.plan.source))


def refuse_shares_apart(view: AnyView, refinement: CombinedObservations, only: tuple[int, ...] | None = None) -> None:
    """Refuse shares of groups of which some were looked at more often than others.

    Whoever stops looking at each group at a moment of its own can bring the total as far off as they like, and no
    interval of ours allows for that.

    Raises
    ------
    RequestError
    """
    if isinstance(view, Proportions) and (refinement.differs_by_cell or only is not None):
        raise RequestError(
            "shares: rest on all groups at once, so they cannot be told after some groups were refined by themselves; "
            "ask for the counts, or refine all groups together"
        )


def refuse_after_final(question: QueryState, target: Target) -> None:
    """Refuse another look at a question whose first was asked for as the last, and a last look that is not the first.

    Raises
    ------
    RequestError
    """
    if question.combined.is_final:
        raise RequestError(
            f"{question.words}: was released with final=True, whose interval holds only if nothing follows; the budget "
            "is untouched; ask another question"
        )
    if target.final and question.combined.observations:
        raise RequestError(
            f"final: must be the first look at a question, and there are {len(question.combined.observations)} at the "
            f"{question.words}; leave final out"
        )


def only_of(query: LinearQuery, groups: Keys) -> tuple[int, ...] | None:
    """Places of some groups, ascending; None for all."""
    only = tuple(sorted(query.keys.index(key) for key in set(groups)))
    return None if not only or len(only) == query.cells else only


def _refuse_unusual(question: QueryState, cost: GDP) -> None:
    """Refuse a look for which no usual double is the noise scale: a refinement by next to nothing, say.

    Raises
    ------
    RequestError
    """
    if cost.mu_squared and not LEAST_AMOUNT**2 <= cost.mu_squared <= GREATEST_AMOUNT**2:
        raise RequestError(
            f"{question.words}: what a look adds must be nothing, or lie between mu=1e-100 and mu=1e100, so that noise "
            f"can be calibrated to it; got mu={cost.mu!r}; ask for another amount"
        )
