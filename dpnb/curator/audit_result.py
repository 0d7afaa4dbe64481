"""The result of an audit, and what it adds up: for the table, each part of its budget and each sub-session."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpnb._core.accountant.cap import NOTHING, left_of
from dpnb._core.accountant.later_sessions import stored_parameters
from dpnb._core.accountant.tree import Launch
from dpnb._core.pricing.pricer import cell_subset
from dpnb._core.pricing.query_state import requested
from dpnb._core.tables import PrivateTables
from dpnb._request import BatchTable, LaunchMechanism, Release, ScanThreshold, SelectGroups
from dpnb._target import Target
from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import residue_charge
from dpnb.accounting.convert import convert
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.accounting.losses.epsilon import is_range
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.accounting.partition_cost import NO_PARTS, PartRef, PartSums
from dpnb.ledger import Charge
from dpnb.ledger.charge import LAUNCH, SELECTION
from dpnb.mechanisms.gaussian import sigma_for
from dpnb.mechanisms.selection import PermuteAndFlip

ROUNDING = 1 + Fraction(1, 2**40)
"""What a launch is charged is rounded up, relatively by less than this."""

COMPONENTS = ("mu squared", "delta", "epsilon in pure DP")


@dataclass(frozen=True)
class AuditedSum:
    """What was charged to the table, a project or an analyst."""

    name: str  # whose charges they are, in words
    spent: PureGDP | None  # None if the filter does not add mu squared
    limit: PureGDP | None  # the budget, ceiling or cap that holds now; None for none
    requests: int  # number of rows


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    ledger: str  # path
    rows: int  # number of rows
    head: str  # hash of the last row
    mode: str | None  # how the budget is divided: ``reserved`` or ``pooled``; None if it is not
    sums: tuple[AuditedSum, ...]  # the table's, and that of each part of its budget
    problems: tuple[str, ...]  # what is wrong; empty if nothing is
    notes: tuple[str, ...]  # what could not be audited

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class AuditScope:
    """The charges of one scope, in three components; `name` and `limit_name` name it and its limit in sentences.

    If `is_per_unit`, each unit has the limit's mu squared for itself, so that the sum says nothing.
    """

    def __init__(
        self, name: str, limit_name: str, limit: PureGDP | None, *, is_per_unit: bool = False, is_table: bool = False
    ) -> None:
        self.name, self.limit = name, limit
        self.spent, self.requests = NOTHING, 0
        self._limit_name, self._is_per_unit, self._is_table = limit_name, is_per_unit, is_table
        self._parts: PartSums = NO_PARTS

    def add(self, loss: Loss, amount: PureGDP, path: tuple[PartRef, ...], cap: PureGDP | None) -> Iterator[str]:
        """Count a charge of a row with a loss, and say what is wrong with it.

        The charge reaches this scope through the parts of partitions in `path`.
        """
        if self.limit is not None and (self._is_table or not path):
            # Inside a part, what is left and what is free there are together at most the budget.  The charge of a part
            # was computed for the table; an analyst's share of a partition may have less that is free.
            left = self.limit if path else left_of(self.limit, self.spent)
            if ROUNDING * amount.mu_squared < least_charge(loss, amount, left):
                yield f"was charged less than its launch costs {self.name}"
        if path:
            self._parts, growth = self._parts.after(path, amount.parts)
            amount = amount.with_parts(growth)
        self.spent, self.requests = self.spent + amount, self.requests + 1
        for limit, what in ((self.limit, self._limit_name), (cap, "its cap")):
            if limit is None:
                continue
            for name, added, spent, whole in zip(COMPONENTS, amount.parts, self.spent.parts, limit.parts, strict=True):
                is_sum = not self._is_per_unit or name != COMPONENTS[0] or what == "its cap"
                if added and spent > whole and is_sum:
                    yield f"takes {self.name} beyond {what} in {name}"


def least_charge(loss: Loss, amount: PureGDP, left: PureGDP) -> Fraction:
    """The least mu squared that covers a launch in pure DP beside the epsilon that it was charged; 0 for other rows.

    A charge that was computed where less than `left` is left is larger, and covers it too: see
    :func:`~dpnb.accounting.conversions.residue_charge`.
    """
    asked, by_range = as_amount(loss), is_range(loss)
    if asked.epsilon <= amount.epsilon and not by_range:
        return asked.mu_squared if asked.epsilon else Fraction(0)
    charge = residue_charge(
        asked.epsilon, mu_squared=left.mu_squared, pure_epsilon=amount.epsilon, count=loss.count, is_range=by_range
    )
    alone = convert(loss, GDP).mu_squared
    return alone if charge is None else min(charge + asked.mu_squared, alone)


def guarantee_of(launch: Launch) -> PrivacyGuarantee:
    """The guarantee of a sub-session, as its launch stores it.

    Raises `KeyError`, `TypeError`, `ValueError` or `DpnbError` if it cannot be read.
    """
    resolved = launch.resolved
    guarantee = make_guarantee(str(resolved["filter"]), Budget.from_json(resolved["budget"]))
    return stored_parameters(resolved["parameters"], guarantee)[0]


def is_paid_for(charge: Charge, tables: PrivateTables) -> bool:
    """Whether the loss of a row is at least that of its request, and its noise at least that of the loss."""
    if charge.sigma is None and charge.kind not in (SELECTION, LAUNCH):
        return True
    paid = as_amount(charge.loss)
    match requested(charge):
        case Release(plan=plan, target=Target(groups=groups)) if charge.sigma is not None:
            query = tables.compile(plan)
            subset = cell_subset(query, groups)
            measured = query if subset is None else tables.compile(plan, subset)
            return charge.sigma >= sigma_for(measured.l2_sensitivity_squared, charge.gdp)
        case BatchTable(plan=plan) if charge.sigma is not None:
            return charge.sigma >= sigma_for(tables.compile(plan).l2_sensitivity_squared, charge.gdp)
        case SelectGroups(plan=plan, winners=winners, epsilon=epsilon):
            choice = PermuteAndFlip(tables.compile(plan).cells, winners, epsilon)
            return epsilon <= paid.epsilon and charge.loss.count <= choice.rounds
        case LaunchMechanism(mechanism=ScanThreshold(epsilon=epsilon, max_positives=most, mu=mu)):
            thresholds = (charge.launch or {}).get("thresholds", 1)
            enough = (epsilon or 0) <= paid.epsilon and (mu or 0) ** 2 <= paid.mu_squared
            return enough and charge.loss.count == thresholds in (1, most)
    return True


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
        spent = "" if one.spent is None else f"{one.spent.format(up=True)}{limit}, in "
        lines.append(f"  {one.name}: {spent}{requests}")
    lines += [f"Note: {note}" for note in result.notes]
    lines += [f"Problem: {problem}" for problem in result.problems] or ["No problem found."]
    return "\n".join(lines)


def same_words(stored: str | None, computed: str | None) -> bool:
    """Whether words are the same, except for the last digits of a number, which the version of a library may change."""
    if stored is None or computed is None:
        return stored == computed
    pairs = zip(json.loads(stored), json.loads(computed), strict=True)
    return all(
        math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
        if isinstance(one, float) and isinstance(other, float)
        else one == other
        for one, other in pairs
    )
