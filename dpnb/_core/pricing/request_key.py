"""The identity of a request, by which the ledger finds the row of the identical one."""

from __future__ import annotations

from dpnb._core.pricing.pricer import QueryPricer
from dpnb.ledger import Charge
from dpnb.ledger.request_key import release_key


def request_key(pricer: QueryPricer, plan: str, request: str) -> str:
    """Identity of the request of a plan with its arguments, both as JSON, in the session of a pricer."""
    return release_key(pricer.version, pricer.account.root_node, plan, request)


def find_request(pricer: QueryPricer, key: str) -> Charge | None:
    """The row of the request with a key, if any kernel has made it before; nothing is charged or read."""
    ledger = pricer.account.ledger
    with ledger.lock.checked():  # another thread may write a row that is rolled back
        return ledger.by_request_key(key)
