"""A row of the ledger in words: its request, its answer, and a loss as an amount or as a share of a budget.

The words of an answer are a function of request and released values.  They are stored with the answer, and the
audit computes them again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from dpnb._browser.glossary import IN_THIS_TABLE
from dpnb._compile import LinearQuery
from dpnb._core.accountant import grant as grants
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import Grant, amount_from_json
from dpnb._core.accountant.tree import KINDS
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.pricing.estimation import EstimateReader
from dpnb._core.pricing.pricer import combined
from dpnb._core.pricing.query_state import Released, batch_table_of, request_of
from dpnb._core.tables import PrivateTables
from dpnb._plan.measurements import Count, Discovery, Gradient, PlainView
from dpnb._plan.plan import Plan, describe_plan, in_words, shortened_words
from dpnb._plan.regression import describe_model
from dpnb._request import (
    AnyMechanism,
    BatchTable,
    CloseMechanism,
    CompareWithThreshold,
    DescendGradient,
    LaunchMechanism,
    PartitionTable,
    ReduceNoise,
    Release,
    RequestBudget,
    SelectGroups,
    request_from,
)
from dpnb.accounting.exact import decimal_up, display_up, from_text
from dpnb.accounting.guarantee import PrivacyGuarantee
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.copying import NotCopyable
from dpnb.errors import PlanError, printable
from dpnb.ledger import Charge, Ledger, refuse_unreadable
from dpnb.ledger.charge import ACT, GRANT, RELEASE, SELECTION, Words
from dpnb.ledger.declared import extends
from dpnb.render.numbers import format_cost, format_percent_up, limit_words
from dpnb.results.observations import CombinedObservations, Observation

RESTORED = "ledger accepted, perhaps an older copy"
"""How the description of such an act begins."""

NOT_HERE = "the answer is not in this copy"
"""Instead of a comparison's answer, in a ledger whose answers were taken out."""

MAX_KEYS = 5
"""Number of selected keys that the log shows."""

MAX_KEPT = 10_000
"""Numbers of an answer whose estimates are kept."""


# --- the cost ---------------------------------------------------------------------------------------------------------


def cost_text(account: Accountant, loss: Loss) -> str:
    """What a loss that the filter can count costs now, for example ``36.0% of the budget (mu 0.6)``."""
    filter_, counted = account.filter, account.guarantee.to_filter_loss(loss)
    if account.budget.pure_epsilon:
        counted = filter_.to_filter_loss(loss)
    return charge_text(account, loss, counted, account.forecast(counted)[0])


def charge_text(account: Accountant, loss: Loss, counted: Loss | None, share: float) -> str:
    """What a mechanism is charged at launch, of the budget and of the reserve for pure losses.

    `counted` is what the filter counts, if that is not the loss; `share` is the share of the budget.
    """
    charged = _charged(counted, loss, account.guarantee)
    if charged is None:
        return format_cost(loss, share)
    words, reserve = charged_words(account.guarantee, loss, charged), account.guarantee.initial_filter.reserve
    shares = [f"{format_percent_up(share)} of the budget"]
    if reserve and charged.epsilon:
        of_reserve = f"{format_percent_up(decimal_up(charged.epsilon / reserve))} of the reserve"
        shares = [*shares, of_reserve] if charged.mu_squared else [of_reserve]
        words = words if charged.mu_squared else loss.words
    return words if math.isnan(share) else f"{' and '.join(shares)} ({words})"


def charged_words(guarantee: PrivacyGuarantee, loss: Loss, counted: Loss | None) -> str:
    """What was charged for a loss, for example ``mu 0.1576 for epsilon 0.15``; `counted` None is the loss itself."""
    charged = _charged(counted, loss, guarantee)
    if charged is None:
        return loss.words
    words = charged_amount(guarantee, charged)
    return words if not charged.mu_squared else f"{words} for {loss.words}"


def charged_amount(guarantee: PrivacyGuarantee, charged: Loss) -> str:
    """The amount that a GDP filter was charged for a loss in pure DP."""
    parts, amount = [], as_amount(charged)
    if amount.mu_squared or amount.delta:
        parts.append(GDP.of(amount.mu_squared, amount.delta).words)
    if amount.epsilon:
        reserve = " of the reserve" if guarantee.initial_filter.reserve else ""
        parts.append(f"epsilon {display_up(decimal_up(amount.epsilon))}{reserve}")
    return " and ".join(parts) or "nothing"


def _charged(counted: Loss | None, loss: Loss, guarantee: PrivacyGuarantee) -> PureGDP | None:
    """What a GDP filter was charged, if that is not the loss."""
    if counted is None or counted.noise_mu_squared is None:
        return None
    return guarantee.initial_filter.recorded_charge(loss, counted)


# --- the request ------------------------------------------------------------------------------------------------------


