"""Tables over subsets of the same group levels: which to measure how precisely, and estimates that add up.

Let level i have n_i keys, and let q_A be the table of a linear query by the levels of a set A: a sum of the rows of
each combination of keys, over all rows for the empty set.  Every row is in one cell of each table, so q_B for a subset
B of A is q_A summed over the levels A - B.  Write N_S for the product of n_i over S.

Table A is measured with independent noise of variance 1/p_A in each cell; p_A is its *precision* (0: not measured).

**Estimates.** Let P_B subtract the mean along every level of B, and call P_B q_B the residual table of B.  A table is
the sum of the residual tables of its subsets, ``q_W = sum over B in W of lift(P_B q_B) / N_(W - B)``, where lift
repeats an array along the other levels: the decomposition of the analysis of variance.  The measurement of A contains
P_B q_B, for each subset B, as P_B of its sum over A - B, with noise of covariance N_(A - B)/p_A P_B; for different B
these noises are uncorrelated, since the residual spaces are orthogonal, and so independent.  Therefore weighted least
squares splits into one inverse-variance mean for each B, with information ::

    J_B = sum over measured A that contain B of p_A / N_(A - B),

and the estimate of every cell of q_W is normal with the variance ::

    Var_W = sum over B in W of prod over B of (1 - 1/n_i) / (N_(W - B)^2 J_B).

It is the best linear unbiased estimate from all measurements, its variance is known before any noise is drawn, and
tables of these estimates add up to each other.

**Design.**  The privacy loss of the measurements is mu^2 = C^2 sum of p_A, where C is the sensitivity of one table.
Var_W is convex in p, so the smallest loss under limits on the variances is a convex problem, which scipy solves; what
it returns is scaled so that every limit is met, so a poor solution could cost more, never miss a limit.

This is the matrix mechanism for marginals (McKenna, Miklau, Hay and Machanavajjhala 2018, *Optimizing error of
high-dimensional statistical queries under differential privacy*; Xiao, He, Zhang and Kifer 2023, *An optimal and
scalable matrix mechanism for noisy marginals under convex loss functions*, whose residual tables these are).  The
latter adds correlated noise to the residual tables themselves, which is optimal among all Gaussian mechanisms.  Here
every measurement is an ordinary table with independent noise: that costs 0.8% more for the six one- and two-way margins
of a 5 x 4 x 10 table (efficiency 1.480 instead of 1.493), and a measured table remains a query that can be refined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.errors import PlanError

Levels = tuple[int, ...]
"""Indices of the levels of a table; empty for the total."""

Floats = NDArray[np.float64]

MAX_TABLES = 256
"""Largest number of tables from which those to be measured are chosen."""

MIN_SHARE = 1e-3
"""Every requested table is measured with at least this share of the largest precision; other tables below it are not
measured at all.  So each requested query has a row in the ledger, from which it can be refined."""


@dataclass(frozen=True)
class Marginals:
    """The tables over subsets of some levels.

    Raises `PlanError` if there are too many tables to choose from.

    >>> from dpnb._compile.marginals import Marginals
    >>> margins = Marginals((5, 4, 10), ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2)))
    >>> precisions = margins.optimal([1.0] * 6)  # as precise as six separate tables with precision 1
    >>> round(6 / float(precisions.sum()), 2)
    1.48
    """

    sizes: tuple[int, ...]  # number of keys of each level, at least 1
    workload: tuple[Levels, ...]  # the requested tables, each as the indices of its levels, ascending
    excluded: tuple[Levels, ...] = ()  # must not be measured unless they are requested

    def __post_init__(self) -> None:
        most = max((2 ** len(table) for table in self.workload), default=0)  # before they are listed
        number = most if most > MAX_TABLES else len(self.subsets)
        if number > MAX_TABLES:
            raise PlanError(
                f"plan: has {number:,} tables to choose from; at most {MAX_TABLES} are possible; leave out "
                "the queries with the most levels, or release them in several batches"
            )

    @cached_property
    def subsets(self) -> tuple[Levels, ...]:
        """The requested tables and all tables that they can be summed to, coarse ones first."""
        parts = {
            part for table in self.workload for count in range(len(table) + 1) for part in combinations(table, count)
        }
        return tuple(sorted(parts, key=lambda part: (len(part), part)))

    def _cells(self, levels: Iterable[int]) -> float:
        return float(math.prod(self.sizes[level] for level in levels))

    @cached_property
    def _information(self) -> Floats:
        """J as a matrix that is applied to the precisions; shape (subsets, subsets)."""
        return np.array(
            [
                [1 / self._cells(set(table) - set(part)) if set(part) <= set(table) else 0.0 for table in self.subsets]
                for part in self.subsets
            ]
        )

    @cached_property
    def _residuals(self) -> Floats:
        """The factor of 1/J_B in each variance; shape (subsets, subsets)."""
        return np.array(
            [
                [
                    math.prod(1 - 1 / self.sizes[level] for level in part) / self._cells(set(table) - set(part)) ** 2
                    if set(part) <= set(table)
                    else 0.0
                    for part in self.subsets
                ]
                for table in self.subsets
            ]
        )

    def variances(self, precisions: Floats) -> Floats:
        """The variance of each cell's estimate for every table of `subsets`; infinite if it cannot be estimated."""
        information = self._information @ precisions
        used = self._residuals > 0
        with np.errstate(all="ignore"):
            terms = np.where(used, self._residuals / information, 0.0)
        return np.asarray(terms.sum(axis=1))

    @property
    def _requested(self) -> list[int]:
        return [self.subsets.index(table) for table in self.workload]

    def optimal(self, precisions: Sequence[float]) -> Floats:
        """The precisions with the smallest sum at which every requested table is as precise as required.

        A given precision is 1 over the largest variance of a cell's estimate, greater than 0, for each table of the
        workload; the result has shape (subsets,), and is greater than 0 for every requested table.
        """
        from scipy.optimize import minimize  # imported when first used

        requested, limits = self._requested, np.asarray(precisions, np.float64)
        scale = float(limits.max())
        goals = limits / scale
        direct = np.zeros(len(self.subsets))
        np.maximum.at(direct, requested, goals)
        allowed = np.array([subset in self.workload or subset not in self.excluded for subset in self.subsets])
        matrix, factors = self._information[:, allowed], self._residuals[requested] * goals[:, None]

        def slack(logs: Floats) -> Floats:
            return np.asarray(1 - factors @ (1 / (matrix @ np.exp(logs))))

        def slopes(logs: Floats) -> Floats:
            shares = np.exp(logs)
            return np.asarray((factors / (matrix @ shares) ** 2) @ matrix * shares)

        solve: Any = minimize  # the stubs do not know constraints with a Jacobian
        start = np.log(np.maximum(direct[allowed], 0.1))
        with np.errstate(all="ignore"):
            found = solve(
                lambda logs: float(np.exp(logs).sum()),
                start,
                jac=lambda logs: np.asarray(np.exp(logs)),
                method="SLSQP",
                bounds=[(-20.0, 3.0)] * len(start),
                constraints={"type": "ineq", "fun": slack, "jac": slopes},
                options={"maxiter": 500, "ftol": 1e-10},
            )
        chosen = np.zeros(len(self.subsets))
        chosen[allowed] = np.exp(np.clip(np.nan_to_num(found.x, nan=0.0), -20.0, 3.0))
        candidates = [self._feasible(design, goals) for design in (chosen, direct)]
        return scale * min(candidates, key=lambda design: float(design.sum()))

    def _feasible(self, precisions: Floats, goals: Floats) -> Floats:
        """The precisions without negligible ones, scaled so that every limit is met."""
        requested = self._requested
        least = MIN_SHARE * precisions.max()
        design = np.where(precisions < least, 0.0, precisions)
        design[requested] = np.maximum(design[requested], least)
        return np.asarray(design * (self.variances(design)[requested] * goals).max())

    # --- estimates --------------------------------------------------------------------------------------------------

    def estimate(self, table: Levels, measured: Mapping[Levels, Floats], precisions: Floats) -> Floats:
        """The best linear unbiased estimate of a table from all measurements.

        A measured table has one axis for each level, and a last axis for numbers that are summed separately; the result
        has the axes of `table` and that last one.  `precisions`, of shape (subsets,), is 0 for a table that was not
        measured.
        """
        total: Floats | None = None
        with np.errstate(all="ignore"):  # beyond the range of doubles a sum is infinite or unknown
            for part in self.subsets:
                if set(part) <= set(table):
                    residual = self._residual(part, measured, precisions)
                    shape = [self.sizes[level] if level in part else 1 for level in table]
                    repeats = self._cells(set(table) - set(part))
                    term = residual.reshape(*shape, residual.shape[-1]) / repeats
                    total = term if total is None else total + term  # broadcast along the other levels
        if total is None:  # never true: the empty set is a part of every table
            raise ValueError(table)
        return total

    def _residual(self, part: Levels, measured: Mapping[Levels, Floats], precisions: Floats) -> Floats:
        """The inverse-variance mean of a residual table."""
        information = 0.0
        mean: Floats | None = None
        for table, precision in zip(self.subsets, precisions, strict=True):
            if precision > 0 and set(part) <= set(table):
                weight = float(precision) / self._cells(set(table) - set(part))
                values = measured[table].sum(axis=tuple(at for at, level in enumerate(table) if level not in part))
                information += weight
                mean = values * weight if mean is None else mean + values * weight
        if mean is None:
            raise ValueError("no measurement contains this table")
        mean = mean / information
        for axis in range(len(part)):
            mean = mean - mean.mean(axis=axis, keepdims=True)
        return np.asarray(mean)
