"""How a session, a sub-session and a part are displayed."""

from __future__ import annotations

import math
from typing import Any

from dpnb._core.core import SessionCore
from dpnb.copying import safe_repr
from dpnb.errors import printable
from dpnb.render import sessions
from dpnb.render.connections import connection_lines
from dpnb.render.numbers import format_percent_down
from dpnb.render.page import text_or_error
from dpnb.session import snapshot


class DisplayedSession:
    """The representations of a session: one that reads no file, and the state as the ledger has it now."""

    _core: SessionCore
    _mechanisms: Any

    @safe_repr
    def __repr__(self) -> str:
        if not self._is_initialized:
            return f"<{type(self).__name__}, not opened>"
        notice = f"{self._core.notice}\n" if self._core.notice else ""
        left = self._core.account.last_headroom
        shown = (
            ""
            if left is None or math.isnan(left)
            else f"\n  {format_percent_down(left)} left when the ledger was last read"
        )
        shown += f"\n  table in {self._core.tables.engine}"
        shown += "".join(f"\n  {printable(line)}" for line in connection_lines(self._core.connection))
        return (
            f"{notice}<{type(self).__name__} {printable(self._core.name)!r}: {printable(self._core.guarantee)}{shown}>"
        )

    def __str__(self) -> str:
        """The state as the ledger has it now: gauges, filters, odometers, mechanisms."""
        return sessions.render_text(snapshot.snapshot(self, compared=True)) if self._is_initialized else repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else text_or_error(self))

    def _repr_html_(self) -> str | None:
        return sessions.render_html(snapshot.snapshot(self, compared=True)) if self._is_initialized else None

    @property
    def _is_initialized(self) -> bool:
        """Whether `__init__` finished: a debugger may also show a session whose arguments were refused."""
        return "_core" in vars(self)
