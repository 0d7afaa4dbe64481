"""What auditors and curators ask a running service: who requested what, and acts about a table."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from dpnb.errors import printable
from dpnb.ledger.charge import ABOUT_BUDGET
from dpnb.remote.connect import checked_table, open_channel
from dpnb.remote.hub import hub_token
from dpnb.remote.origin import origin_of
from dpnb.remote.tokens import ask_for_token, find_token
from dpnb.wire.acts import AnyAct, AuditPage, AuditRow, PlanPage

if TYPE_CHECKING:
    from dpnb.remote.channel import Channel


def history(address: str, table: str) -> str:
    """Who requested what of a table, in words, oldest first; never what was answered.

    For the roles ``auditor``, ``curator`` and ``owner``; `address` and `table` are as for `dpnb.connect`.
    """
    lines: list[str] = []
    with closing(channel_to(address)) as channel:
        after, page = 0, AuditPage((), more=True)
        while page.more:
            page = channel.get(f"tables/{checked_table(table)}/audit", AuditPage, after=after)
            lines += map(_line, page.rows)
            after = page.rows[-1].id if page.rows else after
    return "\n".join([*lines, *_state(page)])


def plans(address: str, table: str, row: int) -> str:
    """The whole plans of a row: what was requested, with its arguments; never what was answered.

    `row` is its number as `history` shows it; the roles are those of `history`.
    """
    with closing(channel_to(address)) as channel:
        page = channel.get(f"tables/{checked_table(table)}/plan", PlanPage, row=row)
    return "\n\n".join("\n".join(map(printable, text.split("\n"))) for text in page.plans)


def change(address: str, table: str, act: AnyAct) -> str:
    """Do an act about a table, such as freezing it, and return its state in words.

    For the roles ``curator`` and ``owner``.
    """
    with closing(channel_to(address)) as channel:
        page = channel.send(f"tables/{checked_table(table)}/acts", msgspec.json.encode(act), AuditPage)
        return "\n".join(_state(page))


def channel_to(address: str) -> Channel:
    """A connection with the token of an auditor or a curator."""
    origin = origin_of(address)
    # A kept token comes first: an auditor who has one may have no such scope of JupyterHub.
    return open_channel(origin, find_token(origin) or hub_token(origin, curates=True) or ask_for_token(origin))


def _line(row: AuditRow) -> str:
    outcome = "" if row.kind in ABOUT_BUDGET else f"; {row.cost}; {row.status}"  # such rows have no cost
    return printable(f"{row.id:>6}  {row.time[:19]}Z  {row.actor or 'local'}: {row.words}{outcome}")


def _state(page: AuditPage) -> list[str]:
    frozen = "not frozen" if page.frozen is None else f"frozen: {page.frozen}"
    return [printable(page.spent), printable(frozen)]
