"""Every engine is asked the questions that its tests name, each in a test of its own."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, values in (("question", "asked"), ("mode", "modes")):
        if name in metafunc.fixturenames and metafunc.cls is not None:
            metafunc.parametrize(name, getattr(metafunc.cls, values))
