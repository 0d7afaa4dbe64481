"""Coverage of the intervals of a table one and of weighted statistics: ``python tests/bench/studies.py``; six minutes.

Each sample is a pair of groups of one table, so that one release answers for all of them.  Prints for each setting how
often the population interval of a difference of groups covers the difference in the population, which is 0 or known,
how many intervals are the whole range (they count as unknown, not as covering), and as the control how often the noise
interval covers it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import dpnb
from dpnb.ledger import MEMORY
from dpnb.results.tables.operators import difference

ROWS = 2_000_000
"""Rows of all samples of a setting together."""

SIZES, LOSSES = (300, 2_000, 20_000), (0.1, 0.3, 1.0)
SHAPES = {"balanced": 0.5, "1 to 4": 0.2}


def pairs(n: int, share: float, most: int, seed: int) -> tuple[pd.DataFrame, int]:
    """Samples of two groups drawn from one population, each with its own number."""
    rng = np.random.default_rng(seed)
    count = min(most, ROWS // n)
    sizes = rng.poisson(n, count)
    group = 2 * np.repeat(np.arange(count), sizes) + (rng.random(sizes.sum()) < share)
    rows = len(group)
    table = {
        "s": group,
        "normal": rng.normal(60, 10, rows).clip(20, 100),
        "skewed": rng.gamma(1, 5, rows).clip(0, 60),
        "rare": rng.random(rows) < 0.1,
        "stage": rng.choice(["a", "b", "c", "d"], rows, p=[0.4, 0.3, 0.2, 0.1]),
        "w": rng.choice([0.5, 1.0, 4.0], rows, p=[0.5, 0.3, 0.2]),
    }
    return pd.DataFrame(table), count


def session(table: pd.DataFrame, count: int, seed: int) -> dpnb.Session:
    schema = {
        "s": dpnb.Categories(list(range(2 * count))),
        "normal": dpnb.Bounded(20, 100),
        "skewed": dpnb.Bounded(0, 60),
        "rare": dpnb.Categories([False, True]),
        "stage": dpnb.Categories(["a", "b", "c", "d"]),
        "w": dpnb.Bounded(0, 4),
    }
    return dpnb.Session(
        table, name="samples", budget=dpnb.Budget.gdp(1000), schema=schema, ledger=MEMORY, not_private_test_seed=seed
    )


Found = dict[str, tuple[Any, Any, Any]]
"""For each statistic and sample: whether it is known, and whether either interval covers what is true."""


def covers(answer: Any, count: int) -> Found:
    """Of the differences of pairs of groups, which are 0 in the population; as ``answer[1] - answer[0]`` has them."""
    every, columns = range(0, 2 * count, 2), range(len(answer.outputs[1]))
    noise, population = (
        difference(arrays.take([one + 1 for one in every], columns), arrays.take(every, columns))
        for arrays in (answer.arrays, answer.population_arrays)
    )
    known = np.isfinite(population.low) & ~population.has_whole_range
    inside, control = ((arrays.low <= 0) & (arrays.high >= 0) for arrays in (population, noise))
    return {
        str(name): (known[:, at], inside[:, at], control[:, at])
        for at, name in enumerate(answer.outputs[1])
        if name != "n"  # of which the true difference is 0 only in groups of equal size
    }


def report(title: str, found: Found) -> None:
    for name, (known, inside, control) in found.items():
        if not known.any():
            print(f"{title:30} {name:18} unknown 100%", flush=True)
            continue
        covered, without = inside[known].mean(), control[known].mean()
        error = 1.96 * np.sqrt(0.95 * 0.05 / known.sum())
        print(
            f"{title:30} {name:18} {covered:6.1%} +- {error:.1%}, noise alone {without:6.1%}, "
            f"unknown {1 - known.mean():5.1%}, n {known.sum()}",
            flush=True,
        )


def table_ones() -> None:
    columns = ["normal", "skewed", "rare", "stage"]
    for n in SIZES:
        for shape, share in SHAPES.items():
            table, count = pairs(n, share, 2000, n)
            few, number = pairs(n, share, 300, n + 1)
            for mu in LOSSES:
                ask = session(table, count, n).frame.table_one(by="s", columns=columns)
                report(f"n {n:,}, {shape}, mu {mu}", covers(ask.release(mu=mu), count))
                ask = session(few, number, n).frame.table_one(by="s", columns=["skewed"], numbers="median")
                report(f"n {n:,}, {shape}, mu {mu}", covers(ask.release(mu=mu), number))


def weighted_means() -> None:
    for n in SIZES:
        table, count = pairs(n, 0.5, 2000, n + 2)
        table["s"] //= 2
        for mu in LOSSES:
            frame = session(table, count, n).frame
            for column, truth in (("normal", 60.0), ("skewed", 5.0), ("rare", 0.1)):
                of = frame.assign(rare=frame["rare"] == True).groupby("s")[column]  # noqa: E712  (a category)
                answer = of.mean(weights="w", population=True).release(mu=mu)
                noise, population = answer.arrays, answer.population_arrays
                known = np.isfinite(population.low) & ~population.has_whole_range
                inside, control = ((a.low <= truth) & (a.high >= truth) for a in (population, noise))
                report(f"n {n:,}, mu {mu}", {f"weighted {column}": (known[:count], inside[:count], control[:count])})


def weighted_regressions(times: int = 300) -> None:
    """The slope of a weighted regression whose errors have variances that depend on the weight."""
    for n in (1_000, 5_000):
        for mu in (0.5, 1.0, 3.0):
            found = []
            for seed in range(times):
                rng = np.random.default_rng(seed)
                x, w = rng.uniform(0, 10, n), rng.choice([0.5, 1.0, 4.0], n)
                y = 20 + 2 * x + rng.normal(0, 4, n) * np.sqrt(w)
                frame = dpnb.Session(
                    pd.DataFrame({"x": x, "y": y, "w": w}), name="samples", budget=dpnb.Budget.gdp(1000), ledger=MEMORY,
                    schema={"x": dpnb.Bounded(0, 10), "y": dpnb.Bounded(-20, 80), "w": dpnb.Bounded(0, 4)},
                    not_private_test_seed=seed,
                ).frame  # fmt: skip
                row = frame.regress("y ~ x", weights="w", population=True).release(mu=mu).to_pandas().iloc[1]
                ends = row[["low", "high", "population_low", "population_high"]].to_numpy(float)
                found.append((np.isfinite(ends).all(), ends[2] <= 2 <= ends[3], ends[0] <= 2 <= ends[1]))
            report(f"n {n:,}, mu {mu}", {"weighted slope": tuple(np.array(found).T)})


if __name__ == "__main__":
    table_ones()
    weighted_means()
    weighted_regressions()
