"""Failed logins of one peer, on any port."""

from __future__ import annotations

from collections import OrderedDict

from dpnb.copying import NotCopyable
from dpnb.service.limits import RequestRate

FAILURES_PER_MINUTE = 30
MOST_PEERS = 1000
"""Peers whose failures are counted."""


class FailedLogins(NotCopyable):
    """Counts the failed logins of each peer.

    A valid token is always accepted: it cannot be guessed, and others behind the same address must not be able to lock
    anybody out.
    """

    def __init__(self) -> None:
        self._rates: OrderedDict[str, RequestRate] = OrderedDict()

    def wait(self, peer: str) -> int:
        """Count a failed login; after how many seconds another one is answered, or 0."""
        rate = self._rates.setdefault(peer, RequestRate(FAILURES_PER_MINUTE))
        self._rates.move_to_end(peer)
        while len(self._rates) > MOST_PEERS:
            self._rates.popitem(last=False)
        return rate.wait()
