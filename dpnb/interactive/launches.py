"""The launch and the close of interactive mechanisms, as kinds of requests: see `dpnb._core.execution.executor`.

What is launched comes from a method or from a client.  Everything that is charged or derived is computed from it by the
functions that serve the methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dpnb._core.accountant.admission import admit_launch
from dpnb._core.accountant.tree import KINDS, Launch
from dpnb._core.core import SessionCore
from dpnb._core.execution.executor import Kind, PricedRow
from dpnb._request import (
    CloseMechanism,
    Conditions,
    DelegateBudget,
    DescendGradient,
    LaunchMechanism,
    PartitionTable,
    ReduceNoise,
    ScanThreshold,
)
from dpnb.accounting.budget import Budget
from dpnb.accounting.grid import capped_up
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import DpnbError, RequestError
from dpnb.interactive.descent.options import descent_request
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.noise_reduction import noise_reduction_request
from dpnb.interactive.partition import partition_request_by
from dpnb.interactive.sub_session import sub_session_request
from dpnb.interactive.threshold.hidden_noise import discard_hidden_noise, keep_hidden_noise
from dpnb.interactive.threshold.options import scan_from, scan_request
from dpnb.ledger import Charge
from dpnb.ledger.charge import CLOSE, LAUNCH, unique_key


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
            return partition_request_by(core, by, name, source, limit)
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
