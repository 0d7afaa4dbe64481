"""How fast dpnb answers, compared with pandas, polars, OpenDP and the engines: ``make bench`` writes ``RESULTS.md``.

Every part runs in processes of its own; contenders take turns within one process.  ``python tests/bench/speed.py --rows
100000 --only tables costs`` is a quick look.  With ``--kept FILE`` what was measured is kept there, and a second run
measures only what is missing, so that the parts can be measured one after the other.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from bench.measures.children import be_child  # noqa: E402
from bench.measures.parts import PARTS  # noqa: E402

RESULTS = HERE / "RESULTS.md"


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=_rows, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument(
        "--rounds", type=int, default=7, help="of which each figure is the median; slow ones have three"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="measure these parts")
    parser.add_argument("--without", nargs="*", choices=[*PARTS, "opendp"], default=[])
    parser.add_argument("--scale-rows", type=_rows, default=10**8)
    parser.add_argument("--requests", type=_rows, default=10**5, help="of the session with many requests")
    parser.add_argument("--individual-rows", type=_rows, default=10**6)
    parser.add_argument("--opendp", default=sys.executable, help="a Python that has opendp[polars]")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="on a local disk, for ledgers and files")
    parser.add_argument("--kept", type=Path, help="a file of figures, to go on from")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _rows(text: str) -> int:
    return int(float(text))


class Figures:
    """What was measured by now, kept in a file if there is one.

    Parameters
    ----------
    path : Path or None
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.found: dict[str, Any] = json.loads(path.read_text()) if path and path.exists() else {}

    def has(self, name: str) -> bool:
        """Whether it was measured."""
        return "error" not in self.found.get(name, {"error": ""})

    def measure(self, name: str, work: Callable[[], dict[str, Any]]) -> None:
        """Unless that was done."""
        if not self.has(name):
            print(f"measuring {name}", file=sys.stderr)
            self.found[name] = work()
            if self._path:
                self._path.write_text(json.dumps(self.found, indent=1))


def main() -> None:
    """Measure everything that is asked for and print or write the page."""
    asked = arguments()
    if asked.child:
        be_child(asked.child[0], json.loads(asked.child[1]))
        return
    from bench.measures.machine import machine
    from bench.page.whole import page

    kept = Figures(asked.kept)
    kept.found["machine"] = machine(asked.folder)
    for name, part in PARTS.items():
        if name in asked.only and name not in asked.without:
            start = time.perf_counter()
            part(kept, asked)
            print(f"{name}: {time.perf_counter() - start:.0f} seconds", file=sys.stderr)
    text = page(kept.found, rows=asked.rows, rounds=asked.rounds)
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
