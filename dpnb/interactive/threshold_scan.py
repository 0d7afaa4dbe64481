"""A stream of questions against a threshold: the sparse vector technique, tied to a session.

The hidden noise lives in this process alone, under a token that the launch in the ledger names.  A kernel that knows
the token's noise can go on asking, also through a session that was made anew; any other can read what was answered.
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
from dpnb.accounting.exact import Number, from_text, to_text
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.errors import MechanismClosed, PlanError, RequestError
from dpnb.interactive.above_threshold import from_lattice
from dpnb.interactive.gaussian_scan import GaussianAboveThreshold
from dpnb.interactive.mechanism import SessionMechanism, own_query
from dpnb.interactive.protocol import Charged, MechanismState
from dpnb.interactive.threshold_options import ALPHA, Core, ThresholdScanParameters, checked_threshold, hits_words
from dpnb.ledger import Charge, node_of
from dpnb.ledger.charge import COMPARISON, digest
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.progress import Stage, at, work
from dpnb.render.numbers import format_cost_up
from dpnb.results.threshold import ThresholdResult

FAILED = "the question failed before it was answered; nothing was released, and the mechanism can go on"


class _HiddenNoise(NamedTuple):
    core: Core
    lock: threading.RLock


_hidden: dict[tuple[int, str], _HiddenNoise] = {}
"""By process and token.  A forked process finds nothing: the same noise must not answer in two places."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hidden.clear)


def draw_hidden_noise(terms: ThresholdScanParameters, source: NoiseSource) -> str:
    """Draw hidden noise for a launch, so that it is there before anybody can find the launch; the token of it."""
    token = secrets.token_hex(16)
    _hidden[_place(token)] = _HiddenNoise(terms.begin(source), threading.RLock())
    return token


def discard_hidden_noise(token: str) -> None:
    """Throw the noise of a token away."""
    _hidden.pop(_place(token), None)


def _place(token: str) -> tuple[int, str]:
    return os.getpid(), token


