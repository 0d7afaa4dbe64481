"""``python -m soak``: kill, load, fork, interrupt and attack for long, and state what was done; in ``tests``.

It ends with an error if anything did not hold, after the other parts; the folder with the ledgers is kept then.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path

from soak.parts import PARTS

HOSTILE, ITS_SHARE = "hostile", 2 / 3
"""The part whose round is as long as its time, and how much it has of the time of all parts."""

FIGURES = ("rounds", "kills", "interrupts", "forks", "requests", "charges", "failures", "seconds")


def soak(name: str, folder: Path, seed: int, minutes: float, rounds: int | None) -> Counter[str]:
    """Rounds of one part until the time is over or the number of rounds is reached; one that has begun is finished."""
    done: Counter[str] = Counter()
    part = partial(PARTS[name], minutes=minutes) if name == HOSTILE else PARTS[name]
    began = time.monotonic()
    for number in count():
        if number >= rounds if rounds is not None else time.monotonic() - began >= 60 * minutes:
            break
        here = folder / f"{name}-{number}"
        here.mkdir()
        done["rounds"] += 1
        try:
            did = part(here, random.Random(f"{seed} {name} {number}"))
        except Exception:  # noqa: BLE001  (the other rounds go on)
            done["failures"] += 1
            print(f"{name}, round {number} of seed {seed}; its ledgers are in {here}:", file=sys.stderr)
            traceback.print_exc()
        else:
            done += did
            if did["failures"]:  # which it has printed
                print(f"{name}, round {number} of seed {seed}; all of it is in {here}", file=sys.stderr)
            else:
                shutil.rmtree(here)
        done["seconds"] = round(time.monotonic() - began)
        print(f"{name}: {line(done)}", flush=True)
    return done


def shares(names: list[str]) -> dict[str, float]:
    """Which part of the time each part has."""
    its = ITS_SHARE if HOSTILE in names else 0.0
    others = len(names) - (HOSTILE in names)
    return {name: (its if others else 1.0) if name == HOSTILE else (1 - its) / others for name in names}


def line(done: Counter[str]) -> str:
    return ", ".join(f"{done[figure]:,} {figure}" for figure in FIGURES if done[figure])


def table(found: dict[str, Counter[str]]) -> str:
    rows = [("part", *FIGURES)]
    rows += [(name, *(f"{done[figure]:,}" for figure in FIGURES)) for name, done in found.items()]
    return "\n".join("".join(f"{cell:>12}" for cell in row) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="of all parts together (default 60)")
    parser.add_argument("--rounds", type=int, help="of each part, however long they take")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts alone")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dpnb-soak-"))
    found: dict[str, Counter[str]] = {}
    try:
        for name, share in shares(given.only).items():
            found[name] = soak(name, folder, given.seed, given.minutes * share, given.rounds)
    finally:
        print(table(found))
        if not any(done["failures"] for done in found.values()):
            shutil.rmtree(folder)
    return 1 if any(done["failures"] for done in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
