"""Individual accounting: what each unit has paid, computed again from ledger and table by the first query.

A query charges unit u what it could reveal about u alone, ||v(u)||^2/sigma^2 as mu squared, where v(u) is the vector
that u adds; a unit that cannot pay is excluded, or its vector is scaled down to what it can pay for (Feldman and Zrnic
2021, Algorithms 3 and 7).

Why this enforces the guarantee.  Take two tables that differ in unit u.  Which other units take part in a query, and
with what, depends on their own rows and on what was released, so it is the same for both tables; the exact sums differ
by v(u), or by nothing while u is excluded.  So given the past, each answer is (||v(u)||/sigma)-GDP for that pair,
u's filter keeps the sum of squares within the budget, and Smith and Thakurta 2022, Theorem 1, applied to the pair
gives mu0-GDP (for a budget in rho: Feldman and Zrnic 2021, Theorem 4.3, gives rho-zCDP).  The bound holds for every u.
Individual accounting in Gaussian DP is due to Koskela, Tobaben and Honkela 2023 (arXiv:2209.15596v2), whose proof is
direct, by a supermartingale for the hockey-stick divergence.
A discovery's delta is charged to every unit equally: it bounds what u alone could reveal, and is 0 if u is excluded.

While the worst cases of all queries together are within the budget, every unit certainly takes part, which is public,
and the observations of a query are combined.  Later observations may include fewer units, or parts of them, so they are
not combined: a weighted mean of sums over different units would estimate neither.

A query is charged in the ledger, at its worst case, before any row is read.  What each unit pays follows from the row
of the ledger, so a crash in between changes nothing: replay charges the units again, in the order of the rows, whether
the query was answered or not.  The state is for one version of the table; for queries of other versions every unit is
charged the worst case, since its rows may have been different there.

Everything here is SENSITIVE and none of it may be shown: which units take part, how many, and what any unit has paid.
Nothing is stored, and no decision outside this module depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from dpnb._backends import Groups, UnitBudgets
from dpnb._backends.memory.memory_backend import MemoryUnitBudgets
from dpnb._backends.unit_vectors import Sums
from dpnb._compile import LinearQuery
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.pricing.pricer import cell_subset
from dpnb._core.pricing.query_state import plan_of, request_of
from dpnb._core.tables import PrivateTables
from dpnb._plan.measurements import CountActiveUnits, Discovery
from dpnb.accounting.exact import binary_up, sqrt_down
from dpnb.accounting.individual import OnExhausted, UnitChargeTerms
from dpnb.accounting.prefix_sums import prefix_sums_norm_squared
from dpnb.copying import NotCopyable
from dpnb.errors import InvalidValueError
from dpnb.ledger import Charge, ProcessLock
from dpnb.progress import Stage, at, work

Accounting = Literal["worst-case", "individual"]
Participation = Literal["in full", "in part", "excluded", "not affected", "worst case", "free"]
"""How a unit took part in a row of the ledger: ``not affected`` if it adds nothing, ``worst case`` if every unit was
charged equally because the table had another version, ``free`` if no unit was charged."""


@dataclass(frozen=True, repr=False)
class UnitChargeRecord:
    """The charge of one unit for one row of the ledger.  For that unit alone."""

    charge: Charge
    full_cost: float  # of taking part in full, as mu squared; 0 if the query does not use the unit's data
    paid: Fraction  # as mu squared
    spent: Fraction  # up to and including this row, as mu squared
    participation: Participation


@dataclass(frozen=True, repr=False)
class _UnitBudgetState(NotCopyable):
    """The unit budgets after the rows up to `last_id`; one value, so that an interrupt cannot split it."""

    unit_budgets: UnitBudgets
    last_id: int = 0


class IndividualAccounting(NotCopyable):
    """The units of one session's tables, and what each has paid; the parts of the session share the units."""

    def __init__(self, tables: PrivateTables, account: Accountant, version: str, on_exhausted: OnExhausted) -> None:
        self._tables, self._account, self._version, self._mode = tables, account, version, on_exhausted
        self._state: _UnitBudgetState | None = None
        self.lock = ProcessLock(account.ledger.path)
        """Held from a charge to its answer, so that rows are answered in the order in which they were charged."""

    def for_account(self, account: Accountant) -> IndividualAccounting:
        """The same units with budgets of their own, for an analyst's part of the budget."""
        return IndividualAccounting(self._tables, account, self._version, self._mode)

    def sums(self, charge: Charge, query: LinearQuery) -> Sums:
        """The exact sums of a row of the ledger, over the units that can pay for it."""
        sums: Sums = self._answered(charge, query)
        return sums

    def groups(self, charge: Charge, query: LinearQuery) -> Groups:
        """The groups of the units that can pay for a row of the ledger, with their numbers of units."""
        groups: Groups = self._answered(charge, query)
        return groups

    @work(Stage.REPLAYING)
    def paid_by(self, unit: int) -> list[UnitChargeRecord]:
        """What one unit paid for each row of the ledger.  For that unit alone; requires tables in memory.

        `unit` is its number in the prepared tables.
        """
        unit_budgets = self._fresh().unit_budgets
        if not isinstance(unit_budgets, MemoryUnitBudgets):  # a statement reads the tables from files
            raise TypeError(type(unit_budgets).__name__)
        state, rows = _UnitBudgetState(replace(unit_budgets, watched=unit)), []
        for charge in self._account.ledger.charges():
            before = state.unit_budgets.spent_by(unit)  # type: ignore[attr-defined]
            state, _, is_measured = self._after(state, charge, None)
            if not self._account.includes(charge.node):
                continue  # not a request
            after: Any = state.unit_budgets
            spent, full_cost = after.spent_by(unit), after.asked_of_watched if is_measured else 0.0
            participation = _participation(is_measured, full_cost, spent - before)
            rows.append(UnitChargeRecord(charge, full_cost, spent - before, spent, participation))
        return rows

    # --- one row after the other --------------------------------------------------------------------------------

    def _answered(self, charge: Charge, query: LinearQuery) -> Any:
        with self.lock.checked():
            state = self._state
            with at(Stage.REPLAYING):
                if state is None or state.last_id >= charge.id:  # first in this kernel, or a row left unanswered
                    state = self._fresh()
                for earlier in self._account.ledger.charges(after=state.last_id):
                    if earlier.id < charge.id:
                        state, _, _ = self._after(state, earlier, None)
            with at(Stage.GROUPS if isinstance(query.plan.aggregation, Discovery) else Stage.UNITS):
                state, answered, _ = self._after(state, charge, query)
            self._state = state
            return answered

    def _fresh(self) -> _UnitBudgetState:
        budget = self._account.guarantee.initial_filter.unit_budget
        return _UnitBudgetState(self._tables.opened.unit_budgets(budget, self._mode))

    def _after(
        self, state: _UnitBudgetState, charge: Charge, query: LinearQuery | None
    ) -> tuple[_UnitBudgetState, Sums | Groups | None, bool]:
        """The unit budgets after a row, its exact sums or groups, and whether it was measured at all."""
        if not charge.loss or not self._account.includes(charge.node):
            return replace(state, last_id=charge.id), None, False
        worst, certainly = self._account.worst_case(charge.id)
        if charge.table_version == self._version and charge.sigma is not None:
            try:
                compiled = self._compiled(charge) if query is None else query
                divisible = not isinstance(compiled.plan.aggregation, CountActiveUnits | Discovery)
                in_part = self._mode == "clip" and divisible
                sigma = _sigma_of_rows(compiled, charge.sigma)
                terms = UnitChargeTerms(
                    sigma,
                    compiled.l2_sensitivity_squared,
                    certainly,
                    in_part,
                    compiled.norm_step,
                )
                answered, unit_budgets = state.unit_budgets.after_query(compiled, terms)
                return _UnitBudgetState(unit_budgets, charge.id), answered, True
            except Exception:
                if query is not None or charge.status == "released":
                    # What was answered elsewhere has decided about later rows by what each unit paid: the worst case
                    # here would exclude units from these that were in fact answered about.
                    raise
            # An earlier row that cannot be measured here and was not answered: no unit paid more for it than the worst
            # case, and it must not block later rows.
        return _UnitBudgetState(state.unit_budgets.after_charge(binary_up(worst)), charge.id), None, False

    def _compiled(self, charge: Charge) -> LinearQuery:
        plan = plan_of(charge)
        query = self._tables.compile(plan)
        subset = cell_subset(query, request_of(charge).target.groups)
        return query if subset is None else self._tables.compile(plan, subset)


