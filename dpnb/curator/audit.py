"""Audits a ledger: whether every charge was within the budgets, ceilings and caps that held when it was made.

It reads a copy of the ledger alone, and adds the charges up without the filters.  Under individual accounting it audits
deltas and caps only, since what each unit has paid depends on the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest, Decision, actor_of
from dpnb._core.accountant.caps import Cap
from dpnb._core.accountant.grant import Grant, amount_from_json
from dpnb._core.accountant.limit import NOTHING, as_amount
from dpnb._core.accountant.parameters import parameters_of
from dpnb._core.accountant.tree import PARTITION, SUB_SESSION, BudgetTree, Launch
from dpnb.accounting.budget import Budget
from dpnb.accounting.individual import WorstCaseFilter
from dpnb.accounting.losses import PureGDP
from dpnb.accounting.partition_cost import NO_PARTS, PartRef, PartSums
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError
from dpnb.ledger import ROOT, ChargeSummary, Ledger, node_of, parent_launch
from dpnb.ledger.charge import ACT, BUDGET_REQUEST, CLOSE, GRANT, TABLE_FILES

MAX_PROBLEMS = 100
"""Problems that a report lists."""


@dataclass(frozen=True)
class AuditedSum:
    """What was charged to the table, a project or an analyst.

    Parameters
    ----------
    name : str
        Whose charges they are, in words.
    spent : PureGDP
        Their sum.
    limit : PureGDP or None
        The budget, ceiling or cap that holds now; None for none.
    requests : int
        The number of rows.
    """

    name: str
    spent: PureGDP
    limit: PureGDP | None
    requests: int


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Parameters
    ----------
    ledger : str
        Path of the ledger.
    rows : int
        The number of rows.
    head : str
        The hash of the last row.
    mode : str or None
        How the budget is divided: ``reserved``, ``pooled``, or None if it is not.
    sums : tuple of AuditedSum
        The charges of the table, and of each part of its budget.
    problems : tuple of str
        What is wrong; empty if nothing is.
    notes : tuple of str
        What could not be audited.
    """

    ledger: str
    rows: int
    head: str
    mode: str | None
    sums: tuple[AuditedSum, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def audit(path: str) -> Audit:
    """Audit a ledger.

    Parameters
    ----------
    path : str
        The file.

    Raises
    ------
    LedgerError
        If the file is missing, cannot be read, or was altered: its chain of hashes is verified first.
    """
    ledger = Ledger.read_only_copy(path)
    try:
        return _Replay(ledger).result()
    finally:
        ledger.close()


class _Sum:
    """The charges of one scope, in three components."""

    def __init__(self, name: str, limit: PureGDP | None) -> None:
        self.name, self.limit, self.spent, self.requests = name, limit, NOTHING, 0
        self._parts: PartSums = NO_PARTS

    def add(self, amount: PureGDP, path: tuple[PartRef, ...]) -> PureGDP:
        """Add a charge, and return by how much the sum grows."""
        if path:
            self._parts, growth = self._parts.after(path, amount.parts)
            amount = amount.with_parts(growth)
        self.spent, self.requests = self.spent + amount, self.requests + 1
        return amount


class _Replay(NotCopyable):
    """Reads the rows in order."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._problems, self._notes = ledger, list[str](), list[str]()
        self._guarantee, *_ = parameters_of(ledger)
        self._tree = BudgetTree(ledger)
        self._individual = isinstance(self._guarantee.initial_filter, WorstCaseFilter)
        budget = self._guarantee.budget
        limit = None
        if self._guarantee.filter_name == "gdp" and isinstance(budget, Budget):
            limit = PureGDP.of(budget.loss.mu_squared, budget.loss.delta, budget.pure_epsilon)
        else:
            self._notes.append(
                f"The filter {self._guarantee.filter_name!r} does not add mu squared: the session's own replay is the "
                "audit of its budget."
            )
            self._replay_filter()
        if self._individual:
            self._notes.append("What each unit has paid depends on the rows; deltas and caps are audited.")
        self._sums = {ROOT: _Sum("table", limit)}
        self._caps: dict[str, Cap] = {}
        self._requests: dict[int, BudgetRequest] = {}
        self._times = ledger.times()
        self._grants: dict[int, Grant] = {}
        self._revoked: set[int] = set()
        self._frozen = False

    def result(self) -> Audit:
        rows = self._ledger.summaries()
        for charge in rows:
            try:
                self._add(charge)
            except (DpnbError, KeyError, TypeError, ValueError):
                self._problem(charge, "cannot be read")
        self._check_ceilings()
        sums = []
        for node, one in self._sums.items():
            cap = self._cap(node, self._ledger.time)
            sums.append(AuditedSum(one.name, one.spent, one.limit if cap is None else cap, one.requests))
        modes = {grant.mode for grant in self._grants.values()}
        return Audit(
            self._ledger.path,
            len(rows),
            self._ledger.head,
            " and ".join(sorted(modes)) or None,
            tuple(sums),
            tuple(self._problems[:MAX_PROBLEMS]),
            tuple(self._notes),
        )

    def _replay_filter(self) -> None:
        try:
            Accountant.from_ledger(self._ledger)
        except DpnbError as error:
            self._problems.append(f"The filter does not admit the charges: {error}")

    # --- rows ---------------------------------------------------------------------------------------------------

    def _add(self, charge: ChargeSummary) -> None:
        if charge.kind == TABLE_FILES:
            return
        if charge.kind == GRANT:
            self._grant(Grant.from_details(charge.id, charge.node, charge.launch or {}))
        elif charge.kind == ACT:
            self._act(charge)
        elif charge.kind == BUDGET_REQUEST:
            self._request(charge)
        elif charge.kind != CLOSE:
            self._charge(charge)

    def _grant(self, grant: Grant) -> None:
        node = node_of(grant.id)
        self._grants[grant.id] = grant
        self._sums[node] = _Sum(f"{grant.level} {grant.name}", grant.ceiling)
        self._caps[node] = Cap(grant.cap, grant.ceiling)

    def _act(self, charge: ChargeSummary) -> None:
        details = charge.launch or {}
        match details["act"]:
            case "cap":
                known = self._caps.get(charge.node, Cap(None))
                self._caps[charge.node] = known.set_to(amount_from_json(details["cap"]))
            case "freeze" | "unfreeze" as act:
                self._frozen = act == "freeze"
            case "revoke":
                self._revoked.add((parent_launch(charge.node) or (0, ""))[0])
            case "restore":
                self._revoked.discard((parent_launch(charge.node) or (0, ""))[0])
            case "approve" | "decline":
                self._decision(charge, details)
            case _:
                raise ValueError

    def _request(self, charge: ChargeSummary) -> None:
        """A request for budget: it costs nothing, and only an analyst who has a part can make it."""
        own = self._part_of(charge, actor_of(charge))
        if own is None or (own.mode == "reserved" and own.name != actor_of(charge)):
            self._problem(charge, f"requests budget for another part, by {actor_of(charge) or 'a local session'}")
        if charge.loss:
            self._problem(charge, "requests budget, and has a cost")
        self._requests[charge.id] = BudgetRequest.from_row(charge, None if own is None else own.id)

    def _decision(self, charge: ChargeSummary, details: Mapping[str, Any]) -> None:
        request, decision = self._requests.get(details["request"]), Decision.from_row(charge)
        if request is None or request.decision is not None:
            self._problem(charge, f"decides row {details['request']}, which is no pending request")
            return
        self._requests[request.id] = replace(request, decision=decision)
        if details["digest"] != request.digest:
            self._problem(charge, f"decides request {request.id} by the digest of another one")
        if request.part is None or charge.node != node_of(request.part):
            self._problem(charge, f"decides request {request.id} for the part of another analyst")
            return
        if decision.amount is None:
            return
        if not decision.amount.within(request.total):
            self._problem(charge, f"grants more than request {request.id}")
        cap = self._caps.get(charge.node, Cap(None)).raised(decision.amount, decision.until)
        self._caps[charge.node] = cap
        if cap.at(self._times[charge.id]) != amount_from_json(details["cap"]):
            self._problem(charge, "states another cap than the one that it sets")

    def _cap(self, node: str, time: str) -> PureGDP | None:
        return self._caps.get(node, Cap(None)).at(time)

    def _charge(self, charge: ChargeSummary) -> None:
        actor = None if charge.origin is None else charge.origin.actor
        own = self._part_of(charge, actor)
        if self._frozen:
            self._problem(charge, "was charged while the table was frozen")
        if own is not None and own.id in self._revoked:
            self._problem(charge, f"was charged after the part of {own.name} was revoked")
        if self._grants and own is None:
            self._problem(charge, f"was charged outside all parts of the budget, by {actor or 'a local session'}")
        if own is not None and own.mode == "reserved" and actor != own.name:
            self._problem(charge, f"was charged to the part of {own.name} by {actor or 'a local session'}")
        path = self._path(charge.node)
        if path is None:
            return  # paid for by the launch of its sub-session
        amount = as_amount(self._guarantee.recorded_loss(charge.loss, charge.charged))
        for node in self._scopes(own):
            one = self._sums[node]
            self._check(charge, node, one, one.add(amount, path))

    def _check(self, charge: ChargeSummary, node: str, one: _Sum, growth: PureGDP) -> None:
        """Check the components that a charge adds to: a cap may have moved below what was spent of the others."""
        names = ["mu squared", "delta", "epsilon in pure DP"]
        whose = "its budget" if node == ROOT else "its ceiling"
        for limit, what in ((one.limit, whose), (self._cap(node, self._times[charge.id]), "its cap")):
            if limit is None:
                continue
            for name, added, spent, whole in zip(names, growth.parts, one.spent.parts, limit.parts, strict=True):
                is_per_unit = self._individual and name == "mu squared" and what != "its cap"
                if added and spent > whole and not is_per_unit and charge.loss:
                    self._problem(charge, f"takes {one.name} beyond {what} in {name}")

    def _part_of(self, charge: ChargeSummary, actor: str | None) -> Grant | None:
        """The analyst's part that a row was charged to: by its node in reserved mode, by its actor in pooled mode."""
        inside = next((one for one in self._outwards(charge.node) if isinstance(one, Grant)), None)
        if inside is not None:
            return inside
        return next(
            (one for one in self._grants.values() if (one.level, one.mode, one.name) == ("analyst", "pooled", actor)),
            None,
        )

    def _scopes(self, own: Grant | None) -> Iterator[str]:
        """The nodes of the sums that a charge counts in."""
        yield ROOT
        while own is not None:
            yield node_of(own.id)
            parent = parent_launch(own.node)
            own = None if parent is None else self._grants.get(parent[0])

    def _path(self, node: str) -> tuple[PartRef, ...] | None:
        path = []
        while (parent := parent_launch(node)) is not None:
            number, part = parent
            launch = self._launch(number)
            if launch is not None and launch.kind == SUB_SESSION:
                return None
            if launch is not None and launch.kind == PARTITION:
                path.append(PartRef(number, part, int(launch.details["resolved"]["charged_parts_per_unit"])))
            node = self._grants[number].node if launch is None else launch.node
        return tuple(path)

    def _outwards(self, node: str) -> Iterator[Launch | Grant]:
        while (parent := parent_launch(node)) is not None:
            one = self._launch(parent[0]) or self._grants[parent[0]]
            yield one
            node = one.node

    def _launch(self, number: int) -> Launch | None:
        return self._tree.sync().get(number)

    def _check_ceilings(self) -> None:
        """That the ceilings in each part add up to at most its own."""
        reserved = [grant for grant in self._grants.values() if grant.ceiling is not None]
        for node in dict.fromkeys(grant.node for grant in reserved):
            outer = self._sums[node].limit
            inside = [grant.ceiling for grant in reserved if grant.node == node and grant.ceiling is not None]
            total = [sum((one.parts[part] for one in inside), Fraction(0)) for part in range(3)]
            if outer is not None and any(part > whole for part, whole in zip(total, outer.parts, strict=True)):
                self._problems.append(f"The ceilings in {self._sums[node].name} add up to more than its own.")

    def _problem(self, charge: ChargeSummary, what: str) -> None:
        self._problems.append(f"Row {charge.id} {what}.")


def audit_text(result: Audit) -> str:
    """The audit as the command prints it."""
    divided = "not divided" if result.mode is None else f"divided, in {result.mode} mode"
    lines = [
        f"Ledger {result.ledger}: {result.rows} row{'s' if result.rows != 1 else ''}, the chain of hashes is intact; "
        f"head {result.head}",
        f"Budget: {divided}",
    ]
    for one in result.sums:
        limit = "" if one.limit is None else f" of at most {one.limit.format(up=True)}"
        requests = f"{one.requests} request{'s' if one.requests != 1 else ''}"
        lines.append(f"  {one.name}: {one.spent.format(up=True)}{limit}, in {requests}")
    lines += [f"Note: {note}" for note in result.notes]
    lines += [f"Problem: {problem}" for problem in result.problems] or ["No problem found."]
    return "\n".join(lines)
