"""Launches, closes and comparisons of interactive mechanisms, as kinds of requests.

What is launched comes from a method or from a client.  Everything that is charged or derived is computed from it by the
functions that serve the methods.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from fractions import Fraction
from functools import partial
from typing import Any

from dpnb._backends.worker_thread import isolated_numeric_settings, run_guarded
from dpnb._core import open_sessions
from dpnb._core.accountant.admission import admit_launch
from dpnb._core.accountant.tree import ABOVE_THRESHOLD, KINDS, Launch
from dpnb._core.core import SessionCore
from dpnb._core.execution.executor import Kind, PricedRow
from dpnb._core.history.words import describe_comparison
from dpnb._plan.identity import query_key
from dpnb._plan.plan import Plan
from dpnb._request import (
    ALWAYS,
    CloseMechanism,
    CompareWithThreshold,
    Conditions,
    DelegateBudget,
    DescendGradient,
    LaunchMechanism,
    PartitionTable,
    ReduceNoise,
    ScanThreshold,
)
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import binary_up, to_text
from dpnb.accounting.grid import capped_up
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import DpnbError, MechanismClosed, RequestError, printable
from dpnb.interactive.above_threshold import from_lattice
from dpnb.interactive.descent import descent_request
from dpnb.interactive.gaussian_scan import GaussianAboveThreshold
from dpnb.interactive.mechanism import LaunchRequest
from dpnb.interactive.noise_reduction import noise_reduction_request
from dpnb.interactive.scan import discard_hidden_noise, hidden_noise, keep_hidden_noise
from dpnb.interactive.scan_options import ALPHA, Core, scan_from, scan_request
from dpnb.interactive.sub_session import partition_request, sub_session_request
from dpnb.ledger import Charge, node_of
from dpnb.ledger.charge import CLOSE, COMPARISON, LAUNCH, unique_key
from dpnb.progress import Stage, at

FAILED = "the query failed before it was answered; nothing was released, and the mechanism can be queried again"


class LaunchKind(Kind[LaunchMechanism]):
    """Launches in one session; a launch is identified by its name."""

    code, reads_rows = LAUNCH, False

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core.pricer)
        self._core = core

    def here(self) -> list[Launch]:
        """The launches in this session, in the order of their rows."""
        launches = self.account.tree.sync().values()
        return [launch for launch in launches if launch.node == self.account.root_node]

    def named(self, name: object) -> Launch | None:
        """The launch of a name that continues with this version of the table; otherwise the newest of the name."""
        launches = [launch for launch in self.here() if launch.name == name]
        current = [launch for launch in launches if launch.continues_with(self.pricer.version)]
        best = current or launches
        return best[-1] if best else None

    def current(self, name: object) -> Launch | None:
        """The launch of a name, if there is one that continues with this version of the table."""
        known = self.named(name)
        return known if known is not None and known.continues_with(self.pricer.version) else None

    def recorded(self, request: LaunchMechanism) -> list[Charge]:
        """The row of the launch of that name, if there is one that continues with this version of the table."""
        known = self.current(request.name)
        if known is None:
            return []
        rows = self.account.ledger.by_id((known.id,))
        if rows[0].request != request.text:
            raise RequestError(
                f"{request.name}: was launched before as a {known.kind} with other arguments, and a launch is "
                "identified by its name; use the same arguments, or another name"
            )
        return rows

    def is_answer(self, request: LaunchMechanism, rows: Sequence[Charge]) -> bool:
        """Whether a row is that of the launch, which in the case of a sub-session may have another version."""
        found = [(row.kind, row.node, row.request, row.status) for row in rows]
        return found == [(self.code, self.node(request), request.text, "released")]

    def describe(self, request: LaunchMechanism) -> str:
        """The kind of mechanism and the name."""
        return f"{KINDS[type(request.mechanism)]} {request.name}"

    def price(self, request: LaunchMechanism, conditions: Conditions) -> list[PricedRow]:
        """What the mechanism is charged at launch, with the values that are fixed then, and its hidden noise."""
        launch = launch_request(self._core, self.current(request.name), request)
        loss = capped_up(launch.loss, self.account.filter)
        counted = self.admitted(launch, loss)
        charged = self.account.guarantee.initial_filter.recorded_charge(loss, counted)
        resolved, undo = dict(launch.resolved), None
        if launch.draw is not None:
            # Only for a launch that is recorded: words of a seeded source that a repeated one used would change all
            # later answers.
            token = resolved["noise_token"] = keep_hidden_noise(launch.draw(self._core.source))
            undo = partial(discard_hidden_noise, token)
        columns = {
            "query_key": request.name,
            "loss": loss,
            "charged": charged,
            "launch": resolved,
        }
        return [PricedRow(request, request.key, columns, undo=undo)]

    def admitted(self, launch: LaunchRequest, loss: Loss) -> Loss:
        """What the filter counts; refuses a launch that is not allowed or does not fit.  Call in the transaction."""
        if loss:
            self.refuse_if_individual(launch)
        obstacle = self.account.filter.interleaving_obstacle
        if obstacle is not None:
            raise RequestError(f"{launch.title}: {obstacle}")
        return admit_launch(self.account, launch.title, loss) if loss else loss

    def refuse_if_individual(self, launch: LaunchRequest) -> None:
        """Refuse a charge at launch to every unit under individual accounting."""
        if self.account.individual:
            raise RequestError(
                f"{launch.title}: would charge every unit at launch, including those that no query in it uses; under "
                "accounting='individual' release the queries themselves, which charge only the units they use"
            )


class CloseKind(Kind[CloseMechanism]):
    """Closes of the mechanisms of one session; free, also when the budget is frozen."""

    code, reads_rows = CLOSE, False

    def __init__(self, launches: LaunchKind) -> None:
        super().__init__(launches.pricer)
        self._launches = launches

    def launch(self, request: CloseMechanism) -> Launch:
        """The launch that is closed."""
        found = self._launches.named(request.name)
        if found is None:
            raise RequestError("launch: must be a mechanism of this session; got another name")
        return found

    def recorded(self, request: CloseMechanism) -> list[Charge]:
        """The row of its close, if it is closed."""
        closed_by = self.launch(request).closed_by
        return [] if closed_by is None else self.account.ledger.by_id((closed_by,))

    def refuse_ended(self, request: CloseMechanism, conditions: Conditions) -> None:
        """Nothing ends what closes a mechanism."""

    def price(self, request: CloseMechanism, conditions: Conditions) -> list[PricedRow]:
        """Nothing."""
        columns = columns_of_close(self.launch(request))
        del columns["request"]
        return [PricedRow(request, unique_key(), columns)]

    def is_answer(self, request: CloseMechanism, rows: Sequence[Charge]) -> bool:
        """Whether a row is that of the close."""
        return [(row.request, row.id) for row in rows] == [(request.text, self.launch(request).closed_by)]


def columns_of_close(launch: Launch) -> dict[str, Any]:
    """The columns of the row that closes a mechanism, beside its place."""
    return {
        "query_key": launch.name,
        "request": CloseMechanism(launch.name).text,
        "loss": GDP(0),
        "launch": {"closes": launch.id, "kind": launch.kind},
    }


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
        open_sessions.before_reading()
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


# --- from the struct to what it costs ---------------------------------------------------------------------------------


def launch_request(core: SessionCore, known: Launch | None, request: LaunchMechanism) -> LaunchRequest:
    """The request to launch a mechanism.

    `core` is that of the session in which it is launched, `known` the earlier launch of that name.  A mechanism that no
    method of a session launches so raises `RequestError`; otherwise the errors are those of the method.
    """
    found = _launch_request(core, known, request)
    if found.stored != request:
        raise RequestError(
            f"launch: the arguments must be those that a session stores for a launch of the kind "
            f"{KINDS[type(request.mechanism)]!r}; got others; use the version of dpnb that the service uses"
        )
    return found


def _launch_request(core: SessionCore, known: Launch | None, request: LaunchMechanism) -> LaunchRequest:
    name = request.name
    match request.mechanism:
        case PartitionTable(source, by, limit):
            return partition_request(core, by, name, source, limit)
        case DelegateBudget(filter_, budget, share):
            amount = None if budget is None else _budget(budget)
            return sub_session_request(core, known, name, filter_, amount, share=share)
        case ScanThreshold() as one:
            scan = one.threshold, one.epsilon, one.max_positives, one.monotonic, one.return_values
            return scan_request(core.account.filter, name, scan_from(*scan, one.mu, one.max_queries))
        case ReduceNoise(plan, view, initial, most):
            core.check(plan, view)
            return noise_reduction_request(core, lambda _: known, plan, view, name, initial, most)
        case DescendGradient() as one:
            return descent_request(core, one.rows, one.model, one.terms, name, one)


def _budget(stored: dict[str, str]) -> Budget:
    with suppress(KeyError, TypeError, ValueError, DpnbError):
        return Budget.from_json(stored)
    raise RequestError("delegate: the budget must be as dpnb.Budget.to_json writes it; got another one")