def _sigma_of_rows(query: LinearQuery, sigma: float) -> float:
    """The noise scale relative to the vector of a unit's rows, rounded down.

    What a cumulative count measures of a unit in one group is its rows there, times a vector of public norm.
    """
    if not query.is_cumulative:
        return sigma
    return sqrt_down(Fraction(sigma) ** 2 / prefix_sums_norm_squared(query.cells))


def _participation(is_measured: bool, full_cost: float, paid: Fraction) -> Participation:
    """How a unit took part, from its full cost and its charge, both of which are rounded up."""
    if not is_measured:
        return "worst case" if paid else "free"
    if not full_cost:
        return "not affected"
    return "in full" if paid >= full_cost else "in part" if paid else "excluded"


def checked_accounting(accounting: object, on_exhausted: object) -> OnExhausted | None:
    """The mode of individual accounting; None for worst-case accounting."""
    if accounting not in ("worst-case", "individual"):
        raise InvalidValueError(f"accounting: must be 'worst-case' or 'individual'; got {accounting!r}")
    if accounting == "worst-case":
        if on_exhausted is not None:
            raise InvalidValueError(
                f"on_exhausted: requires accounting='individual'; got {on_exhausted!r} with accounting='worst-case', "
                "which refuses the query instead; omit it"
            )
        return None
    if on_exhausted is None:
        return "skip"
    for mode in get_args(OnExhausted):
        if on_exhausted == mode:
            return mode  # type: ignore[no-any-return]
    raise InvalidValueError(f"on_exhausted: must be 'skip', 'drop' or 'clip'; got {on_exhausted!r}; 'skip' is usual")
