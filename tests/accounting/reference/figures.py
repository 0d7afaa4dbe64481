"""Reading the reference figures, and comparing with them.

The figures were computed with 60 digits from doubles taken literally, so their arguments are fed as Fractions.  A
correct double implementation may differ by 1e-12 and by what the arguments' own rounding does to the result (`cond`),
and never on the wrong side.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpnb.accounting.exact import exact

GROUPS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "cases.json").read_text())["groups"]

# V = 0 with something released: the formulas have a value there, the odometers read 0 while nothing costs.
LEAST = Fraction(1, 10**300)


def arguments(case: dict[str, Any]) -> dict[str, Any]:
    """A case's arguments: doubles as the Fractions they are, in lists and dictionaries too; other values untouched."""
    return {name: _literal(value) for name, value in case["args"].items()}


def _literal(value: Any) -> Any:
    if isinstance(value, list):
        return [_literal(item) for item in value]
    if isinstance(value, dict):
        return {name: _literal(item) for name, item in value.items()}
    return Fraction(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def assert_reproduces(group: str, case: dict[str, Any], got: Any) -> None:
    """`got` is the expected figure, list of figures or decision, within the tolerance and on the group's side of it."""
    _assert_reproduces(got, case["expected"], GROUPS[group]["rounded"], case.get("cond", 1))


def _assert_reproduces(got: Any, expected: Any, rounded: str, cond: float) -> None:
    if isinstance(expected, list):
        assert len(got) == len(expected)
        for ours, theirs in zip(got, expected, strict=True):
            _assert_reproduces(ours, theirs, rounded, cond)
    elif isinstance(expected, dict):
        _assert_reproduces([got[name] for name in expected], list(expected.values()), rounded, cond)
    elif isinstance(expected, bool | int) or expected in ("CONTINUE", "HALT"):
        assert got == {"CONTINUE": True, "HALT": False}.get(expected, expected)
    elif expected == "inf":
        assert got == math.inf
    else:
        _assert_near(exact(got), expected, rounded, cond)


def _assert_near(value: Fraction, written: str, rounded: str, cond: float) -> None:
    truth = Fraction(written)
    assert abs(value - truth) <= abs(truth) * (Fraction(1, 10**12) + Fraction(8 * cond * 2.3e-16))
    # The figure is the double next to the truth; beyond half a unit of that the direction must be right.
    half_unit = Fraction(math.ulp(float(written))) / 2
    if rounded == "up":
        assert value >= truth - half_unit
    if rounded == "down":
        assert value <= truth + half_unit
