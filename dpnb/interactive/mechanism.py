"""What a session's interactive mechanisms share: a launch in the ledger, a state, an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any, ClassVar

from dpnb._core import registry
from dpnb._core.accountant.tree import CODES, Launch
from dpnb._core.core import SessionCore
from dpnb._core.query import Query
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb.accounting.losses import GDP, Loss
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import RequestError
from dpnb.interactive.protocol import Charged, MechanismState
from dpnb.ledger import MEMORY, Ledger
from dpnb.ledger.charge import CLOSE, digest
from dpnb.render.page import STYLE, text_or_error, with_timestamp


class SessionMechanism(NotCopyable, ABC):
    """One interactive mechanism of a session; see :class:`dpnb.interactive.InteractiveMechanism`.

    Parameters
    ----------
    launch : Launch
    core : SessionCore
        Of the session that owns it.
    """

    charged: ClassVar[Charged]
    cost_description: ClassVar[str]
    """What is paid when, in a sentence."""

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        self._launch, self._core = launch, core
        self._releases, self._account = core.releases, core.account

    @property
    def id(self) -> int:
        """Row of the ledger that launched it."""
        return self._launch.id

    @property
    def name(self) -> str:
        """Under which it was launched."""
        return self._launch.name

    @property
    def kind(self) -> str:
        """Which mechanism it is."""
        return self._launch.kind

    @property
    def state(self) -> MechanismState:
        """``open``, ``used up``, ``closed`` or ``elsewhere``."""
        launch = self._account.tree.sync()[self._launch.id]
        if self._account.tree.is_closed(launch):
            return "closed"
        return "open" if launch.continues_with(self._core.version) else "elsewhere"

    @property
    def cost(self) -> Loss:
        """What its session has paid for it so far."""
        return self._account.ledger.by_id((self._launch.id,))[0].loss

    @property
    @abstractmethod
    def summary(self) -> str:
        """How it stands, in few words."""

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Parts of it for a picture: name, share of the largest, text."""
        return []

    def close(self) -> None:
        """End it, for every kernel: it answers nothing new.  What was answered stays free; nothing is paid back.

        What was charged before and never answered, after a crash, can still be taken up.
        """
        self._end()
        self._core.changed()

    def _end(self) -> None:
        ledger, launch = self._account.ledger, self._launch
        with ledger.transaction():
            if not self._account.tree.sync()[launch.id].is_closed:
                ledger.reserve(
                    kind=CLOSE,
                    key=digest(["close", launch.id]),
                    branch=launch.node,
                    version=self._core.version,
                    question=launch.name,
                    loss=GDP(0),
                    launch={"closes": launch.id, "name": launch.name, "mechanism": CODES[launch.kind]},
                    cell=registry.current_cell(),
                )

    def to_dict(self) -> dict[str, Any]:
        """What the panel is told of it."""
        return {
            "id": str(self.id),
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "text": self.summary,
            "description": self.cost_description,
            "parts": self.parts,
        }

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r}, charged {self.charged}>"

    def __str__(self) -> str:
        """How it stands, read from the ledger."""
        return f"<{self.kind} {self.name!r}, {self.state}: {self.summary}; charged {self.charged}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else text_or_error(self))

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{escape(part['name'])}: {escape(part['text'])}</li>" for part in self.parts)
        listed = f"<ul>{rows}</ul>" if rows else ""
        return with_timestamp(
            f'<div style="{STYLE}"><b>{escape(self.name)}</b> ({escape(self.kind)}, {escape(self.state)}): '
            f"{escape(self.summary)}{listed}<div>{escape(self.cost_description)}</div></div>"
        )


def own_query(query: object, branch: str, ledger: Ledger) -> tuple[Plan, AnyView]:
    """Plan and view of a question of this very session.

    Raises
    ------
    RequestError
        It is none, or another session's.
    """
    if not isinstance(query, Query):
        raise RequestError(f"question: must be one, such as session.frame.count(); got {type(query).__name__}")
    account = query.runner.account
    same = account.ledger is ledger or account.ledger.path == ledger.path != MEMORY  # a session that was made anew
    if not same or account.root_node != branch:
        raise RequestError(
            f"{query.description}: is a question of another session, and would be paid there; ask it of the session "
            f"in "
            "which the mechanism was launched"
        )
    return query.plan, query.view
