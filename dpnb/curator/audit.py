"""Audits a ledger: whether every charge was within the budgets, ceilings and caps that held when it was made.

It reads a copy of the ledger alone, and adds the charges up without the filters.  Under individual accounting it audits
deltas and caps only, since what each unit has paid depends on the rows.  The noise of each answer is compared with its
loss, and its stored words with those that follow from request and released values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from dpnb._core.accountant import grant as grants
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.budget_request import BudgetRequest, Decision, actor_of
from dpnb._core.accountant.cap import NOTHING
from dpnb._core.accountant.grant import Cap, Grant, amount_from_json
from dpnb._core.accountant.later_sessions import parameters_of
from dpnb._core.accountant.tree import PARTITION, SUB_SESSION, Launch
from dpnb._core.history.log import ROWS_PER_QUERY
from dpnb._core.history.words import AnswerReader
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb.accounting.guarantee import PrivacyGuarantee
from dpnb.accounting.losses import PureGDP
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.accounting.partition_cost import PartRef
from dpnb.copying import NotCopyable
from dpnb.curator.audit_result import Audit, AuditedSum, AuditScope, guarantee_of, is_paid_for, same_words
from dpnb.errors import DpnbError, PlanError
from dpnb.ledger import ROOT, Charge, ChargeSummary, Ledger, node_of, parent_launch
from dpnb.ledger.charge import ABOUT_TABLE, ACT, BUDGET_REQUEST, CLOSE, GRANT, LAUNCH, QUERIES
from dpnb.ledger.declared import unsound_versions
from dpnb.ledger.row_times import RowTimes

MAX_PROBLEMS = 100
"""Problems that a report lists."""


def audit(path: str) -> Audit:
    """Audit a file, whose chain of hashes is verified first; `LedgerError` if it cannot be read, or was altered."""
    with closing(Ledger.read_only_copy(path)) as ledger:
        return AuditReplay(ledger).result()


class AuditReplay(NotCopyable):
    """Reads the rows in order."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._problems, self._notes = ledger, list[str](), list[str]()
        self._guarantee, *_ = parameters_of(ledger)
        self._launches: dict[int, Launch] = {}
        self._individual = self._guarantee.initial_filter.is_individual
        budget = self._guarantee.initial_filter.budget
        limit = as_amount(budget) if self._guarantee.filter_name == "gdp" and budget is not None else None
        if limit is None:
            self._notes.append(
                f"The filter {self._guarantee.filter_name!r} does not add mu squared: the session's own replay is the "
                "audit of its budget."
            )
            self._replay_filters()
        if self._individual:
            self._notes.append("What each unit has paid depends on the rows; deltas and caps are audited.")
        self._adds = limit is not None
        self._sums = {ROOT: AuditScope("table", "its budget", limit, is_per_unit=self._individual, is_table=True)}
        self._caps: dict[str, Cap] = {}
        self._sub_sessions: dict[int, tuple[AuditScope, PrivacyGuarantee]] = {}
        self._part_names: dict[int, set[str]] = {}
        self._requests: dict[int, BudgetRequest] = {}
        self._times, self._seen = ledger.times(), RowTimes()
        self._grants: dict[int, Grant] = {}
        self._revoked, self._frozen = set[int](), False
        self._handed_over: dict[int, bool] = {}  # parts, and whether another one has taken their place
        self._before = NOTHING  # what was charged before the budget was divided

    def result(self) -> Audit:
        """What was found."""
        rows = self._ledger.summaries()
        falling = []
        for charge in rows:
            time = self._times[charge.id]
            falling += [charge.id] if time < self._seen.latest(self._seen.scope(charge.node)) else []
            self._seen.add(charge, time)
            try:
                self._add(charge)
            except (DpnbError, KeyError, TypeError, ValueError):
                self._problem(charge, "cannot be read")
        for charge in unsound_versions(self._ledger.created, rows):
            self._problem(charge, "changes the declaration that earlier answers are about")
        self._check_requests()
        if falling:
            self._notes.append(
                f"The time of {len(falling)} row{'s' if len(falling) != 1 else ''}, the first of which is row "
                f"{falling[0]}, is before that of an earlier row: the clock was set back, or another version wrote it. "
                "An approval that had lapsed may have counted again."
            )
        sums = []
        for node, one in self._sums.items():
            cap, spent = self._cap(node, self._ledger.time_in(node)), one.spent if self._adds else None
            sums.append(AuditedSum(one.name, spent, one.limit if cap is None else cap, one.requests))
        return Audit(
            self._ledger.path,
            len(rows),
            self._ledger.head,
            " and ".join(sorted({grant.mode for grant in self._grants.values()})) or None,
            tuple(sums),
            tuple(self._problems[:MAX_PROBLEMS]),
            tuple(self._notes),
        )

    def _replay_filters(self) -> None:
        """Replay the filter of the session and those of its sub-sessions."""
        try:
            account = Accountant.from_ledger(self._ledger)
        except DpnbError as error:
            self._problems.append(f"The filter does not admit the charges: {error}")
            return
        for launch in account.tree.sync().values():
            if launch.kind == SUB_SESSION:
                try:
                    account.for_sub_session(launch)
                except DpnbError as error:
                    self._problems.append(f"The filter of sub-session {launch.name!r} does not admit them: {error}")

    # --- rows ---------------------------------------------------------------------------------------------------

    def _add(self, charge: ChargeSummary) -> None:
        if charge.kind in ABOUT_TABLE:
            return
        if charge.kind == GRANT:
            self._grant(charge)
        elif charge.kind == ACT:
            self._act(charge)
        elif charge.kind == BUDGET_REQUEST:
            self._request(charge)
        elif charge.kind != CLOSE:
            self._charge(charge)

    def _grant(self, charge: ChargeSummary) -> None:
        grant = Grant.from_details(charge.id, charge.node, charge.launch or {})
        self._refuse_analyst(charge)
        if not self._grants:
            self._before = self._sums[ROOT].spent
        elif any(one.mode != grant.mode for one in self._grants.values()):
            self._problem(charge, "grants a part in another mode")
        open_ = [one for one in self._grants.values() if one.id not in self._handed_over]
        if any((one.level, one.name) == (grant.level, grant.name) for one in open_):
            self._problem(charge, f"grants {grant.level} {grant.name} a second part")
        if grant.taken_from is not None and not self._is_given(grant):
            self._problem(charge, f"takes the place of the part of row {grant.taken_from}, which it was not given")
        parent = parent_launch(grant.node)
        if parent is not None and self._grants[parent[0]].level != "project":
            self._problem(charge, "grants a part of the part of an analyst")
        self._grants[grant.id] = grant
        node, words = node_of(grant.id), f"{grant.level} {grant.name}"
        self._sums[node] = AuditScope(words, "its ceiling", grant.ceiling, is_per_unit=self._individual)
        self._caps[node] = Cap(grant.cap, grant.ceiling)
        self._check_ceilings(grant.node)

    def _act(self, charge: ChargeSummary) -> None:
        details, number = charge.launch or {}, (parent_launch(charge.node) or (0, ""))[0]
        self._refuse_analyst(charge)
        match details["act"]:
            case "cap":
                known = self._caps.get(charge.node, Cap(None))
                self._caps[charge.node] = known.set_to(amount_from_json(details["cap"]))
            case grants.LEDGER_RESTORED if charge.node == ROOT:
                had = "" if details["known"] is None else f", which had at least {details['known']} rows"
                self._notes.append(
                    f"Row {charge.id}: the service was started with a ledger that ends with row {charge.id - 1}, and "
                    f"may be an older copy{had}; charges that it lacks are not counted."
                )
            case grants.LEDGER_RESTORED:
                pass
            case "freeze" | "unfreeze" as act:
                self._frozen = act == "freeze"
            case "revoke" | grants.REMOVE:
                self._revoked.add(self._grants[number].id)
            case "restore":
                if number in self._handed_over:
                    self._problem(charge, "restores a part that was handed over")
                self._revoked.discard(self._grants[number].id)
            case grants.HAND_OVER:
                self._hand_over(charge, self._grants[number])
            case grants.TAKE_OVER:
                pass
            case "approve" | "decline":
                self._decision(charge, details)
            case "end" | "resume":
                pass  # neither changes what may be charged
            case _:
                raise ValueError

    def _hand_over(self, charge: ChargeSummary, grant: Grant) -> None:
        """A part is closed for another one with its ceiling, which the next grant has to be."""
        if grant.level != "analyst" or self._sums[charge.node].requests or grant.id in self._handed_over:
            self._problem(charge, f"hands over the part of {grant.name}, which was used, or handed over before")
        self._revoked.add(grant.id)
        self._handed_over[grant.id], self._sums[charge.node].limit = False, NOTHING

    def _is_given(self, grant: Grant) -> bool:
        """Whether a part has the place and the ceiling of one that was handed over, and no other part has them."""
        before = self._grants.get(grant.taken_from or 0)
        if before is None or self._handed_over.get(before.id) is not False:
            return False
        self._handed_over[before.id] = True
        return (before.node, before.ceiling) == (grant.node, grant.ceiling)

    def _refuse_analyst(self, charge: ChargeSummary) -> None:
        """Find what an analyst did that only a curator may do."""
        actor = actor_of(charge)
        if any(
            (one.level, one.name) == ("analyst", actor) and one.id not in self._revoked for one in self._grants.values()
        ):
            self._problem(charge, f"was made by {actor}, who is an analyst")

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
        for node in self._scopes(own):
            number, _ = parent_launch(node) or (0, "")
            if number in self._revoked:
                self._problem(charge, f"was charged after the part of {self._grants[number].name} was revoked")
        path, inside = self._path(charge)
        if self._grants and own is None and inside is None and charge.loss:  # else it was paid for by a launch before
            self._problem(charge, f"was charged outside all parts of the budget, by {actor or 'a local session'}")
        if own is not None and own.level == "project":
            self._problem(charge, f"was charged to the project {own.name}, and to no analyst")
        elif own is not None and own.mode == "reserved" and actor != own.name:
            self._problem(charge, f"was charged to the part of {own.name} by {actor or 'a local session'}")
        self._count(charge, own, path, inside)

    def _count(self, charge: ChargeSummary, own: Grant | None, path: tuple[PartRef, ...], number: int | None) -> None:
        """Count a charge in its sub-session, or else in the table and the parts of its budget."""
        time, guarantee = self._times[charge.id], self._guarantee
        counted = [(self._sums[node], self._cap(node, time)) for node in self._scopes(own)]
        if number is not None:
            inside, guarantee = self._sub_sessions[number]
            counted = [(inside, None)]
        if self._adds:
            amount = as_amount(guarantee.recorded_loss(charge.loss, charge.charged))
            for one, cap in counted:
                for problem in one.add(charge.loss, amount, path, cap):
                    self._problem(charge, problem)
        else:
            counted[0][0].requests += 1
        if charge.kind == LAUNCH:
            self._launched(charge)

    def _launched(self, charge: ChargeSummary) -> None:
        launch = self._launches[charge.id] = Launch.from_row(charge)
        if launch.kind != SUB_SESSION:
            return
        guarantee = guarantee_of(launch)
        budget = guarantee.initial_filter.budget
        limit = as_amount(budget) if self._adds and budget is not None else None
        self._sub_sessions[launch.id] = AuditScope(f"sub-session {launch.name!r}", "its budget", limit), guarantee
        if limit is not None and not limit.within(as_amount(charge.loss)):
            self._problem(charge, "launched a sub-session with a larger budget than its loss")

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
        """The nodes of the scopes that a charge counts in."""
        yield ROOT
        while own is not None:
            yield node_of(own.id)
            parent = parent_launch(own.node)
            own = None if parent is None else self._grants.get(parent[0])

    def _path(self, charge: ChargeSummary) -> tuple[tuple[PartRef, ...], int | None]:
        """The parts of partitions around a charge, and the sub-session that pays; None for the table."""
        path: list[PartRef] = []
        node = charge.node
        while (parent := parent_launch(node)) is not None:
            number, part = parent
            launch = self._launches.get(number)  # of those before: what was made later raises a KeyError below
            if launch is not None and launch.kind == SUB_SESSION:
                return tuple(path), number
            if launch is not None and launch.kind == PARTITION:
                if part not in self._parts_of(launch):
                    self._problem(charge, "was charged to a part that its partition does not have")
                path.append(PartRef(number, part, int(launch.resolved["charged_parts_per_unit"])))
            node = self._grants[number].node if launch is None else launch.node
        return tuple(path), None

    def _parts_of(self, launch: Launch) -> set[str]:
        """The keys of the parts of a partition, as nodes contain them."""
        if launch.id not in self._part_names:
            keys = launch.resolved["keys"]
            self._part_names[launch.id] = {node_of(launch.id, (key,)).partition(" ")[2] for key in keys}
        return self._part_names[launch.id]

    def _outwards(self, node: str) -> Iterator[Launch | Grant]:
        while (parent := parent_launch(node)) is not None:
            one = self._launches.get(parent[0]) or self._grants[parent[0]]
            yield one
            node = one.node

    def _check_ceilings(self, node: str) -> None:
        """That the ceilings in a part add up to at most its own, or to what was left when the budget was divided."""
        total, outer = self._before if node == ROOT else NOTHING, self._sums[node].limit
        for grant in self._grants.values():
            if grant.node == node and grant.ceiling is not None and grant.id not in self._handed_over:
                total = total + grant.ceiling
        problem = f"The ceilings in {self._sums[node].name} add up to more than its own."
        if outer is not None and not total.within(outer) and problem not in self._problems:
            self._problems.append(problem)

    def _check_requests(self) -> None:
        """That noise, and the epsilon of selections and scans, are paid for; and that answers have their own words."""
        try:
            metadata = LedgerMetadata.from_dict(self._ledger.metadata, self._ledger.path)
        except DpnbError as error:
            self._notes.append(f"The requests and the words of the answers were not compared: {error}")
            return
        reader = AnswerReader(metadata.tables, self._ledger)
        queries = [charge.id for charge in self._ledger.summaries() if charge.kind in (*QUERIES, LAUNCH)]
        for start in range(0, len(queries), ROWS_PER_QUERY):
            ids = tuple(queries[start : start + ROWS_PER_QUERY])
            stored = {number: words for number, _, _, words in self._ledger.words(ids)}
            for charge in self._ledger.by_id(ids):
                try:
                    if not is_paid_for(charge, reader.tables_of(charge)):
                        self._problem(charge, "costs more than it was charged")
                    if not self._combines_one_version(charge):
                        self._problem(charge, "combines answers of several versions of the table")
                    is_same = charge.kind == LAUNCH or same_words(stored[charge.id], reader.stored_words(charge))
                except PlanError:  # this version refuses the query, so it cannot read the answer
                    continue
                except DpnbError:
                    is_same = False
                if not is_same:
                    self._problem(charge, "has other words than its answer")

    def _combines_one_version(self, charge: Charge) -> bool:
        combined = [self._ledger.summary(number).table_version for number in charge.observations]
        return all(version == charge.table_version for version in combined)

    def _problem(self, charge: ChargeSummary | Charge, what: str) -> None:
        self._problems.append(f"Row {charge.id} {what}.")
