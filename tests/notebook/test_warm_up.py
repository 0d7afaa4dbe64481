"""What the extension imports when the cell that loaded it has ended."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dpnb.notebook import extension

CODE = """
import asyncio, json, sys
from dpnb.notebook import extension

def loaded():
    return sorted({"anywidget", "dpnb.notebook.picker", "mpmath", "pandas", "scipy"} & set(sys.modules))

async def cell():
    extension.import_later()
    before = loaded()
    while "scipy.special" not in sys.modules or "pandas" not in sys.modules:
        await asyncio.sleep(0)
    return [before, loaded()]

extension.import_later()  # outside of a loop nothing happens
print(json.dumps(asyncio.run(cell())))
"""


def test_imports_happen_after_the_cell() -> None:
    before, after = json.loads(subprocess.check_output([sys.executable, "-c", CODE], text=True))
    assert before == []
    assert after == ["anywidget", "dpnb.notebook.picker", "mpmath", "pandas", "scipy"]


def test_extension_needs_no_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "dpnb.notebook.picker", raising=False)
    monkeypatch.delattr("dpnb.notebook.picker", raising=False)
    extension._import_picker()
    assert "dpnb.notebook.picker" not in sys.modules
