"""Calls that the service executes, with their rows in the copy of the ledger."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import msgspec

from dpnb._core import registry
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, LedgerReplaced, ServiceError, ServiceUnavailable
from dpnb.ledger import Charge
from dpnb.progress import Stage, work
from dpnb.remote.failures import refusal
from dpnb.remote.ledger_copy import LedgerCopy
from dpnb.wire.calls import AnyCall, Request
from dpnb.wire.decoding import encode_request
from dpnb.wire.replies import Refused


class ServiceCalls(NotCopyable):
    """The service, as one session, sub-session or part uses it; `node` is the one that pays.

    A call without a reply, because the connection was lost or the user interrupted it, is remembered: when the same
    call is made again, the same request is sent with the same id, so that nothing is executed twice.  All nodes of a
    session share these requests, `unanswered`.
    """

    def __init__(self, copy: LedgerCopy, node: str = "", unanswered: dict[bytes, bytes] | None = None) -> None:
        self._copy, self._node = copy, node
        self._unanswered = {} if unanswered is None else unanswered

    def at(self, node: str) -> ServiceCalls:
        """The same service for a sub-session or a part, by its node."""
        return ServiceCalls(self._copy, node, self._unanswered)

    def run(self, call: AnyCall, is_answer: Callable[[Sequence[Charge]], bool]) -> list[Charge]:
        """Have the service execute a call; return its rows, which the copy has then.

        Raises the refusal of the service as a local session would; `ServiceUnavailable` if it cannot be reached, and
        the call may have been charged; `ServiceError` if the rows are not those of this call.
        """
        self._copy.refuse_unusable()
        key = msgspec.json.encode((self._node, call), order="deterministic")
        body = self._unanswered.setdefault(key, self._body(call))
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

    def _body(self, call: AnyCall) -> bytes:
        after, head = self._copy.ledger.last
        return encode_request(
            Request(uuid.uuid4().hex, call, self._node, registry.current_cell(), after, self._copy.pending(), head)
        )
