"""A stream of queries compared with a threshold, and its hidden noise.

A stream of queries compared with a threshold, and its hidden noise.

The hidden noise of above-threshold scans, which exists in one process only and is never stored.

It is kept under a token that the launch in the ledger names.  A kernel that has the token's noise can continue, also
through a reopened session; any other kernel can read the earlier answers.
"""

from __future__ import annotations

import os
import secrets
import threading
from fractions import Fraction
from typing import ClassVar, NamedTuple

from dpnb._core.accountant.tree import Launch
from dpnb._core.core import SessionCore
from dpnb._core.pricing.query_state import plan_of
from dpnb._plan.measurements import Count, CountUnits, PlainView, Sum
from dpnb._plan.plan import Plan, describe_plan
from dpnb._request import CompareWithThreshold, ScanThreshold
from dpnb.accounting.exact import Number, from_text
from dpnb.errors import MechanismClosed, PlanError, RequestError
from dpnb.interactive.mechanism import Charged, MechanismState, SessionMechanism, own_query
from dpnb.interactive.scan_options import ALPHA, Core, ThresholdScanParameters, checked_threshold, describe_positives
from dpnb.ledger import Charge, node_of
from dpnb.progress import Stage, work
from dpnb.query.query import Query
from dpnb.results.tables.intervals import ThresholdResult


class HiddenNoise(NamedTuple):
    """The hidden noise of a launch, and the lock under which it answers."""

    core: Core
    lock: threading.RLock


_hidden: dict[tuple[int, str], HiddenNoise] = {}
"""By process and token.  Empty in a forked process: the same noise must not answer in two processes."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hidden.clear)


def keep_hidden_noise(core: Core) -> str:
    """Keep the hidden noise of a launch; returns its token, which the launch's row in the ledger names."""
    token = secrets.token_hex(16)
    _hidden[_noise_key(token)] = HiddenNoise(core, threading.RLock())
    return token


def discard_hidden_noise(token: str) -> None:
    """Discard the noise of a token."""
    _hidden.pop(_noise_key(token), None)


def hidden_noise(launch: Launch) -> HiddenNoise | None:
    """The noise of a launch; None if it was drawn in another process or is lost."""
    return _hidden.get(_noise_key(str(launch.resolved["noise_token"])))


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
        if not isinstance(launch.mechanism, ScanThreshold):  # never: its kind is that of a scan
            raise TypeError(launch.kind)
        self._terms = ThresholdScanParameters(launch.mechanism, int(launch.resolved.get("thresholds", 1)))
        self._branch = node_of(launch.id)
        self._counted = (0, 0, 0)  # the last row counted, and the numbers of answers and of positive ones up to it

    @property
    def cost_description(self) -> str:  # type: ignore[override]
        """When the mechanism is charged, and for what, in a sentence."""
        description = f"Counts and sums compared with {float(self._terms.scan.threshold):g}, charged at launch"
        if self._terms.laplace is None:
            return f"{description} for {self._terms.scan.max_queries} queries, with Gaussian noise."
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
        limit = self._terms.scan.max_queries if self._terms.laplace is None else self._terms.laplace.max_positives
        used = answered if self._terms.laplace is None else positives
        hidden = hidden_noise(self._launch)
        if used >= (limit or 1) or (hidden is not None and hidden.core.n_remaining == 0):
            return "exhausted"
        state = super().state
        return "unavailable" if state == "open" and hidden is None and self._core.remote is None else state

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
        checked = self._terms.scan.threshold if threshold is None else checked_threshold(threshold)
        return self._result(self.compare(plan, view, checked))

    def compare(self, plan: Plan, view: object, threshold: Fraction) -> Charge:
        """The row of a comparison; see `ask`.

        Parameters
        ----------
        plan : Plan
            The count or sum.
        view : View
            What of its answer is compared.
        threshold : Fraction
            In the answer's units.
        """
        self._check(plan, view)
        request = CompareWithThreshold(self.name, plan, threshold)
        try:
            if self._core.executor.kinds[CompareWithThreshold].node(request) != self._branch:
                raise MechanismClosed(
                    f"{self.name}: was launched for another version of the table, and again under this name for this "
                    "one; nothing was charged; use the new one, session.mechanisms[...]"
                )
            if not self._core.executor.find(request):
                self.refuse_ended()
            with work(Stage.CHARGING):
                (row,) = self._core.executor.run(request)
        except MechanismClosed as error:
            self._core.executor.refused(describe_plan(plan, PlainView()), error)
            raise
        hidden = hidden_noise(self._launch)
        if hidden is not None and hidden.core.n_remaining == 0:
            self.end()
        return row

    def end(self) -> None:
        """Close it; the noise is discarded."""
        super().end()
        discard_hidden_noise(str(self._launch.resolved["noise_token"]))

    def refuse_ended(self) -> None:
        """Refuse a new query if it is exhausted or closed.

        Raises
        ------
        MechanismClosed
        """
        if self.state == "exhausted":
            raise MechanismClosed(
                f"{self.name}: is exhausted: {self.summary}; nothing was charged; launch another one under a new name, "
                "which is charged again"
            )
        self._account.tree.refuse_ended(self._branch, self._core.version)

    def _check(self, plan: Plan, view: object) -> None:
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
        self._core.tables.compile(plan)

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