def row_in_words(charge: Charge) -> str:
    """The description of a row."""
    with refuse_unreadable(f"row {charge.id}"):
        if charge.kind == GRANT:
            return _grant(Grant.from_details(charge.id, charge.node, charge.launch or {}))
        if charge.kind == ACT:
            return _act(charge.launch or {})
        match request_from(charge.request):
            case LaunchMechanism() as request:
                about = _about(request.mechanism)
                more = f": {about}" if about not in ("", request.name) else ""
                return f"launch of the {KINDS[type(request.mechanism)]} {request.name!r}{more}"
            case CloseMechanism() as request:
                return f"end of the {(charge.launch or {})['kind']} {request.name!r}"
            case SelectGroups() as request:
                return selection_words(request.plan, request.winners)
            case RequestBudget() as request:
                return _budget_request(charge.launch or {}, request.why)
            case CompareWithThreshold() as request:
                return describe_comparison(request.plan, charge.result or {})
        raise TypeError(charge.kind)


def _about(mechanism: AnyMechanism) -> str:
    """What a mechanism reads; empty if that is said by each request to it."""
    match mechanism:
        case PartitionTable(source, by):
            plan = Plan(Count(), group_by=(by,), source=source)
            return shortened_words(plan.scope_description.strip(), plan)
        case ReduceNoise(plan, view):
            return shortened_words(describe_plan(plan, view), plan)
        case DescendGradient(rows, model):
            plan = msgspec.structs.replace(rows, aggregation=Gradient(model, (), 1.0))
            return shortened_words(f"{describe_model(model)}{plan.scope_description}", plan)
    return ""


def _grant(grant: Grant) -> str:
    amount = grant.ceiling or grant.cap
    of = "" if amount is None else f", at most {limit_words(amount)}"
    place = "" if grant.taken_from is None else f", in the place of the unused one of row {grant.taken_from}"
    return f"{grant.mode} part of the budget for the {grant.level} {grant.name}{of}{place}"


def _budget_request(details: Mapping[str, Any], why: str) -> str:
    queries = "; ".join(f"{one['words']} at {one['target']}" for one in details["queries"])
    return f"request for budget: {queries}; because: {why}"


def _act(details: Mapping[str, Any]) -> str:
    cap = amount_from_json(details.get("cap"))
    match details["act"]:
        case "approve":
            until = "" if details.get("until") is None else f" until {details['until']}"
            amount = amount_from_json(details["amount"])
            added = "" if amount is None else f": {limit_words(amount)} added to the cap"
            return f"request {details['request']} approved{added}{until}"
        case "decline":
            return f"request {details['request']} declined"
        case "cap":
            return "cap removed" if cap is None else f"cap moved to {limit_words(cap)}"
        case "freeze":
            return f"table frozen: {details['why']}"
        case "unfreeze":
            return "table no longer frozen"
        case "end":
            return "request ended " + (
                f"that row {details['row']} charged" if "row" in details else "before its charge"
            )
        case "resume":
            return f"row {details['row']} may be answered"
        case grants.LEDGER_RESTORED:
            known = details.get("known")
            lost = "" if known is None else f"; it had at least {known} rows"
            return f"{RESTORED}, which ends with the row before{lost}"
        case grants.REMOVE:
            return "access removed"
        case grants.HAND_OVER:
            return "part of the budget handed over, of which nothing was charged"
        case grants.TAKE_OVER:
            return "part of the budget taken over from another analyst, of which nothing was charged"
        case act:
            return f"part of the budget {act}d"


def describe_comparison(plan: Plan, result: Mapping[str, Any]) -> str:
    """The answer of an above-threshold mechanism."""
    query = describe_plan(plan, PlainView())
    if not result:
        return f"{query}: {NOT_HERE}"
    return (
        f"{query}: {'above' if result['above'] else 'below'} {float(from_text(result['threshold'])):g} {IN_THIS_TABLE}"
    )


def selection_words(plan: Plan, winners: int) -> str:
    """The selection of the largest groups of a count, in words."""
    largest = "largest group" if winners == 1 else f"{winners} largest groups"
    return f"{largest} by {describe_plan(plan, PlainView())}"


# --- the answer -------------------------------------------------------------------------------------------------------


