"""Calls that the service executes, with their rows in the copy of the ledger."""

from __future__ import annotations

import uuid

import msgspec

from dpnb._core import registry
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, ServiceError, ServiceUnavailable
from dpnb.progress import Stage, work
from dpnb.remote.failures import refusal
from dpnb.remote.ledger_copy import LedgerCopy
from dpnb.wire.calls import AnyCall, Request
from dpnb.wire.decoding import encode_request
from dpnb.wire.replies import Refused


class ServiceCalls(NotCopyable):
    """The service, as one session, sub-session or part uses it.

    A call without a reply, because the connection was lost or the user interrupted it, is remembered: when the same
    call is made again, the same request is sent with the same id, so that nothing is executed twice.

    Parameters
    ----------
    copy : LedgerCopy
        The copy of the ledger, to which replies add rows.
    node : str, default ""
        The node that pays.
    unanswered : dict, optional
        The requests without a reply, shared by all nodes of a session.
    """

    def __init__(self, copy: LedgerCopy, node: str = "", unanswered: dict[bytes, bytes] | None = None) -> None:
        self._copy, self._node = copy, node
        self._unanswered = {} if unanswered is None else unanswered

    def at(self, node: str) -> ServiceCalls:
        """The same service for a sub-session or a part, by its node."""
        return ServiceCalls(self._copy, node, self._unanswered)

    def run(self, call: AnyCall) -> tuple[int, ...]:
        """Have the service execute a call; return the ids of its rows, which the copy has then.

        Raises
        ------
        ServiceUnavailable
            The service cannot be reached; the call may have been charged.
        DpnbError
            The refusal of the service, as a local session would raise it.
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
            raise refusal(reply)
        if any(not 0 < number <= self._copy.ledger.count for number in reply.ids):
            raise ServiceError(
                f"{self._copy.channel.where}: answered without the rows of the request; repeating it with the same "
                "arguments uses the same charge; connect again"
            )
        return reply.ids

    def _body(self, call: AnyCall) -> bytes:
        return encode_request(
            Request(
                uuid.uuid4().hex,
                call,
                self._node,
                registry.current_cell(),
                self._copy.ledger.count,
                self._copy.pending(),
            )
        )
