"""Seconds until dpnb is there: its import, and its extension in a notebook's kernel."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from bench.measures.turns import took

TIMES = 7
# A kernel has imported these before the first cell.
KERNEL = "import ipykernel.ipkernel; from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance()"
CODE = {
    "interpreter": "pass",
    "import": "import dpnb",
    "kernel": KERNEL,
    "extension": f"{KERNEL}; s.run_line_magic('load_ext', 'dpnb')",
}


def starts() -> dict[str, float]:
    """Median seconds of whole processes, taking turns, and what `import` and `extension` add to those without dpnb."""
    found: dict[str, list[float]] = {name: [] for name in CODE}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for number in range(TIMES + 1):
        for name, code in CODE.items():
            line = [sys.executable, "-c", code]
            seconds = took(lambda line=line: subprocess.run(line, check=True, env=environment))  # type: ignore[misc]
            if number:  # the first one writes bytecode, and reads files that the system keeps in memory from then on
                found[name].append(seconds)
    middle = {name: statistics.median(seconds) for name, seconds in found.items()}
    return {
        "interpreter": middle["interpreter"],
        "kernel": middle["kernel"],
        "import": middle["import"] - middle["interpreter"],
        "extension": middle["extension"] - middle["kernel"],
    }
