"""Every session of this process as the browser's contract describes them."""

from __future__ import annotations

from typing import Any

from dpnb.session import live, state


def sessions() -> list[dict[str, Any]]:
    """One snapshot a session, most recently used first."""
    return [state.snapshot(session) for session in live.sessions()]
