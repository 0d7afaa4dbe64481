"""A session whose table is held by a curator's service, and the calls that the service executes for it."""

from __future__ import annotations

import hashlib
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dpnb._core import open_sessions
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.core import SessionCore
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb._request import ALWAYS, Conditions, Request
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, LedgerReplaced, ServiceError, ServiceUnavailable
from dpnb.ledger import Charge
from dpnb.ledger.declared import Declared
from dpnb.ledger.replica import ReplicaLedger
from dpnb.ledger.shared_rows import earlier_of
from dpnb.mechanisms.randomness import SystemNoiseSource
from dpnb.progress import Stage, work
from dpnb.remote.channel import MAX_SHOWN, Channel, printable, refusal, unreadable
from dpnb.remote.events import LedgerCopy, ServiceConnection
from dpnb.session.base import BaseSession
from dpnb.session.disclosure.requests import StatementScope
from dpnb.wire.decoding import encode_envelope
from dpnb.wire.limits import limit_to_send
from dpnb.wire.messages import Envelope, Refused, Table

UnansweredKey = tuple[str, str, Conditions]
"""Node, text and conditions of a request."""


class ServiceCalls(NotCopyable):
    """The service, as one session, sub-session or part uses it; `node` is the one that pays.

    A request without a reply, because the connection was lost or the user interrupted it, is remembered: when it is
    made again, the same request is sent with the same id, so that nothing is executed twice.  All nodes of a
    session share these requests, `unanswered`.
    """

    def __init__(self, copy: LedgerCopy, node: str = "", unanswered: dict[UnansweredKey, bytes] | None = None) -> None:
        self._copy, self._node = copy, node
        self._unanswered = {} if unanswered is None else unanswered

    def at(self, node: str) -> ServiceCalls:
        """The same service for a sub-session or a part, by its node."""
        return ServiceCalls(self._copy, node, self._unanswered)

    def run(
        self, request: Request, conditions: Conditions, is_answer: Callable[[Sequence[Charge]], bool]
    ) -> list[Charge]:
        """Have the service execute a request; return its rows, which the copy has then.

        Raises the refusal of the service as a local session would; `ServiceUnavailable` if it cannot be reached, and
        the request may have been charged; `ServiceError` if the rows are not those of this request.
        """
        self._copy.refuse_unusable()
        key = self._node, request.text, conditions
        body = self._unanswered.setdefault(key, self._body(request, conditions))
        try:
            with work(Stage.SERVICE):
                reply = self._copy.channel.post(f"{self._copy.path}/requests", body)
        except ServiceUnavailable:
            raise
        except DpnbError:
            self._unanswered.pop(key, None)
            raise
        self._unanswered.pop(key, None)
        self._copy.add(reply.rows)
        if isinstance(reply, Refused):
            error = refusal(reply)
            if isinstance(error, LedgerReplaced):
                self._copy.refuse(error)
            raise error
        rows = self._copy.ledger.by_id(reply.ids)
        if tuple(row.id for row in rows) != reply.ids or not is_answer(rows):
            raise ServiceError(
                f"{self._copy.channel.where}: answered with other rows than those of the request, which are not shown "
                "as its answer; if it was charged, repeating it with the same arguments uses the same charge; connect "
                "again, and tell the curator"
            )
        return rows

    def _body(self, request: Any, conditions: Conditions) -> bytes:
        after, head = self._copy.ledger.last
        if conditions.at_most is not None:
            conditions = msgspec.structs.replace(conditions, at_most=limit_to_send(conditions.at_most))
        return encode_envelope(
            Envelope(
                uuid.uuid4().hex,
                request,
                None if conditions == ALWAYS else conditions,
                self._node,
                open_sessions.current_cell(),
                after,
                self._copy.pending(),
                head,
            )
        )


# --- a session whose table is held by a curator's service -------------------------------------------------------------


class RemoteSession(BaseSession):
    """A session whose table and ledger are held by a curator's service; `dpnb.connect` opens it.

    It has the methods of `Session`.  What is free, such as previews, gauges and the log, is computed in this process
    from the declaration of the table and a copy of the analyst's own rows of the ledger; no row of the table is ever in
    this process.  What charges the budget is sent to the service.

    Parameters
    ----------
    channel : Channel
        The service.
    path : str
        Path of the table below ``/v3``.
    table : Table
        The table as the service describes it.

    Raises
    ------
    ServiceError
        If its name or version has characters that cannot be printed, or the ledger does not have the analyst's part.
    """

    def __init__(self, channel: Channel, path: str, table: Table) -> None:
        if not f"{table.name}{table.version}{table.metadata.get('session_name', '')}".isprintable():
            raise unreadable(channel.where)  # texts that are shown, which might control a terminal
        address = f"{channel.origin.text}/{table.name}"
        earlier = [(one.last, Declared(one.metadata, {})) for one in table.earlier]
        known = table.metadata, table.parameters
        ledger = ReplicaLedger(address, *known, earlier_of(earlier, *known))
        copy = LedgerCopy(channel, path, table, ledger)
        copy.fetch()
        metadata = LedgerMetadata.from_dict(table.metadata, address)
        for _, declared in ledger.earlier:  # which are read when the log is shown
            LedgerMetadata.from_dict(declared.metadata, address)
        account = Accountant.from_ledger(ledger)
        if table.part:
            part = account.tree.grants().get(table.part)
            if part is None:
                raise unreadable(channel.where)
            account = account.for_analyst(part)
        self._channel, self._copy = channel, copy
        self._rows_of = StatementScope(is_copy=True, analyst=table.analyst if table.mode == "reserved" else None)
        self._connection = ServiceConnection(copy)
        tables = metadata.tables.arranged(table.columns)
        tables.engine = printable(table.engine[:MAX_SHOWN])
        core = SessionCore(
            id=hashlib.sha256(address.encode()).hexdigest()[:16],
            name=metadata.name,
            tables=tables,
            account=account,
            version=table.version,
            public=PublicSizes(table.public_size, table.public_rows),
            source=SystemNoiseSource(),  # never drawn from: the service adds the noise
            notice=None if table.notice is None else printable(table.notice[:MAX_SHOWN]),
            remote=ServiceCalls(copy),
            connection=self._connection,
            guarantee=_guarantee(account, metadata.tables.words, table),
        )
        super().__init__(core)
        core.on_change(lambda: open_sessions.note_use(self))
        self._connection.follow(core)  # first: the page shows whether changes are followed
        open_sessions.note_use(self)
        weakref.finalize(self, channel.close)

    @property
    def address(self) -> str:
        """The address of the service."""
        return self._channel.origin.text

    def close(self) -> None:
        """Close the connection; what was received can still be read, and new requests are refused.

        Sessions that are no longer referred to are closed too.
        """
        self._connection.close()
        self._copy.close()
        self._channel.close()
        self._core.changed()


def _guarantee(account: Accountant, unit: str, table: Table) -> str | None:
    """The guarantee in words, if the budget is divided; None otherwise."""
    words = f"{account.guarantee.words}, for {unit}"
    if table.mode == "reserved":
        return f"{words}; your own part of the budget, whatever other analysts do"
    return f"{words}; of all analysts together" if table.part else None
