"""Closing an interactive mechanism: a row of the ledger, written here or by the service that keeps the ledger."""

from __future__ import annotations

from dpnb._core import registry
from dpnb._core.accountant.tree import CODES, Launch
from dpnb._core.core import SessionCore
from dpnb.accounting.losses import GDP
from dpnb.ledger.charge import CLOSE
from dpnb.ledger.request_key import close_key
from dpnb.wire.calls import CloseMechanism


def close_launch(core: SessionCore, launch: Launch) -> None:
    """Record that a mechanism of a session is closed, unless it is."""
    account = core.account
    if core.remote is not None:
        if not account.tree.sync()[launch.id].is_closed:
            core.remote.run(CloseMechanism(launch.id), lambda rows: not rows)
        return
    with account.ledger.transaction():
        if not account.tree.sync()[launch.id].is_closed:
            account.ledger.reserve(
                kind=CLOSE,
                request_key=close_key(launch.id),
                node=launch.node,
                table_version=core.version,
                query_key=launch.name,
                loss=GDP(0),
                launch={"closes": launch.id, "name": launch.name, "mechanism": CODES[launch.kind]},
                cell_id=registry.current_cell(),
            )
