"""How fast dpnb answers, compared with pandas, polars and OpenDP: ``make bench`` writes ``tests/bench/RESULTS.md``.

Every table has a process of its own, and so has every measurement of memory; contenders take turns within one process.
``python tests/bench/speed.py --rows 100000 --without scale many`` is a quick look.  With ``--kept FILE`` what was
measured is kept there, and a second run measures only what is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

RESULTS = HERE / "RESULTS.md"
PARTS = ("memory", "costs", "scale", "many", "opendp")
# What a process of its own can be asked for, and where that is.
CHILDREN = {
    "measured": "measures.in_memory",
    "memory": "measures.in_memory",
    "costs": "measures.costs",
    "written": "measures.scale",
    "asked": "measures.scale",
    "many": "measures.many",
}
HOURS = 3600


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=_rows, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--rounds", type=int, default=7, help="of which each figure is the median")
    parser.add_argument("--without", nargs="*", choices=PARTS, default=[])
    parser.add_argument("--scale-rows", type=_rows, default=10**8)
    parser.add_argument("--requests", type=_rows, default=10**5, help="of the session with many requests")
    parser.add_argument("--opendp", default=sys.executable, help="a Python that has opendp[polars]")
    parser.add_argument("--folder", help="on a local disk, for ledgers and the Parquet file")
    parser.add_argument("--kept", type=Path, help="a file of figures, to go on from")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _rows(text: str) -> int:
    return int(float(text))


def child(what: str, **how: Any) -> dict[str, Any]:
    """Run one function of the benchmark in a process of its own; what fails says so instead."""
    line = [sys.executable, str(Path(__file__).resolve()), "--child", what, json.dumps(how)]
    try:
        done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, timeout=3 * HOURS)
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": "not done after three hours"}
    except (subprocess.CalledProcessError, ValueError, IndexError) as error:
        return {"error": f"its process ended: {error}"[-100:]}


def _be_child(what: str, how: dict[str, Any]) -> None:
    """Answer the process that started this one."""
    work = getattr(import_module(f"bench.{CHILDREN[what]}"), what)
    try:
        said = work(**how)
    except Exception as error:  # noqa: BLE001  (a part that fails leaves the others alone)
        print(f"{what} {how}: {error!r}", file=sys.stderr)
        said = {"error": f"{type(error).__name__}: {error}"[:160]}
    print(json.dumps(said))


class Figures:
    """What was measured by now, kept in a file if there is one.

    Parameters
    ----------
    path : Path or None
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.found: dict[str, Any] = json.loads(path.read_text()) if path and path.exists() else {}

    def measure(self, name: str, work: Callable[[], dict[str, Any]]) -> None:
        """Unless that was done."""
        if "error" in self.found.get(name, {"error": ""}):
            print(f"measuring {name}", file=sys.stderr)
            self.found[name] = work()
            if self._path:
                self._path.write_text(json.dumps(self.found, indent=1))


def main() -> None:
    """Measure everything that is asked for and print or write the page."""
    asked = arguments()
    if asked.child:
        _be_child(asked.child[0], json.loads(asked.child[1]))
        return
    from bench.measures.machine import machine
    from bench.page.whole import page
    from bench.measures.questions import PEOPLE, ROWS
    from bench.measures.scale import scale

    kept, folder = Figures(asked.kept), asked.folder or tempfile.gettempdir()
    opendp = None if "opendp" in asked.without else asked.opendp
    kept.found["machine"] = machine(folder)
    for rows in asked.rows:
        for person in (False, True):
            how = {"rows": rows, "person": person, "rounds": asked.rounds, "opendp": opendp}
            kept.measure(f"table {rows} {person}", lambda how=how: child("measured", **how))
    most = max(asked.rows)
    if "memory" not in asked.without:
        for person in (False, True):
            for question in PEOPLE if person else ROWS:
                how = {"rows": most, "person": person, "question": question}
                kept.measure(f"memory {most} {person} {question}", lambda how=how: child("memory", **how))
    if "costs" not in asked.without:
        kept.measure("costs", lambda: child("costs", folder=folder))
    if "scale" not in asked.without:
        kept.measure("scale", lambda: scale(asked.scale_rows, folder, child))
    if "many" not in asked.without:
        kept.measure("many", lambda: child("many", requests=asked.requests, folder=folder))
    text = page(kept.found, rows=asked.rows, rounds=asked.rounds, scale_rows=asked.scale_rows)
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
