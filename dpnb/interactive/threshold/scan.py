"""A stream of queries compared with a threshold: the sparse vector technique in a session.

The hidden noise exists only in this process, under a token that the launch in the ledger names.  A kernel that has the
token's noise can continue, also through a reopened session; any other kernel can read the earlier answers.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, NoReturn

from dpnb._backends.guard import run_guarded
from dpnb._backends.numpy_settings import isolated_numeric_settings
from dpnb._compile import LinearQuery
from dpnb._core import registry
from dpnb._core.accountant.tree import Launch
from dpnb._core.core import SessionCore
from dpnb._core.pricing.stored_request import plan_of
from dpnb._core.query import Query
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import Count, CountUnits, PlainView, Sum
from dpnb._plan.plan import Plan, describe_plan
from dpnb.accounting.exact import Number, binary_up, from_text, to_text
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.errors import MechanismClosed, PlanError, RequestError
from dpnb.interactive.mechanism import SessionMechanism, own_query
from dpnb.interactive.protocol import Charged, MechanismState
from dpnb.interactive.threshold.above_threshold import from_lattice
from dpnb.interactive.threshold.gaussian_scan import GaussianAboveThreshold
from dpnb.interactive.threshold.options import (
    ALPHA,
    Core,
    ThresholdScanParameters,
    checked_threshold,
    describe_positives,
)
from dpnb.ledger import Charge, node_of
from dpnb.ledger.charge import COMPARISON, digest
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.progress import Stage, at, work
from dpnb.results.threshold import ThresholdResult

FAILED = "the query failed before it was answered; nothing was released, and the mechanism can be queried again"


class _HiddenNoise(NamedTuple):
    core: Core
    lock: threading.RLock


_hidden: dict[tuple[int, str], _HiddenNoise] = {}
"""By process and token.  Empty in a forked process: the same noise must not answer in two processes."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hidden.clear)


def draw_hidden_noise(terms: ThresholdScanParameters, source: NoiseSource) -> str:
    """Draw the hidden noise of a launch before the launch is recorded; returns its token."""
    token = secrets.token_hex(16)
    _hidden[_noise_key(token)] = _HiddenNoise(terms.begin(source), threading.RLock())
    return token


def discard_hidden_noise(token: str) -> None:
    """Discard the noise of a token."""
    _hidden.pop(_noise_key(token), None)


def _noise_key(token: str) -> tuple[int, str]:
    return os.getpid(), token


