"""What an analyst's session sends: a request, with what the service needs beside it.

Everything that writes into the ledger or reads rows is such a request (`dpnb._request`).  Everything else is free
(previews, explanations, gauges, logs, combined answers): it is computed by the analyst's session from its copy of the
ledger, with the same code as in a local session, and is never sent.
"""

from __future__ import annotations

import hashlib

import msgspec

from dpnb._request import AnyRequest, Conditions, encode


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request, the body of ``POST /v3/tables/<table>/requests``.

    The same request with the same id takes up the same charge.  The service compares `head` with the hash of
    its own row: see `dpnb.ledger.shared_rows`.
    """

    id: str  # chosen by the client, unique
    request: AnyRequest
    conditions: Conditions | None = None
    node: str = ""  # of the session, sub-session or part that pays; empty for the analyst's whole session
    cell_id: str | None = None  # of the notebook cell that made the request
    after: int = 0  # number of the last row that the client has
    pending: tuple[int, ...] = ()  # numbers of earlier rows that the client has without an answer
    head: str = ""  # hash of the row `after` in the client's copy; empty for a client that keeps no copy

    def digest(self) -> str:
        """SHA-256 of what it does: its node, request and conditions.

        Which rows the client has is not part of it: a client that repeats the request may have received more of them.
        """
        return hashlib.sha256(_ENCODER.encode([self.node, self.request, self.conditions])).hexdigest()


_ENCODER = msgspec.json.Encoder(order="deterministic", enc_hook=encode)
