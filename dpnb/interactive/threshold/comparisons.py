"""Comparisons with a threshold: on rows and hidden noise of this process, or by the service that holds both."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any, NoReturn, Protocol

from dpnb._backends.guard import isolated_numeric_settings, run_guarded
from dpnb._compile import LinearQuery
from dpnb._core import registry
from dpnb._core.accountant.tree import Launch
from dpnb._core.core import SessionCore
from dpnb._core.execution.protocol import RemoteCalls, before_reading
from dpnb._core.history.launch_text import describe_comparison
from dpnb._plan.identity import query_key
from dpnb._plan.plan import Plan
from dpnb._request import ALWAYS, CompareWithThreshold
from dpnb.accounting.exact import binary_up, to_text
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.errors import MechanismClosed, printable
from dpnb.interactive.threshold.above_threshold import from_lattice
from dpnb.interactive.threshold.gaussian_scan import GaussianAboveThreshold
from dpnb.interactive.threshold.hidden_noise import hidden_noise
from dpnb.interactive.threshold.options import ALPHA, Core
from dpnb.ledger import Charge, node_of
from dpnb.ledger.charge import COMPARISON
from dpnb.progress import Stage, at

FAILED = "the query failed before it was answered; nothing was released, and the mechanism can be queried again"


class Scan(Protocol):
    """The part of a scan that its comparisons use."""

    def refuse_ended(self) -> None:
        """Refuse a new query to a scan that is exhausted or closed."""
        ...

    def end(self) -> None:
        """Close the scan, whose noise is used up."""
        ...


class Comparisons(Protocol):
    """Answers the queries of one scan."""

    @property
    def is_available(self) -> bool:
        """Whether there is noise to answer further queries with."""
        ...

    @property
    def is_exhausted(self) -> bool:
        """Whether the noise is used up."""
        ...

    def compare(self, plan: Plan, query: LinearQuery, threshold: Fraction) -> Charge:
        """The row of a comparison: the existing one, or one that is answered and written now."""
        ...


class RemoteComparisons:
    """Has the service answer, which closes a scan whose noise is used up or lost."""

    is_available, is_exhausted = True, False

    def __init__(self, calls: RemoteCalls, launch: Launch) -> None:
        self._calls, self._launch = calls, launch

    def compare(self, plan: Plan, query: LinearQuery, threshold: Fraction) -> Charge:
        """The row of a comparison, which the service answers."""
        request = CompareWithThreshold(self._launch.name, plan, threshold)
        expected = COMPARISON, node_of(self._launch.id), self._launch.version, request.text, request.key, "released"
        (row,) = self._calls.run(
            request,
            ALWAYS,
            lambda rows: (
                [(one.kind, one.node, one.table_version, one.request, one.request_key, one.status) for one in rows]
                == [expected]
            ),
        )
        return row


class LocalComparisons:
    """Answers from rows and hidden noise of this process; `core` is that of the session that owns the scan."""

    def __init__(self, core: SessionCore, launch: Launch, scan: Scan) -> None:
        self._core, self._launch, self._scan, self._branch = core, launch, scan, node_of(launch.id)

    @property
    def is_available(self) -> bool:
        """Whether the hidden noise is in this process."""
        return hidden_noise(self._launch) is not None

    @property
    def is_exhausted(self) -> bool:
        """Whether the noise is used up."""
        hidden = hidden_noise(self._launch)
        return hidden is not None and hidden.core.n_remaining == 0

    def compare(self, plan: Plan, query: LinearQuery, threshold: Fraction) -> Charge:
        """The ledger row of a query: the existing one, or one that is answered and written now."""
        request, ledger = CompareWithThreshold(self._launch.name, plan, threshold), self._core.account.ledger
        identity = self._branch, self._core.version, request.key
        hidden = hidden_noise(self._launch)
        if hidden is None:
            known = ledger.by_key(*identity)
            if known is None:
                self._scan.refuse_ended()
            return known or self._refuse_without_noise()
        with hidden.lock:  # of two threads with the same query, the second must return the first one's answer
            known = ledger.by_key(*identity)
            if known is not None:
                return known
            self._scan.refuse_ended()
            self._core.tables.ready()
            before_reading()
            result = {
                "threshold": to_text(threshold),
                **run_guarded(lambda: self._answer(hidden.core, query, threshold), FAILED),
            }
            with ledger.transaction():
                self._core.account.tree.refuse_ended(self._branch, self._core.version)
                row = ledger.reserve(
                    kind=COMPARISON,
                    request_key=request.key,
                    node=self._branch,
                    table_version=self._core.version,
                    query_key=query_key(plan),
                    request=request.text,
                    loss=GDP(0),
                    result=result,
                    words=json.dumps([printable(describe_comparison(plan, result)), *[None] * 5], ensure_ascii=False),
                    cell_id=registry.current_cell(),
                )
            if hidden.core.n_remaining == 0:
                self._scan.end()
        return row

    def _refuse_without_noise(self) -> NoReturn:
        raise MechanismClosed(
            f"{self._launch.name}: its hidden noise, which is never stored, was drawn in another kernel or is lost; "
            "its answers remain free; nothing was charged; use that kernel, or launch another one under a new name"
        )

    @isolated_numeric_settings()
    def _answer(self, core: Core, query: LinearQuery, threshold: Fraction) -> dict[str, Any]:
        """Read the rows and compare; returns the released result as the ledger stores it."""
        (feature,) = query.features
        sensitivity = math.isqrt(query.l2_sensitivity_squared - 1) + 1  # the square root, rounded up
        unit = feature.unit
        with at(Stage.ADDING):
            total = int(self._core.tables.opened.sums(query)[0])
        if isinstance(core, GaussianAboveThreshold):
            comparison = core.ask(total, sensitivity=sensitivity, threshold=threshold / unit)
            width = binary_up(Fraction(fixed_radius([comparison.measurement.sigma], alpha=ALPHA)) * unit)
            return {"above": comparison.above, "value": to_text(comparison.value * unit), "half_width": width}
        answer = core.ask(total, sensitivity=sensitivity, threshold=threshold / unit)
        if answer.value is None:
            return {"above": answer.above}
        value = from_lattice(answer.value, sensitivity, threshold / unit) * unit
        width = binary_up(core.terms.value_half_width(ALPHA) * sensitivity * unit)
        return {"above": True, "value": to_text(value), "half_width": width}
