"""What is known of a question by now, and what its answer's errors would be: made without the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpnb.accounting.exact import from_text
from dpnb.accounting.losses import GDP
from dpnb.copying import NotCopyable
from dpnb.errors import RequestError
from dpnb.interactive.refinement import Look, Refinement
from dpnb.ledger import Charge
from dpnb.query.aggregations import AnyView, Discovery, Shares
from dpnb.query.identity import question_of
from dpnb.query.linear import LinearQuery
from dpnb.query.plan import Plan, question_words
from dpnb.query.schema import Key
from dpnb.session.account import Account
from dpnb.session.arguments import GREATEST_AMOUNT, LEAST_AMOUNT
from dpnb.session.expectations import Expectations
from dpnb.session.knowledge import PublicFigures, Rows, known_rows, refuse_unknown
from dpnb.session.stored import request_of
from dpnb.session.tables import Tables
from dpnb.session.target import Target, resolve

Keys = tuple[tuple[Key, ...], ...]


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
        The looks at it that can be combined.
    alone : bool
        A new look is combined with none of them: see `Questions.looks`.
    """

    query: LinearQuery
    measured: LinearQuery
    view: AnyView
    refinement: Refinement
    alone: bool = False

    @property
    def combined(self) -> Refinement:
        """The looks that a new one is combined with."""
        return Refinement((), None, self.query.cells) if self.alone else self.refinement

    @property
    def words(self) -> str:
        """The question in words."""
        return question_words(self.query.plan, self.view)

    @property
    def cells(self) -> list[int]:
        """Places of the cells to be looked at."""
        return list(range(self.query.cells)) if self.measured.only is None else list(self.measured.only)

    @property
    def known(self) -> GDP:
        """How well the cells to be looked at are known, as far as that saves anything."""
        return self.combined.known(self.measured.l2_sensitivity_squared, self.measured.only)

    @property
    def discovery_delta(self) -> Fraction:
        """What a discovery takes of the budget's discovery_delta."""
        aggregation = self.query.plan.aggregation
        return from_text(aggregation.delta) if isinstance(aggregation, Discovery) else Fraction(0)

    def missing(self, total: GDP) -> GDP:
        """What a release must cost so that the cells are known as well as by `total`."""
        squared = max(total.mu_squared - self.known.mu_squared, Fraction(0))
        return GDP.from_squared(squared, self.discovery_delta)


