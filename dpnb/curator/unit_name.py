"""Which privacy unit is meant by what somebody types.

A unit is found by the values that tell units apart, never by the portable integer made of them: there -5 and 5 are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from dpnb._backends.memory.prepare.times import time_name
from dpnb._plan.schema import plain

UnitType = Literal["text", "number", "time"]

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")


def names_unit(said: str, unit_type: UnitType | None = None) -> Callable[[Any], bool]:
    """Says of a value, as `unit_names` gives it, whether it is what was typed.

    Parameters
    ----------
    said : str
        A text is itself; a number, a date or a point in time may be meant too.
    unit_type : str, optional
        What it is, where it could be several.
    """
    number = _number(said) if unit_type in (None, "number") else None
    moment = _moment(said) if unit_type in (None, "time") else None
    text = said if unit_type in (None, "text") else None

    def named(value: Any) -> bool:
        try:
            value = plain(value)
            if isinstance(value, str):
                return value in (text, moment)
            if number is not None and value == number:
                return True
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return not is_number and text is not None and str(value) == text
        except Exception:  # noqa: BLE001  (an odd object: nobody can type it)
            return False

    return named


def _number(said: str) -> int | float | None:
    if not NUMBER.fullmatch(said):
        return None
    number = Decimal(said)
    # Large whole numbers are no doubles.
    return int(number) if number == number.to_integral_value() else float(said)


def _moment(said: str) -> str | None:
    try:
        return time_name(datetime.fromisoformat(said))
    except ValueError:
        return None
