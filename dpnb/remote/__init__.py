"""Sessions whose table is held by a curator's service: `dpnb.connect`."""

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
