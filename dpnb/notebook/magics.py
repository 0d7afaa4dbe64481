"""``%dpnb``: parse, ask the session, show."""

from __future__ import annotations

from IPython.core.magic import Magics, line_magic, magics_class
from IPython.display import display

from dpnb.session import live

NO_SESSION = "dpnb: no session in this kernel yet; make one with session = dpnb.Session(table, name=..., budget=...)"
USAGE = "dpnb: %dpnb takes no arguments; it shows how each session of this kernel stands"


@magics_class
class DpnbMagics(Magics):
    """The ``%dpnb`` magic."""

    @line_magic
    def dpnb(self, line: str) -> None:
        """Show how each session of this kernel stands: ``%dpnb``."""
        sessions = live.sessions()
        if line.strip():
            print(USAGE)  # noqa: T201  (a magic talks to its user)
            return
        if not sessions:
            print(NO_SESSION)  # noqa: T201  (likewise)
        for session in sessions:
            display(session)  # type: ignore[no-untyped-call]