class ThresholdScan(SessionMechanism):
    """Questions against a threshold; see :meth:`Session.above_threshold`.

    Parameters
    ----------
    launch : Launch
    core : SessionCore
    """

    charged: ClassVar[Charged] = "at launch"

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        self._terms = ThresholdScanParameters.from_json(dict(launch.details["arguments"]))
        self._branch = node_of(launch.id)
        self._counted = (0, 0, 0)  # the last row that was counted, and how many answers and hits up to it
        self._key = _place(str(launch.details["resolved"]["noise_token"]))

    @property
    def cost_description(self) -> str:  # type: ignore[override]
        """What is paid when, in a sentence."""
        line = f"Counts and sums against {float(self._terms.threshold):g}, paid for at launch"
        if self._terms.laplace is None:
            return f"{line} for {self._terms.questions} questions, with Gaussian noise."
        return f"{line}, until {hits_words(self._terms.laplace.max_positives)} above; answers below cost nothing more."

    @property
    def answers(self) -> list[ThresholdResult]:
        """What was answered so far, in any kernel; free."""
        return [self._crossing(row) for row in self._account.ledger.of_node(self._branch)]

    @property
    def state(self) -> MechanismState:
        """``open``, ``used up``, ``closed`` or ``elsewhere``."""
        asked, hits = self._so_far()
        hidden = _hidden.get(self._key)
        most = self._terms.questions if self._terms.laplace is None else self._terms.laplace.max_positives
        if (asked if self._terms.laplace is None else hits) >= (most or 1) or (hidden and hidden.core.n_remaining == 0):
            return "used up"
        own = super().state
        return "elsewhere" if own == "open" and hidden is None else own

    def _so_far(self) -> tuple[int, int]:
        """How many questions were answered, and how many of them were above."""
        ledger = self._account.ledger
        with ledger.lock.checked():
            for row in ledger.of_node(self._branch, after=self._counted[0]):
                _, asked, hits = self._counted
                self._counted = row.id, asked + 1, hits + bool(row.result and row.result["above"])
            return self._counted[1:]

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        asked, hits = self._so_far()
        count = f"{asked} question{'s' if asked != 1 else ''}"
        of = f"{hits} above" if self._terms.laplace is None else f"{hits} of {self._terms.laplace.max_positives} hits"
        return f"{of}, {count}; {format_cost_up(self._terms.loss)}"

    def ask(self, query: Query, threshold: Number | None = None) -> ThresholdResult:
        """Whether a count or sum is above the threshold; the same question again gives the same answer, free.

        Parameters
        ----------
        query : Query
            Of the session in which it was launched, with one number: a count, a number of units, or a sum.
        threshold : Number, optional
            In the answer's units; that of the launch if left out.

        Raises
        ------
        RequestError, PlanError
            It is no such question.
        MechanismClosed
            It is closed or used up, or its noise was drawn in another kernel.
        ExecutionError
            It failed; nothing was released.
        """
        plan, view = own_query(query, self._launch.node, self._account.ledger)
        compiled = self._compiled(plan, view)
        line = self._terms.threshold if threshold is None else checked_threshold(threshold)
        try:
            with work(Stage.CHARGING):
                row = self._answered(plan, compiled, line)
        except MechanismClosed as error:
            self._releases.refused(describe_plan(plan, PlainView()), error)
            raise
        self._releases.log.note_request(row, registry.current_cell())
        self._core.changed()
        return self._crossing(row)

    def _answered(self, plan: Plan, query: LinearQuery, line: Fraction) -> Charge:
        """The row of a question: found, or answered and written."""
        text, request, ledger = plan.to_json(), json.dumps({"threshold": to_text(line)}), self._account.ledger
        key = digest([self._core.version, self._branch, text, request])
        hidden = _hidden.get(self._key)
        if hidden is None:
            known = ledger.by_request_key(key)
            if known is None:
                self._refuse_ended()
            return known or self._gone()
        with hidden.lock:  # of two threads that ask the same the second must find the first one's answer
            known = ledger.by_request_key(key)
            if known is not None:
                return known
            self._refuse_ended()
            self._core.tables.ready()
            said = {"threshold": to_text(line), **run_guarded(lambda: self._answer(hidden.core, query, line), FAILED)}
            with ledger.transaction():
                self._account.tree.refuse_ended(self._branch, self._core.version)
                row = ledger.reserve(
                    kind=COMPARISON,
                    key=key,
                    branch=self._branch,
                    version=self._core.version,
                    question=query_key(plan),
                    plan=text,
                    request=request,
                    loss=GDP(0),
                    said=said,
                    cell=registry.current_cell(),
                )
            if hidden.core.n_remaining == 0:
                self._end()
        return row

    def _end(self) -> None:
        super()._end()
        _hidden.pop(self._key, None)

    def _gone(self) -> NoReturn:
        raise MechanismClosed(
            f"{self.name}: its hidden noise was drawn in another kernel, or is gone with it, and is never stored; what "
            "it answered stays free; nothing was charged; ask there, or launch another one under a new name"
        )

    def _refuse_ended(self) -> None:
        if self.state == "used up":
            raise MechanismClosed(
                f"{self.name}: is used up: {self.summary}; nothing was charged; launch another one under a new name, "
                "which costs anew"
            )
        self._account.tree.refuse_ended(self._branch, self._core.version)

    def _compiled(self, plan: Plan, view: object) -> LinearQuery:
        if (
            not isinstance(view, PlainView)
            or not isinstance(plan.aggregation, Count | CountUnits | Sum)
            or plan.group_by
        ):
            raise PlanError(
                f"{describe_plan(plan, PlainView())}: only one count, number of units or sum can be compared with a "
                "threshold; of groups ask each by itself, and whether a mean is above t as whether the sum of x - t is "
                "above 0"
            )
        if self._terms.laplace is not None and self._terms.laplace.monotonic and isinstance(plan.aggregation, Sum):
            raise RequestError(
                f"{self.name}: was launched with monotonic=True, for questions that a unit can only make larger; got "
                f"the {plan.words}"
            )
        return self._core.tables.compile(plan)

    @isolated_numeric_settings()
    def _answer(self, core: Core, query: LinearQuery, line: Fraction) -> dict[str, Any]:
        """Read the rows and compare: what is released, as the ledger keeps it."""
        (feature,) = query.features
        sensitivity = math.isqrt(query.l2_sensitivity_squared - 1) + 1  # of one number its length, rounded up
        unit = feature.unit
        with at(Stage.ADDING):
            total = int(self._core.tables.opened.sums(query)[0])
        if isinstance(core, GaussianAboveThreshold):
            reading = core.ask(total, sensitivity=sensitivity, threshold=line / unit)
            width = fixed_radius([reading.measurement.sigma], alpha=ALPHA) * float(unit)
            return {"above": reading.above, "value": to_text(reading.value * unit), "half_width": width}
        hit = core.ask(total, sensitivity=sensitivity, threshold=line / unit)
        if hit.value is None:
            return {"above": hit.above}
        value = from_lattice(hit.value, sensitivity, line / unit) * unit
        width = float(core.terms.value_half_width(ALPHA) * sensitivity * unit)
        return {"above": True, "value": to_text(value), "half_width": width}

    def _crossing(self, row: Charge) -> ThresholdResult:
        said = row.result or {}
        value = said.get("value")
        return ThresholdResult(
            describe_plan(plan_of(row), PlainView()),
            float(from_text(said["threshold"])),
            bool(said["above"]),
            None if value is None else float(from_text(value)),
            said.get("half_width"),
            float(1 - ALPHA),
            self._core.notice,
        )
