"""Whether a table has the same rows whenever it is read, as far as the engine's plan of it shows.

A query may read a table more than once, and under individual accounting the charges of units are computed again from
the table.  So a plan that is random, or depends on an undefined order of rows, is refused when the session is made.
What a plan does not show cannot be refused: functions written in Python, ties in an order, the first value of a group
in polars and Spark, columns that number rows, and rows that are modified.
"""

from __future__ import annotations

from typing import Any

from dpnb._backends.lazy.engines.engine import Engine
from dpnb.errors import SchemaError


def refuse_unstable(name: str, native: Any, engine: Engine) -> None:
    """Refuse a table whose plan shows that its rows may differ between reads; the message does not quote the plan."""
    try:
        cause = engine.unstable(native)
    except Exception:  # noqa: BLE001  (a plan that cannot be inspected shows nothing)
        return
    if cause is not None:
        which = f"table {name!r}" if name else "table"
        raise SchemaError(
            f"{which}: must have the same rows whenever it is read; its plan has {cause}; write its result into a "
            "file or table once and pass that, or order every row"
        )
