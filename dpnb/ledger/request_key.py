"""Identities of requests: digests of what is requested, and of the node that pays.

A key contains the number of the launch that made the node.  An analyst's copy of a ledger numbers its rows differently,
so in the copy the key of a row is computed again from the row's columns (`renumbered_key`), and the session over the
copy finds its requests with the same code as a session over the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpnb.ledger import charge as row
from dpnb.ledger.charge import digest


def release_key(version: str, node: str, plan: str, arguments: str) -> str:
    """Identity of a release or a comparison."""
    return digest([version, node, plan, arguments])


def selection_key(version: str, node: str, plan: str, arguments: str) -> str:
    """Identity of a selection."""
    return digest(["selection", version, node, plan, arguments])


def launch_key(version: str, node: str, name: str) -> str:
    """Identity of a launch."""
    return digest(["launch", node, version, name])


def close_key(launch: int) -> str:
    """Identity of the close of a launch."""
    return digest(["close", launch])


def renumbered_key(stored: Mapping[str, Any], number: int, node: str, closes: tuple[int, int] | None) -> str:
    """The request key of a row after its launches were renumbered, as a session over the renumbered rows computes it.

    `stored` are the columns of the row before, and `number` and `node` those afterwards; for a close, `closes` is the
    launch before and afterwards.

    The key of a batch, and of an act of the curator, cannot be computed from its row; in a renumbered node it becomes a
    digest that no session looks up, so that the same batch is sent to the service again, which finds it.  The key
    before is no part of that digest, since it depends on the numbers of other analysts' rows.
    """
    key = str(stored["request_key"])
    before, after = (str(stored["node"]), 0), (node, 0)
    if closes is not None:
        before, after = (str(stored["node"]), closes[0]), (node, closes[1])
    if before == after:
        return key
    renumbered = _key(stored, *after) if _key(stored, *before) == key else None
    return digest(["renumbered", number, node]) if renumbered is None else renumbered


def _key(stored: Mapping[str, Any], node: str, closes: int) -> str | None:
    version, plan, arguments = (str(stored[name]) for name in ("table_version", "plan", "arguments"))
    match stored["kind"]:
        case row.RELEASE | row.COMPARISON:
            return release_key(version, node, plan, arguments)
        case row.SELECTION:
            return selection_key(version, node, plan, arguments)
        case row.LAUNCH:
            return launch_key(version, node, str(stored["query_key"]))
        case row.CLOSE:
            return close_key(closes)
    return None
