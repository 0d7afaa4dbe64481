"""Many samples in one table, and the p-values of hypothesis tests of each, by the public API and without noise.

A sample has a Poisson number of units in four groups of equal size, a to d.  With `effect` 0 the groups have one
distribution; otherwise its mean rises by a multiple of the standard error over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import dpnb
from dpnb.ledger import MEMORY

Array = NDArray[Any]
GROUPS = ["a", "b", "c", "d"]
SCORES = [0.0, 1.0, 2.0, 3.0]


class TestedSamples:
    """Samples of a number x (standard deviation 1, bounds 2 to 10), a condition b (30%) and a category c."""

    __test__ = False

    def __init__(self, units: int, count: int, seed: int, effect: float = 0.0) -> None:
        chance = np.random.default_rng(seed)
        self.units, self.count = units, count
        sizes = chance.poisson(units, count)
        rows = int(sizes.sum())
        group = chance.integers(0, 4, rows)
        lift = effect / math.sqrt(units) * (group - 1.5) / 1.118  # of which the standard deviation is 1 over sqrt(n)
        x = np.clip(6 + chance.normal(0, 1, rows) + lift, 2, 10)
        b = chance.random(rows) < np.clip(0.3 + lift * 0.4583, 0, 1)
        c = np.where(chance.random(rows) < np.clip(0.5 - lift * 0.5, 0, 1), 0, chance.integers(1, 3, rows))
        self.table = pd.DataFrame(
            {
                "s": np.repeat(np.arange(count), sizes),
                "g": np.array(GROUPS)[group],
                "arm": np.array(["new", "old"])[group // 2],
                "c": np.array(["u", "v", "w"])[c],
                "x": x,
                "z": np.clip(chance.normal(0, 1, rows), -4, 4),
                "b": b.astype(int),
            }
        )
        self.seed = seed
        self._ends = np.concatenate([[0], np.cumsum(sizes)])
        self._frames: dict[float, Any] = {}
        self._fits: dict[float, list[Any]] = {}

    def frame(self, mu: float) -> Any:
        """The table in a session for each mu: a further release of a query would refine it."""
        if mu not in self._frames:
            self._frames[mu] = self._session(self.table, self.seed).frame
        return self._frames[mu]

    def of_sample(self, s: int) -> Any:
        """The rows of one sample, in a session of their own."""
        rows = self.table.iloc[self._ends[s] : self._ends[s + 1]]
        return self._session(rows, self.seed + s).frame

    def _session(self, rows: pd.DataFrame, seed: int) -> dpnb.Session:
        return dpnb.Session(
            rows,
            name="samples",
            budget=dpnb.Budget.gdp(1e6),
            schema={
                "s": dpnb.Categories(list(range(self.count))),
                "g": dpnb.Categories(GROUPS),
                "arm": dpnb.Categories(["new", "old"]),
                "c": dpnb.Categories(["u", "v", "w"]),
                "x": dpnb.Bounded(2, 10),
                "z": dpnb.Bounded(-4, 4),
                "b": dpnb.Bounded(0, 1, integer=True),
            },
            ledger=MEMORY,
            not_private_test_seed=seed,
        )

    # --- by the public API -----------------------------------------------------------------------------------------

    def _each(self, answer: Any, keys: list[str], **options: Any) -> Array:
        return np.array([answer.test(groups=[(s, key) for key in keys], **options).pvalue for s in range(self.count)])

    def pvalues(self, kind: str, mu: float) -> Array:
        """The p-values of one test of each sample, NaN where it is unknown."""
        frame = self.frame(mu)
        by_arm, by_group = frame.groupby(["s", "arm"]), frame.groupby(["s", "g"])
        if kind == "two means":
            return self._each(by_arm["x"].mean(population=True).release(mu=mu), ["new", "old"])
        if kind == "two shares":
            return self._each(by_arm["b"].mean().release(mu=mu), ["new", "old"])
        if kind == "two medians":
            return self._each(by_arm["x"].median().release(mu=mu), ["new", "old"])
        if kind == "one mean":
            answer = frame.groupby("s")["x"].mean(population=True).release(mu=mu)
            return np.array([answer[s].test(6).pvalue for s in range(self.count)])
        if kind == "four means":
            return self._each(by_group["x"].mean(population=True).release(mu=mu), GROUPS)
        if kind == "four shares":
            return self._each(by_group["b"].mean().release(mu=mu), GROUPS)
        if kind == "four counts":
            return self._each(by_group.size().release(mu=mu), GROUPS)
        if kind == "trend of means":
            return self._each(by_group["x"].mean(population=True).release(mu=mu), GROUPS, scores=SCORES)
        if kind == "trend of shares":
            return self._each(by_group["b"].mean().release(mu=mu), GROUPS, scores=SCORES)
        if kind == "independence":
            return np.array([self.crosstab(s, mu).test().pvalue for s in range(self.count)])
        if kind == "coefficient":
            return self._regression(mu, "z")
        if kind == "levels":
            return self._regression(mu, "g")
        raise ValueError(kind)

    def crosstab(self, s: int, mu: float) -> Any:
        """The released table of g and c of one sample."""
        return self.of_sample(s).groupby(["g", "c"]).size().release(mu=mu)

    def _regression(self, mu: float, term: str) -> Array:
        if mu not in self._fits:
            queries = (self.of_sample(s).regress("x ~ z + C(g)", population=True) for s in range(self.count))
            self._fits[mu] = [query.release(mu=mu) for query in queries]
        return np.array([answer.test(term).pvalue for answer in self._fits[mu]])

    # --- without noise ---------------------------------------------------------------------------------------------

    def without_noise(self, kind: str) -> Array:
        """The p-values of the usual test of the rows themselves."""
        test = _WITHOUT[kind]
        return np.array([test(rows) for _, rows in self.table.groupby("s")])

    # --- as if there were no noise: the control --------------------------------------------------------------------

    def naive(self, kind: str, mu: float) -> Array:
        """The p-values of scipy's tests of released numbers, taken as exact; variances and sizes are the true ones."""
        if kind == "independence":
            tables = (self.crosstab(s, mu).unstack().estimate.to_numpy() for s in range(self.count))
            return np.array([_chi2(np.maximum(table, 0.5)) for table in tables])
        column = {"two means": "x", "two shares": "b"}[kind]
        means = self.frame(mu).groupby(["s", "arm"])[column].mean().release(mu=mu)
        found = means.arrays.value.reshape(self.count, 2)
        grouped = self.table.groupby(["s", "arm"])[column]
        sizes = grouped.size().to_numpy().reshape(self.count, 2)
        deviations = grouped.std().to_numpy().reshape(self.count, 2)
        return np.asarray(
            stats.ttest_ind_from_stats(
                found[:, 0], deviations[:, 0], sizes[:, 0], found[:, 1], deviations[:, 1], sizes[:, 1], equal_var=False
            ).pvalue
        )


