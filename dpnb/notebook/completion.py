"""Tab completion for ``%dpnb``."""

from __future__ import annotations

from typing import Any

from dpnb._core.pricing.target import KINDS
from dpnb._core.query import Query
from dpnb.notebook.magics import COMMANDS, OPTIONS


def complete(shell: Any, event: Any) -> list[str]:
    """The possible completions at the cursor; for IPython's ``complete_command`` hook.

    The event has the `line` up to the cursor and the `symbol` to complete.
    """
    first, *before = event.line[: len(event.line) - len(event.symbol)].split() or [""]
    arguments = [f"{name}=" for name in (*KINDS, *OPTIONS)]
    if first == "%%dpnb":
        choices = arguments
    elif not before:
        choices = list(COMMANDS)
    elif before[0] == "what-if":
        queries = [] if before[1:] else [name for name, value in shell.user_ns.items() if _is_query(name, value)]
        choices = [*queries, *arguments]
    else:
        choices = []
    used = {word.partition("=")[0] + "=" for word in before}
    return [choice for choice in choices if choice.startswith(event.symbol) and choice not in used]


def _is_query(name: str, value: object) -> bool:
    return isinstance(value, Query) and not name.startswith("_")