class ThresholdScan(SessionMechanism):
    """Queries compared with a threshold; see :meth:`dpnb.Session.above_threshold`.

    Parameters
    ----------
    launch : Launch
    core : SessionCore

    Examples
    --------
    >>> scan = session.above_threshold(100, name="many", epsilon=0.2, monotonic=True)
    >>> result = scan.ask(df[df["age"] > 65].count_units())
    >>> isinstance(result.above, bool)
    True
    """

    charged: ClassVar[Charged] = "at launch"

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        self._terms = ThresholdScanParameters.from_json(dict(launch.details["arguments"]))
        self._branch = node_of(launch.id)
        self._counted = (0, 0, 0)  # the last row counted, and the numbers of answers and of positive ones up to it
        self._key = _noise_key(str(launch.details["resolved"]["noise_token"]))

    @property
    def cost_description(self) -> str:  # type: ignore[override]
        """When the mechanism is charged, and for what, in a sentence."""
        description = f"Counts and sums compared with {float(self._terms.threshold):g}, charged at launch"
        if self._terms.laplace is None:
            return f"{description} for {self._terms.max_queries} queries, with Gaussian noise."
        positives = describe_positives(self._terms.laplace.max_positives)
        return f"{description}, until {positives}; negative answers cost nothing more."

    @property
    def answers(self) -> list[ThresholdResult]:
        """The answers so far, from any kernel; free."""
        return [self._result(row) for row in self._account.ledger.of_node(self._branch)]

    @property
    def state(self) -> MechanismState:
        """``open``, ``exhausted``, ``closed`` or ``unavailable``."""
        answered, positives = self._counts()
        hidden = _hidden.get(self._key)
        limit = self._terms.max_queries if self._terms.laplace is None else self._terms.laplace.max_positives
        used = answered if self._terms.laplace is None else positives
        if used >= (limit or 1) or (hidden and hidden.core.n_remaining == 0):
            return "exhausted"
        state = super().state
        return "unavailable" if state == "open" and hidden is None else state

    def _counts(self) -> tuple[int, int]:
        """The numbers of answers and of positive answers so far."""
        ledger = self._account.ledger
        with ledger.lock.checked():
            for row in ledger.of_node(self._branch, after=self._counted[0]):
                _, answered, positives = self._counted
                self._counted = row.id, answered + 1, positives + bool(row.result and row.result["above"])
            return self._counted[1:]

    @property
    def summary(self) -> str:
        """The current status, in few words."""
        answered, positives = self._counts()
        count = "1 query" if answered == 1 else f"{answered} queries"
        laplace = self._terms.laplace
        above = f"{positives} above" if laplace is None else f"{positives} of {laplace.max_positives} positive answers"
        return f"{above}, {count}; {self._format_launch_cost()}"

    def ask(self, query: Query, threshold: Number | None = None) -> ThresholdResult:
        """Whether a count or sum is above the threshold; repeating a query returns the same answer at no cost.

        Parameters
        ----------
        query : Query
            A query of the same session with a single number: a count, a number of units, or a sum.
        threshold : Number, optional
            In the answer's units; by default that of the launch.

        Raises
        ------
        RequestError, PlanError
            It is not such a query.
        MechanismClosed
            The mechanism is closed or exhausted, or its noise was drawn in another kernel.
        ExecutionError
            The query failed; nothing was released.

        Examples
        --------
        >>> scan = session.above_threshold(100, name="many", epsilon=0.2, monotonic=True)
        >>> isinstance(scan.ask(df[df["age"] > 65].count_units()).above, bool)
        True
        """
        plan, view = own_query(query, self._launch.node, self._account.ledger)
        compiled = self._compiled(plan, view)
        checked = self._terms.threshold if threshold is None else checked_threshold(threshold)
        try:
            with work(Stage.CHARGING):
                row = self._answered(plan, compiled, checked)
        except MechanismClosed as error:
            self._releases.refused(describe_plan(plan, PlainView()), error)
            raise
        self._releases.log.note_request(row, registry.current_cell())
        self._core.changed()
        return self._result(row)

    def _answered(self, plan: Plan, query: LinearQuery, threshold: Fraction) -> Charge:
        """The ledger row of a query: the existing one, or one that is answered and written now."""
        text, request, ledger = plan.to_json(), json.dumps({"threshold": to_text(threshold)}), self._account.ledger
        key = digest([self._core.version, self._branch, text, request])
        hidden = _hidden.get(self._key)
        if hidden is None:
            known = ledger.by_request_key(key)
            if known is None:
                self._refuse_ended()
            return known or self._refuse_without_noise()
        with hidden.lock:  # of two threads with the same query, the second must return the first one's answer
            known = ledger.by_request_key(key)
            if known is not None:
                return known
            self._refuse_ended()
            self._core.tables.ready()
            result = {
                "threshold": to_text(threshold),
                **run_guarded(lambda: self._answer(hidden.core, query, threshold), FAILED),
            }
            with ledger.transaction():
                self._account.tree.refuse_ended(self._branch, self._core.version)
                row = ledger.reserve(
                    kind=COMPARISON,
                    request_key=key,
                    node=self._branch,
                    table_version=self._core.version,
                    query_key=query_key(plan),
                    plan=text,
                    arguments=request,
                    loss=GDP(0),
                    result=result,
                    cell_id=registry.current_cell(),
                )
            if hidden.core.n_remaining == 0:
                self._end()
        return row

    def _end(self) -> None:
        super()._end()
        _hidden.pop(self._key, None)

    def _refuse_without_noise(self) -> NoReturn:
        raise MechanismClosed(
            f"{self.name}: its hidden noise, which is never stored, was drawn in another kernel or is lost; its "
            "answers remain free; nothing was charged; use that kernel, or launch another one under a new name"
        )

    def _refuse_ended(self) -> None:
        if self.state == "exhausted":
            raise MechanismClosed(
                f"{self.name}: is exhausted: {self.summary}; nothing was charged; launch another one under a new name, "
                "which is charged again"
            )
        self._account.tree.refuse_ended(self._branch, self._core.version)

    def _compiled(self, plan: Plan, view: object) -> LinearQuery:
        if (
            not isinstance(view, PlainView)
            or not isinstance(plan.aggregation, Count | CountUnits | Sum)
            or plan.group_by
        ):
            raise PlanError(
                f"{describe_plan(plan, PlainView())}: only a single count, number of units or sum can be compared with "
                "a threshold; query groups one at a time, and compare the sum of x - t with 0 to compare a mean with t"
            )
        if self._terms.laplace is not None and self._terms.laplace.monotonic and isinstance(plan.aggregation, Sum):
            raise RequestError(
                f"{self.name}: was launched with monotonic=True, for queries that a unit can only increase; got the "
                f"{plan.words}; launch another one with monotonic=False"
            )
        return self._core.tables.compile(plan)

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

    def _result(self, row: Charge) -> ThresholdResult:
        result = row.result or {}
        value = result.get("value")
        return ThresholdResult(
            describe_plan(plan_of(row), PlainView()),
            float(from_text(result["threshold"])),
            bool(result["above"]),
            None if value is None else float(from_text(value)),
            result.get("half_width"),
            float(1 - ALPHA),
            self._core.notice,
        )
