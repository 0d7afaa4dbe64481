"""The scripts of `.ci`, for tests of them: none is part of a package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[1] / ".ci"


def loaded(name: str) -> ModuleType:
    """A script as a module of the test's own, in which it may change what it likes."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
