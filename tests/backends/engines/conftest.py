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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.cls is None:
        return
    if "question" in metafunc.fixturenames:
        metafunc.parametrize(("question", "asking"), list(asked(metafunc.cls)))
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("mode", metafunc.cls.modes)
