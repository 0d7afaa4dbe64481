"""Has the service that holds the table charge and answer requests.

What the service returns is compared with what was sent, so that the row of another request is never shown as the
answer, as it could be when the rows of service and session differ.
"""

from __future__ import annotations

from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.execution.executor import Executor, Kind
from dpnb._core.execution.protocol import RemoteCalls
from dpnb._core.history.log import RequestLog
from dpnb._request import Conditions, Request
from dpnb.ledger import Charge


class RemoteExecutor(Executor):
    """Sends the requests of one session to the service; the session's ledger is a copy, to which `calls` adds rows."""

    def __init__(self, account: Accountant, version: str, log: RequestLog, *, calls: RemoteCalls) -> None:
        super().__init__(account, version, log)
        self._calls = calls

    def _run(self, kind: Kind[Any], request: Request, conditions: Conditions) -> list[Charge]:
        known = self.find(request)
        if known and kind.is_answer(request, known):
            return known
        return self._calls.run(request, conditions, lambda rows: kind.is_answer(request, rows))