class Questions(NotCopyable):
    """The questions of one session.

    Parameters
    ----------
    tables : Tables
    account : Account
    version : str
        Of the tables.
    public : PublicFigures
    """

    def __init__(self, tables: Tables, account: Account, version: str, public: PublicFigures) -> None:
        self.tables, self.account, self.version = tables, account, version
        self.public = public

    def question(self, plan: Plan, view: AnyView, groups: Keys) -> Question:
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
        if only is not None and not refinement.looks:
            raise RequestError(
                f"groups: the first look at the {plan.words} is at all of its groups; release it without groups= "
                "first, or group by these keys alone, as in groupby(..., keys=[...])"
            )
        refuse_shares_apart(view, refinement, only)
        measured = query if only is None else self.tables.compile(plan, only)
        return Question(query, measured, view, refinement)

    def refinement(self, query: LinearQuery) -> Refinement:
        """All looks at a question that the ledger has."""
        if isinstance(query.plan.aggregation, Discovery):
            return Refinement()  # which groups there are may differ from look to look: nothing can be combined
        return self.refinement_of(query, self.looks(query.plan))

    def looks(self, plan: Plan) -> list[Charge]:
        """The looks at a question that can be combined: those in which everybody surely took part.

        Where each unit has a budget of its own, a later look may be of fewer units than an earlier one, and one that
        was clipped of less of them.  Their sums are then different quantities, and their weighted mean would be a third
        one that nobody asked about; so such a look stands alone.  Which looks these are follows from the ledger alone.
        """
        looks, until = self.all_looks(plan), self.account.left_out
        return looks if until is None else [look for look in looks if look.id < until]

    def all_looks(self, plan: Plan) -> list[Charge]:
        """Every look at a question."""
        return self.account.ledger.looks(self.version, self.account.trunk, question_of(plan))

    def refinement_of(self, query: LinearQuery, charges: list[Charge]) -> Refinement:
        """What some rows of the ledger say about a question."""
        looks = []
        for charge in charges:
            if charge.measurement is not None:
                only = only_of(query, request_of(charge).groups)
                measured = query if only is None else self.tables.compile(query.plan, only)
                looks.append(Look(charge.gdp, charge.measurement, measured.l2_sensitivity_squared, only))
        return Refinement(tuple(looks), charges[0].tau if looks else None, query.cells)

    def rows(self, question: Question) -> Rows | None:
        """How many rows its errors may rest on."""

        def known(plan: Plan) -> tuple[LinearQuery, Refinement]:
            query = self.tables.compile(plan)
            return query, self.refinement(query)

        unit = self.tables.unit(question.query.plan.source)
        return known_rows(question.query, question.view, self.public, unit, known)

    def priced(self, question: Question, target: Target, rows: Rows | None) -> tuple[Question, GDP, GDP]:
        """The question as it would be looked at, how well it would be known, and what that costs.

        Where somebody might be left out of a further look, the look stands alone and is paid for in full.

        Raises
        ------
        RequestError
            Such a look is asked for at some groups only, no usual noise belongs to it, or what `resolve` raises.
        """
        total = self.resolve(question, target, rows)
        cost = question.missing(total)
        if cost.mu_squared and not self.account.surely(cost):
            if target.groups:
                raise RequestError(
                    f"groups: some units may be left out of a further look at the {question.words}, so it is not "
                    "combined with earlier ones; ask for these groups alone, as in groupby(..., keys=[...])"
                )
            question = replace(question, alone=True)
            total = self.resolve(question, target, rows)
            cost = question.missing(total)
        _refuse_unusual(question, cost)
        return question, total, cost

    def resolve(self, question: Question, target: Target, rows: Rows | None) -> GDP:
        """The loss at which the question is known as well as asked."""
        expectations = self.expectations(question, target, rows)
        return resolve(
            target,
            words=question.words,
            known=question.known,
            budget=self.account.budget,
            share_left=lambda share: self.account.promise.left(self.account.filter, share),
            errors=expectations.errors(),
            unknown=lambda: refuse_unknown(
                question.query.plan,
                question.view,
                rows,
                enough=expectations.rows_are_enough(),
                looks=len(question.refinement.looks),
                alone=question.alone,
            ),
        )

    def expectations(self, question: Question, target: Target, rows: Rows | None) -> Expectations:
        """Its errors as they are, and as they would be."""
        return Expectations(question, target, rows, self.tables.schema(question.query.plan.source))


def refuse_shares_apart(view: AnyView, refinement: Refinement, only: tuple[int, ...] | None = None) -> None:
    """Refuse shares of groups of which some were looked at more often than others.

    Whoever stops looking at each group at a moment of its own can bring the total as far off as they like, and no
    interval of ours allows for that.

    Raises
    ------
    RequestError
    """
    if isinstance(view, Shares) and (refinement.apart or only is not None):
        raise RequestError(
            "shares: rest on all groups at once, so they cannot be told after some groups were refined by themselves; "
            "ask for the counts, or refine all groups together"
        )


def refuse_after_final(question: Question, target: Target) -> None:
    """Refuse another look at a question whose first was asked for as the last, and a last look that is not the first.

    Raises
    ------
    RequestError
    """
    if question.combined.final:
        raise RequestError(
            f"{question.words}: was released with final=True, whose interval holds only if nothing follows; the budget "
            "is untouched; ask another question"
        )
    if target.final and question.combined.looks:
        raise RequestError(
            f"final: must be the first look at a question, and there are {len(question.combined.looks)} at the "
            f"{question.words}; leave final out"
        )


def only_of(query: LinearQuery, groups: Keys) -> tuple[int, ...] | None:
    """Places of some groups, ascending; None for all."""
    only = tuple(sorted(query.keys.index(key) for key in set(groups)))
    return None if not only or len(only) == query.cells else only


def _refuse_unusual(question: Question, cost: GDP) -> None:
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
