"""How often tests of released answers reject: ``python tests/bench/hypotheses.py [--samples 1.0]``; about ten minutes.

Without a difference they should reject in 5% of samples, with one about as often as a test of the rows.  The control
are scipy's tests of the released numbers, as if these were exact.  Of each cell the share that is rejected among known
p-values, and in brackets the share that is unknown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from statistical.tested_samples import KINDS, Array, TestedSamples

MUS = (0.05, 0.2, 1.0)
SAMPLES = {300: 1000, 3_000: 400, 30_000: 100}
ONE_BY_ONE = ("independence", "coefficient", "levels")
"""Kinds of which each sample is released in a session of its own."""

EFFECT = 3.0
CONTROLS = ("two means", "two shares", "independence")


def shown(pvalues: Array) -> str:
    """The share of rejections among known p-values, and the share of unknown ones."""
    known = pvalues[~np.isnan(pvalues)]
    unknown = 1 - len(known) / len(pvalues)
    rejected = f"{100 * (known <= 0.05).mean():.1f}" if len(known) >= len(pvalues) / 10 else "-"
    return rejected + (f" ({100 * unknown:.0f})" if unknown else "")


def main() -> None:
    """Print one table for each question."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=float, default=1.0)
    more = parser.parse_args().samples
    head = "| n | test | " + " | ".join(f"mu {mu:g}" for mu in MUS) + " | no noise |\n|---:|:---|" + "---:|" * 4
    pooled: dict[str, list[Array]] = {kind: [] for kind in KINDS}
    for effect in (0.0, EFFECT):
        print(f"\neffect of {effect:g} standard errors\n\n{head}")
        for units, whole in SAMPLES.items():
            if effect and units != 3_000:
                continue
            many = TestedSamples(units, max(int(whole * more), 20), seed=1, effect=effect)
            few = TestedSamples(units, max(int(whole * more / 3), 20), seed=2, effect=effect)
            for kind in KINDS:
                samples = few if kind in ONE_BY_ONE or kind == "two medians" else many
                found = [samples.pvalues(kind, mu) for mu in MUS]
                cells = [*map(shown, found), shown(samples.without_noise(kind))]
                print(f"| {units:,} | {kind} | {' | '.join(cells)} |", flush=True)
                if not effect:
                    pooled[kind] += [one[~np.isnan(one)] for one in found if np.isnan(one).mean() < 0.5]
            for kind in () if effect else CONTROLS:
                samples = few if kind in ONE_BY_ONE else many
                cells = [shown(samples.naive(kind, mu)) for mu in MUS]
                print(f"| {units:,} | {kind}, taken as exact | {' | '.join(cells)} | |", flush=True)
    print("\npooled over settings in which most are known\n")
    for kind, parts in pooled.items():
        together = np.concatenate([*parts, np.empty(0)])
        print(f"{kind}: {100 * (together <= 0.05).mean():.1f}% of {len(together):,}")


if __name__ == "__main__":
    main()
