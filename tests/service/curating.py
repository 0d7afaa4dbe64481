"""A curator who lets run again what ran when the service was killed."""

from __future__ import annotations

from contextlib import closing

from dpnb._browser.curation import HeldState, TableState
from dpnb.remote.connect import open_channel
from dpnb.remote.deciding import send_act
from dpnb.remote.tokens import Token, origin_of
from dpnb.wire.messages import Resume


def resume_held(address: str, token: str, table: str) -> list[HeldState]:
    """Resume every charge that waits for a curator; return what was resumed, of a batch one row."""
    resumed: list[HeldState] = []
    with closing(open_channel(origin_of(address), Token(token, "token="))) as channel:
        while held := channel.get(f"tables/{table}/state", TableState).held:
            send_act(channel, table, Resume(held[0].row))
            resumed.append(held[0])
    return resumed
