"""The privacy unit that a typed name refers to.

A unit is found by its value in the privacy unit's column, never by the portable integer derived from the value, which
is the same for -5 and 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from dpnb._backends.memory.prepare.times import time_name
from dpnb._plan.schema import plain

UnitNameType = Literal["text", "number", "time"]

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")


def names_unit(name: str, unit_type: UnitNameType | None = None) -> Callable[[Any], bool]:
    """A predicate: whether a value of the privacy unit's column is the one that was typed.

    What was typed may be a text, a number, a date or a point in time; `unit_type` is needed if it is ambiguous.
    """
    number = _number(name) if unit_type in (None, "number") else None
    moment = _moment(name) if unit_type in (None, "time") else None
    text = name if unit_type in (None, "text") else None

    def named(value: Any) -> bool:
        try:
            value = plain(value)
            if isinstance(value, str):
                return value in (text, moment)
            if number is not None and value == number:
                return True
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return not is_number and text is not None and str(value) == text
        except Exception:  # noqa: BLE001  (an arbitrary object that cannot be typed)
            return False

    return named


def _number(name: str) -> int | float | None:
    if not NUMBER.fullmatch(name):
        return None
    number = Decimal(name)
    # Large integers are not representable as doubles.
    return int(number) if number == number.to_integral_value() else float(name)


def _moment(name: str) -> str | None:
    try:
        return time_name(datetime.fromisoformat(name))
    except ValueError:
        return None