class AnswerReader(NotCopyable):
    """Reads the answers of recorded rows; the rows of the tables are not read."""

    def __init__(self, tables: PrivateTables, ledger: Ledger) -> None:
        self._tables, self._ledger = tables, ledger
        self._declared: dict[int, PrivateTables] = {}  # by the number of the declaration
        self._last: tuple[list[Charge], EstimateReader] | None = None

    def estimates(self, query: LinearQuery, request: Released, charges: list[Charge]) -> EstimateReader:
        """The estimates of a query from the rows whose measurements they combine.

        Those of a new answer are kept for the next call: it is read for its words, and then for itself.
        """
        known, self._last = self._last, None
        if known is not None:
            rows, reader = known
            if reader.query is query and reader.request == request and _measure_the_same(rows, charges):
                return reader
        return self._read(self._tables, query, request, charges)

    def tables_of(self, charge: Charge) -> PrivateTables:
        """The tables as they were declared for a row, which may be about another version with other columns."""
        number = self._ledger.declaring(charge.id)
        if number not in self._declared:
            theirs = self._ledger.declaration(number)
            self._declared[number] = (
                self._tables
                if extends(self._ledger.opened, theirs)
                else LedgerMetadata.from_dict(theirs.metadata, self._ledger.path).tables
            )
        return self._declared[number]

    def _read(
        self, tables: PrivateTables, query: LinearQuery, request: Released, charges: list[Charge]
    ) -> EstimateReader:
        if isinstance(query.plan.aggregation, Discovery):
            keys = charges[0].group_keys or ()
            refinement = CombinedObservations((Observation(charges[0].gdp, charges[0].measurement),), None, len(keys))  # type: ignore[arg-type]
        else:
            keys, refinement = query.keys or ((),), combined(tables, self._ledger, query, charges)
        return EstimateReader(query, request, refinement, keys, tables.schema(query.plan.source))

    def observations_of(self, charge: Charge) -> list[Charge]:
        """The rows whose measurements an answer combines."""
        if charge.observations == (charge.id,):
            return [charge]
        rows = self._ledger.by_id(charge.observations)
        return [charge if row.id == charge.id else row for row in rows]

    def words(self, charge: Charge) -> Words:
        """A row in words, with its answer if it has one that can be read."""
        with suppress(PlanError):  # the query is refused by now
            return self._with_answer(charge, self.tables_of(charge))
        return _request(charge), None, None, None, None, None

    def words_to_store(self, charge: Charge) -> str | None:
        """The `stored_words` of a new answer; None if they cannot be made.

        An answer is written in any case.  Otherwise its charge would be answered again with other noise, and so would
        all answers with values of which no words can be made.
        """
        try:
            return self._stored(charge, self._tables)
        except Exception:  # noqa: BLE001  (no kind of failure may decide whether an answer is written)
            return None

    def stored_words(self, charge: Charge) -> str | None:
        """The words that are stored with the answer of a row; None for a row without an answer of its own.

        The tables of a batch are estimated together, once all of them are answered.  Raises `PlanError` if the query is
        refused by now.
        """
        return self._stored(charge, self.tables_of(charge))

    def _stored(self, charge: Charge, tables: PrivateTables) -> str | None:
        if (charge.measurement is None and charge.result is None) or batch_table_of(charge) is not None:
            return None
        return json.dumps(self._with_answer(charge, tables), ensure_ascii=False)

    def _with_answer(self, charge: Charge, tables: PrivateTables) -> Words:
        answer = None
        if charge.kind == RELEASE and charge.measurement is not None:
            request = request_of(charge)
            query = tables.compile(request.plan)
            charges = self.observations_of(charge)
            read = self.estimates if tables is self._tables else partial(self._read, tables)
            estimates = read(query, request, charges)
            if query.numbers <= MAX_KEPT:
                self._last = charges, estimates
            if estimates.refinement.observations:  # else a table of its batch is not answered yet
                return printable(estimates.description), *estimates.summary, estimates.error
        elif charge.kind == SELECTION and charge.result is not None:
            answer = printable(_selected_keys(charge))
        return _request(charge), answer, None, None, None, None


def title_of_request(words: str, request: str) -> str:
    """The words of a row as a reader says them; the words themselves where a request has no other ones."""
    with suppress(PlanError, msgspec.MsgspecError, RecursionError):
        made = request_from(request)
        if isinstance(made, Release | BatchTable):
            return in_words(words, made.plan, made.view)
    return words


def _measure_the_same(rows: list[Charge], others: list[Charge]) -> bool:
    same = [
        row.id == other.id and row.measurement is other.measurement is not None
        for row, other in zip(rows, others, strict=False)
    ]
    return len(rows) == len(others) and all(same)


def _request(charge: Charge) -> str:
    """What was requested, or done; of an above-threshold scan, with the answer."""
    if charge.kind == RELEASE:
        request = request_of(charge)
        return printable(describe_plan(request.plan, request.view))
    return printable(row_in_words(charge))


def _selected_keys(charge: Charge) -> str:
    """The first of the selected keys, the largest group first."""
    with refuse_unreadable(f"row {charge.id}"):
        keys = [", ".join(map(str, key)) for key in (charge.result or {})["largest"]]
        return "; ".join(keys[:MAX_KEYS]) + (f"; and {len(keys) - MAX_KEYS:,} more" if len(keys) > MAX_KEYS else "")
