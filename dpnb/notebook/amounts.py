"""Budgets in few digits, for code that a reader may type again."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal


def short_amount(number: float, known: float) -> float:
    """A budget rounded down, to two significant digits of its difference from `known`."""
    above = max(number - known, number * 1e-14)
    unit = Decimal(1).scaleb(math.floor(math.log10(above)) - 1)
    return float(Decimal(repr(number)).quantize(unit, ROUND_FLOOR))
