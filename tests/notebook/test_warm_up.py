"""What the extension imports when the cell that loaded it has ended."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import asyncio, json, sys
from dpnb.notebook import extension as warm_up

def loaded():
    return sorted({"pandas", "scipy", "mpmath", "dpnb.notebook.picker"} & set(sys.modules))

async def cell():
    warm_up.begin()
    before = loaded()
    while "scipy.special" not in sys.modules or "pandas" not in sys.modules:
        await asyncio.sleep(0)
    return [before, loaded()]

warm_up.begin()  # outside of a loop nothing happens
print(json.dumps(asyncio.run(cell())))
"""


def test_imports_happen_after_the_cell() -> None:
    before, after = json.loads(subprocess.check_output([sys.executable, "-c", CODE], text=True))
    assert before == []
    assert after == ["dpnb.notebook.picker", "mpmath", "pandas", "scipy"]
