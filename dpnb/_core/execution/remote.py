"""Charges and answers requests through the service that holds the table.

What the service returns is compared with what was sent, so that the row of another request is never shown as the
answer, as it could be when the rows of service and session differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpnb._core.execution.protocol import ReleaseRequest, RemoteCalls
from dpnb._core.execution.selection_terms import SelectionTerms
from dpnb._core.pricing.batch_design import PlannedBatch
from dpnb._core.pricing.batch_observations import record_of
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._core.pricing.query_state import plan_of
from dpnb._plan.identity import query_key
from dpnb._plan.plan import Plan
from dpnb._target import Target
from dpnb.accounting.exact import to_text
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.ledger.charge import RELEASE, SELECTION
from dpnb.wire.amounts import cap_to_text
from dpnb.wire.calls import Release, ReleaseBatch, TargetArguments


class RemoteExecution:
    """Has the service charge and answer requests.

    The session's ledger, which `pricer` reads, is a copy, to which `calls` adds rows.
    """

    def __init__(self, calls: RemoteCalls, pricer: QueryPricer) -> None:
        self._calls, self._pricer = calls, pricer

    def release(self, request: ReleaseRequest) -> Charge:
        """Charge a release and answer it."""
        plan, view, target = request.plan, request.view, request.target
        limit = None if request.at_most is None else cap_to_text(request.at_most)
        (row,) = self._calls.run(
            Release(plan, view, target_arguments(target), request.inside, request.combined, limit),
            lambda rows: len(rows) == 1 and self._is_release(rows[0], plan, json.loads(target.to_json(view))),
        )
        return row

    def _is_release(self, row: Charge, plan: Plan, arguments: dict[str, Any]) -> bool:
        """Whether a row is the answer to a release, and combines it with observations of the same query only."""
        observed = self._pricer.account.ledger.by_id(row.observations)
        return (
            is_row(row, RELEASE, self._pricer.account.root_node, self._pricer.version, plan, arguments)
            and row.query_key == query_key(plan)
            and (row.sigma is None or row.measurement is not None)
            and [one.id for one in observed] == sorted(row.observations)
            and all(
                (one.query_key, one.node, one.table_version) == (row.query_key, row.node, row.table_version)
                for one in observed
            )
        )

    def release_batch(
        self, planned: PlannedBatch, targets: Sequence[Target], *, at_most: Fraction | None = None
    ) -> list[Charge]:
        """Charge all tables of a batch, and answer them."""
        limit = None if at_most is None else cap_to_text(at_most)
        return self._calls.run(
            ReleaseBatch(planned.requested, tuple(map(target_arguments, targets)), limit),
            lambda rows: self._is_batch(rows, planned, targets[0]),
        )

    def _is_batch(self, rows: Sequence[Charge], planned: PlannedBatch, target: Target) -> bool:
        """Whether rows are the measured tables of one batch, among them those of the queries."""
        first = record_of(rows[0]) if rows else None
        if first is None or first.index or first.all_ids(rows[0]) != tuple(row.id for row in rows):
            return False
        node, version = self._pricer.account.root_node, self._pricer.version
        allowed = [_without(json.loads(target.to_json(view)), target.kind) for view in planned.views]
        return {plan for plan, _ in planned.queries} <= {plan_of(row) for row in rows} and all(
            (row.kind, row.node, row.table_version) == (RELEASE, node, version)
            and row.measurement is not None
            and _without(json.loads(row.arguments), "batch") in allowed
            for row in rows
        )

    def select(self, terms: SelectionTerms, epsilon: Fraction) -> Charge:
        """Charge a selection of the largest groups and answer it."""
        node, version = self._pricer.account.root_node, self._pricer.version
        (row,) = self._calls.run(
            terms.call(to_text(epsilon)),
            lambda rows: (
                len(rows) == 1
                and is_row(rows[0], SELECTION, node, version, terms.plan, json.loads(terms.request(epsilon)))
                and rows[0].result is not None
            ),
        )
        return row


def _without(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key != name}


def is_row(row: Charge, kind: str, node: str, version: str, plan: Plan, arguments: dict[str, Any]) -> bool:
    """Whether a row is that of a request.

    The arguments are as the ledger stores them; an equal number may be written in another way.
    """
    with refuse_unreadable(f"row {row.id}"):
        return (row.kind, row.node, row.table_version) == (kind, node, version) and (
            json.loads(row.plan) == json.loads(plan.to_json()) and json.loads(row.arguments) == arguments
        )


def target_arguments(target: Target) -> TargetArguments:
    """A target as the service receives it."""
    return TargetArguments(
        kind=target.kind,
        amount=None if target.amount is None else to_text(target.amount),
        amounts=tuple((label, to_text(amount)) for label, amount in target.amounts),
        confidence=to_text(target.confidence),
        simultaneous=target.simultaneous,
        final=target.final,
        groups=target.groups,
    )
