"""Sessions whose table is held by a curator's service: `dpnb.connect`.

``connect``   opens a session on a table of a service
``session``   the session, and the calls that the service executes for it
``origin``    the address of a service
``tokens``    access tokens: where they are found and kept
``hub``       tokens that JupyterHub makes for the service
``channel``   requests and replies over HTTP, and what failed replies mean
``events``    the copy of the ledger, and a thread that follows changes which other kernels make
``commands``  what auditors and curators do in a terminal; ``deciding`` about requests, ``people`` about analysts
"""

from typing import TYPE_CHECKING, Any

from dpnb.remote.connect import connect

if TYPE_CHECKING:
    from dpnb.remote.session import RemoteSession

__all__ = ["RemoteSession", "connect"]


def __getattr__(name: str) -> Any:
    """`RemoteSession`, whose module needs httpx, which only `connect` imports."""
    if name != "RemoteSession":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpnb.remote.session import RemoteSession

    return RemoteSession
