"""Comparisons with a threshold, as a kind of request: see `dpnb._core.execution.executor`."""

from __future__ import annotations

import json
import math
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any

from dpnb._backends.guard import isolated_numeric_settings, run_guarded
from dpnb._core import registry
from dpnb._core.accountant.tree import ABOVE_THRESHOLD, Launch
from dpnb._core.core import SessionCore
from dpnb._core.execution.executor import Kind, PricedRow
from dpnb._core.history.launch_text import describe_comparison
from dpnb._plan.identity import query_key
from dpnb._plan.plan import Plan
from dpnb._request import ALWAYS, CompareWithThreshold, Conditions
from dpnb.accounting.exact import binary_up, to_text
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.errors import MechanismClosed, RequestError, printable
from dpnb.interactive.launches import LaunchKind
from dpnb.interactive.threshold.above_threshold import from_lattice
from dpnb.interactive.threshold.gaussian_scan import GaussianAboveThreshold
from dpnb.interactive.threshold.hidden_noise import hidden_noise
from dpnb.interactive.threshold.options import ALPHA, Core
from dpnb.ledger import node_of
from dpnb.ledger.charge import COMPARISON
from dpnb.progress import Stage, at

FAILED = "the query failed before it was answered; nothing was released, and the mechanism can be queried again"


class ComparisonKind(Kind[CompareWithThreshold]):
    """Comparisons of the scans of one session, which were charged at launch."""

    code = COMPARISON

    def __init__(self, core: SessionCore, launches: LaunchKind) -> None:
        super().__init__(core.pricer)
        self._core, self._launches = core, launches

    def _scan(self, request: CompareWithThreshold) -> Launch:
        launch = self._launches.named(request.name)
        if launch is None or launch.kind != ABOVE_THRESHOLD:
            raise RequestError(f"compare: needs a launch of the kind {ABOVE_THRESHOLD!r}; got another name")
        return launch

    def node(self, request: CompareWithThreshold) -> str:
        """The node of the scan."""
        return node_of(self._scan(request).id)

    def lock(self, request: CompareWithThreshold) -> AbstractContextManager[object]:
        """The lock of the hidden noise: of two threads with the same query, the second returns the first one's row."""
        hidden = hidden_noise(self._scan(request))
        return nullcontext() if hidden is None else hidden.lock

    def refuse_ended(self, request: CompareWithThreshold, conditions: Conditions) -> None:
        """Refuse a query to a scan that is closed."""
        self.account.tree.refuse_ended(self.node(request), self.pricer.version)

    def prepare(self, request: CompareWithThreshold) -> dict[str, Any]:
        """The answer, from rows and the hidden noise; it is written in one transaction with its row."""
        launch = self._scan(request)
        hidden = hidden_noise(launch)
        self.refuse_ended(request, ALWAYS)
        if hidden is None:
            raise MechanismClosed(
                f"{launch.name}: its hidden noise, which is never stored, was drawn in another kernel or is lost; its "
                "answers remain free; nothing was charged; use that kernel, or launch another one under a new name"
            )
        if not hidden.core.n_remaining:  # another thread has used it up
            raise MechanismClosed(f"{launch.name}: is exhausted; nothing was charged; launch another one")
        registry.before_reading()
        result = {
            "threshold": to_text(request.threshold),
            **run_guarded(lambda: self._answer(hidden.core, request.plan, request.threshold), FAILED),
        }
        words = [printable(describe_comparison(request.plan, result)), *[None] * 5]
        return {"result": result, "words": json.dumps(words, ensure_ascii=False)}

    def price(self, request: CompareWithThreshold, conditions: Conditions) -> list[PricedRow]:
        """Nothing: it was paid for at launch."""
        return [PricedRow(request, request.key, {"query_key": query_key(request.plan), "loss": GDP(0)})]

    @isolated_numeric_settings()
    def _answer(self, core: Core, plan: Plan, threshold: Fraction) -> dict[str, Any]:
        """Read the rows and compare; returns the released result as the ledger stores it."""
        query = self.pricer.tables.compile(plan)
        (feature,) = query.features
        sensitivity = math.isqrt(query.l2_sensitivity_squared - 1) + 1  # the square root, rounded up
        unit = feature.unit
        with at(Stage.ADDING):
            total = int(self.pricer.tables.opened.sums(query)[0])
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
