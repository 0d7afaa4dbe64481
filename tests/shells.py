"""Terminal shells of IPython for tests, which leave nothing behind."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@contextmanager
def terminal_shell(*, jedi: bool = True) -> Iterator[InteractiveShell]:
    """A shell without a database of its history, forgotten at the end of the block.

    IPython keeps every shell until the process ends, and then searches for garbage once for each of them: two minutes
    after the last test, where two hundred tests had a shell each.
    """
    quiet = Config()
    quiet.HistoryManager.enabled = False  # no database that outlives the test
    quiet.Completer.use_jedi = jedi
    quiet.InteractiveShell.colors = "nocolor"  # to colour a traceback takes as long as to make it
    shell = InteractiveShell(config=quiet)
    try:
        yield shell
    finally:
        shell.configurables.clear()
        atexit.unregister(shell.atexit_operations)