def _chi2(table: Any) -> float:
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def _slope(y: Any, x: Any) -> float:
    return float(stats.linregress(np.asarray(x, float), np.asarray(y, float)).pvalue)


def _split(rows: pd.DataFrame, by: str, column: str) -> list[Any]:
    return [part.to_numpy(float) for _, part in rows.groupby(by)[column]]


_WITHOUT: dict[str, Callable[[pd.DataFrame], float]] = {
    "two means": lambda rows: float(stats.ttest_ind(*_split(rows, "arm", "x"), equal_var=False).pvalue),
    "two shares": lambda rows: _chi2(pd.crosstab(rows["arm"], rows["b"])),
    "two medians": lambda rows: float(stats.mannwhitneyu(*_split(rows, "arm", "x")).pvalue),
    "one mean": lambda rows: float(stats.ttest_1samp(rows["x"], 6).pvalue),
    "four means": lambda rows: float(stats.f_oneway(*_split(rows, "g", "x")).pvalue),
    "four shares": lambda rows: _chi2(pd.crosstab(rows["g"], rows["b"])),
    "four counts": lambda rows: float(stats.chisquare(rows["g"].value_counts()).pvalue),
    "trend of means": lambda rows: _slope(rows["x"], rows["g"].map(dict(zip(GROUPS, SCORES, strict=True)))),
    "trend of shares": lambda rows: _slope(rows["b"], rows["g"].map(dict(zip(GROUPS, SCORES, strict=True)))),
    "independence": lambda rows: _chi2(pd.crosstab(rows["g"], rows["c"])),
    "coefficient": lambda rows: _slope(rows["x"], rows["z"]),
    "levels": lambda rows: float(stats.f_oneway(*_split(rows, "g", "x")).pvalue),
}
KINDS = tuple(_WITHOUT)
