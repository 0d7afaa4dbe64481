"""Every engine is asked the questions that its tests name, each in a test of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contracts.engines import UNITS


def asked(tests: Any) -> Iterator[Any]:
    """Each question under the next privacy unit in turn; where wanted, the thorough level adds the other units."""
    units = list(UNITS)
    for place, question in enumerate(tests.asked):
        turn = units[place % len(units)]
        yield pytest.param(question, turn)
        for other in units:
            if tests.every_unit and other != turn:
                yield pytest.param(question, other, marks=pytest.mark.slow)


QUICK_WINDOW = 10
"""The step between the questions about values within a unit that are part of `make test`."""


def windows(tests: Any) -> Iterator[Any]:
    """Some of these questions by `make test`, the others and those under another privacy unit by `make test-all`."""
    yield pytest.param("text", max(QUICK_WINDOW, tests.every_window), None)
    if tests.every_window < QUICK_WINDOW:
        yield pytest.param("text", tests.every_window, QUICK_WINDOW, marks=pytest.mark.slow)
    yield pytest.param("whole number", tests.every_window, None, marks=pytest.mark.slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.cls is None:
        return
    if "question" in metafunc.fixturenames:
        metafunc.parametrize(("question", "asking"), list(asked(metafunc.cls)))
    if "left_out" in metafunc.fixturenames:
        metafunc.parametrize(("asking", "step", "left_out"), list(windows(metafunc.cls)))
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("mode", metafunc.cls.modes)
