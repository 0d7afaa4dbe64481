"""Noisy Newton steps of a logistic or Poisson regression: the next coefficients, and the covariance of the last ones.

Everything here is computed from released sums (`dpnb._compile.scores`).  With coefficients b, let g be the score, H the
information, and g + e and H + E what was released, with noise of known covariance D and of known scales s_ij (E is
symmetric, its entries on and above the diagonal independent).  A step is d = (H + E)^-1 (g + e).

The first sums are taken where all rows have one mean, so that they are those of a linear fit of the outcome: from them
follow the best constant mean, and one step from there, at no further charge.

In the information of further steps a row's f' is clamped to a multiple of that at this constant mean: the noise is in
proportion to the largest f', which may belong to rows that nobody has.  Steps are then longer than Newton's, and a part
of the distance to the maximum remains after each, where Newton's steps leave its square.  If f' has a lognormal
distribution, as for a Poisson regression with normal linear predictors of standard deviation t, the part of the
information that is left out in the direction of the intercept is ::

    L = Phi(t/2 - ln(c)/t) - c Phi(-t/2 - ln(c)/t)

for the multiple c.  It is ``exp(1.6 t)``, at least 2 and at most 8, with t from the first sums, less the noise;
then L is at most 5% for t up to 1.  In the worst direction it was up to 4 times as much in simulations.  The multiple
is larger where the information of the last step will then still be clear of its noise, four times as large as needed.

A step is not taken as it is where the noise could have made it arbitrarily long: eigenvalues of H + E are raised to
`FLOOR` times the root of the number of terms times the noise scale of an entry, which is about the largest eigenvalue
of E, and to `SINGULAR` times the largest one; and a step that could move a linear predictor by more than `LONGEST` is
shortened to this.

Covariance of the last coefficients, for one undamped step with no eigenvalue raised
-----------------------------------------------------------------------------------
Let b* be the maximum of the likelihood in the table, without noise.  By Taylor's theorem g = H (b* - b) + r, where r is
a second-order remainder, so ::

    b + d - b* = (H + E)^-1 (e - E (b* - b) + r)

The covariance of the noise is therefore (H + E)^-1 (D + C) (H + E)^-1, with C the covariance of E (b* - b)::

    C_ii = sum over k of s_ik^2 d_k^2,    C_ij = s_ij^2 d_i d_j

where the step d is used for b* - b, from which it differs by the noise.  Without C this is the variance of
Avella-Medina, Bradshaw and Loh 2023 (*Differentially private inference via noisy optimization*, Annals of Statistics
51, 2067-2092), which is the limit for many rows, where E (b* - b) vanishes.

The sampling of the units adds (H + E)^-1 M (H + E)^-1, with M the sum over units of the outer products of their scores
(Liang and Zeger 1986, *Longitudinal data analysis using generalized linear models*, theorem 1).  M is
released with noise too.  Let V be the whole variance of a coefficient, and s the noise scale in its estimate.  An
interval of z standard deviations covers 2 Phi(z sqrt u) - 1 if the variance is estimated as u V.  Its second derivative
at u = 1 over its first is -(1 + z^2)/2, so noise in u lowers the coverage as much as (1 + z^2)/4 s^2/V^2 less variance
would.  So (1 + z^2)/4 s^2/V is added, at most s itself, as everywhere where M is small (`population`); the noise scale
of a variance that is estimated as negative.

The remainder r is about half the sum of x (x'd)^2 f'' (McCullagh and Nelder 1989, section 2.5), and ``|f''| <= f'`` for
both families.  In the norm of H it is thus at most half the root of the sum of f' (x'd)^4, which for a normal x'd is
sqrt(3)/2 times the length of d times the root mean square of x'd.  To it 4 L times the length of d is added, with the
distance b* - b for d: the length of d less the noise, but at least half of it.  An error of this length, in any
direction, is added to the noise.  Where it is more than `REMAINDER` of the root of the sum of the variances, in this
norm, the steps have not converged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.measurements import Family
from dpnb._plan.regression import RegressionDesign
from dpnb.results.estimates.noisy import Cells, IntervalArrays

Matrix = NDArray[np.float64]

SHARES = tuple(Fraction(number, 20) for number in (2, 2, 4, 12))
"""Shares of the charge of the steps, of mu squared."""

SCORE, INFORMATION = 0.7, 0.3
"""Shares of the charge of a step."""

LAST_SCORE, LAST_INFORMATION, LAST_PRODUCTS = 0.45, 0.35, 0.2
"""Shares of the charge of the last step, which also measures the products of scores."""

STEEPNESS, LEAST_MULTIPLE, LARGEST_MULTIPLE = 1.6, 2.0, 8.0
WORST = 4.0
FLOOR = 2.0
SINGULAR = 1e-12
CLEAR = 4.0
LONGEST = 4.0
REMAINDER = 0.5
DECIMALS = 8
"""Decimals to which coefficients are rounded, so that the same answers lead to the same query on any machine."""

Z_SQUARED = 1.959963984540054**2

Flaw = Literal["", "no clear information", "shortened", "not converged"]


@dataclass(frozen=True)
class StepSums:
    """The released sums of a step, with their noise scales."""

    score: Cells
    score_scale: Cells
    information: Matrix
    information_scale: Matrix
    products: Matrix
    products_scale: Matrix

    @classmethod
    def of(cls, arrays: IntervalArrays, terms: int) -> StepSums:
        """The sums of an answer with the view of a step; products are 0 where they were not measured."""
        found: list[NDArray[np.float64]] = []
        upper = np.triu_indices(terms)
        for numbers in (arrays.value[0], arrays.noise_scale[0]):
            parts = np.split(np.append(numbers[terms:], np.zeros(len(upper[0]))), (len(upper[0]), 2 * len(upper[0])))
            for part in parts[:2]:
                matrix = np.zeros((terms, terms))
                matrix[upper] = part
                found.append(matrix + np.triu(matrix, 1).T)
        information, products, information_scale, products_scale = found
        score, score_scale = arrays.value[0, :terms], arrays.noise_scale[0, :terms]
        return cls(score, score_scale, information, information_scale, products, products_scale)

    @property
    def floor(self) -> float:
        """The smallest eigenvalue of the information that is clear of the noise."""
        scale = math.sqrt(float((self.information_scale**2).mean()))
        return FLOOR * scale * math.sqrt(len(self.score))

    @property
    def raised(self) -> tuple[Matrix, bool]:
        """The information with eigenvalues raised to `floor`, and whether any was; it can be inverted in floats."""
        values, vectors = np.linalg.eigh(self.information)
        floor = max(self.floor, SINGULAR * float(values[-1]))
        if not (values < floor).any():
            return self.information, False
        return (vectors * np.maximum(values, floor)) @ vectors.T, True


@dataclass(frozen=True)
class NewtonStep:
    """The coefficients after a step, for columns scaled to -1 to 1."""

    coefficients: tuple[float, ...]
    move: Cells
    information: Matrix
    is_raised: bool
    is_shortened: bool
    max_slope: float  # of the next steps
    left: float  # the part of the distance that remains after a step because of it


# --- steps ------------------------------------------------------------------------------------------------------------


def first_coefficients(family: Family, design: RegressionDesign) -> tuple[float, ...]:
    """The coefficients at which the first sums are taken: each row has the mean in the middle of its range."""
    middle = design.outcome[0]
    intercept = math.log(middle) if family == "poisson" else 0.0
    return (round(intercept, DECIMALS), *(0.0,) * (design.terms - 1))


def linear_start(family: Family, design: RegressionDesign, at: tuple[float, ...], sums: StepSums) -> NewtonStep:
    """The coefficients after the first sums: a step from the constant mean that fits best."""
    information, is_raised = sums.raised
    mean, slope = _mean_and_slope(family, at[0])
    squares = information / slope
    count = max(float(squares[0, 0]), 1.0)
    totals = sums.score + mean * squares[0]  # of the outcome times each term
    middle, reach = design.outcome if family == "poisson" else (0.5, 0.5)
    margin = min(max(float(sums.score_scale[0]) / count, reach * 1e-3), reach / 2)
    average = min(max(float(totals[0]) / count, middle - reach + margin), middle + reach - margin)
    constant = math.log(average) if family == "poisson" else math.log(average / (1 - average))
    before, (_, slope) = slope, _mean_and_slope(family, constant)
    spread = _spread(sums, squares, slope, totals - average * squares[0])
    wanted = math.exp(min(STEEPNESS * spread, math.log(LARGEST_MULTIPLE)))
    multiple = min(max(wanted, LEAST_MULTIPLE, _clear_multiple(sums, squares, before)), LARGEST_MULTIPLE)
    max_slope = float(f"{multiple * slope:.3g}")
    largest = middle + reach if family == "poisson" else 0.25
    left = WORST * _left_out(spread, multiple) if max_slope < largest else 0.0
    move = np.linalg.solve(squares * slope, totals - average * squares[0])
    start = np.zeros(design.terms)
    start[0] = constant
    move, is_shortened = _shortened(design, move)
    end = start + move
    return NewtonStep(_rounded(end), end - np.array(at), information, is_raised, is_shortened, max_slope, left)


def _spread(sums: StepSums, squares: Matrix, slope: float, score: Cells) -> float:
    """The standard deviation of the linear predictors after a linear fit, without what the noise adds to it."""
    means = squares[0] / max(float(squares[0, 0]), 1.0)
    centred = squares / max(float(squares[0, 0]), 1.0) - np.outer(means, means)
    inverse = np.linalg.inv(squares * slope)
    found, noise = inverse @ score, inverse @ np.diag(sums.score_scale**2) @ inverse
    return math.sqrt(max(float(found @ centred @ found) - float((centred * noise).sum()), 0.0))


def _clear_multiple(sums: StepSums, squares: Matrix, slope: float) -> float:
    """The multiple at which the information of the last step will be clear of its noise, judged by that of the first.

    `slope` is f' of every row in the first sums.
    """
    charge = float(SHARES[-1]) * LAST_INFORMATION / (float(SHARES[0]) * INFORMATION)
    return float(np.linalg.eigvalsh(squares)[0]) / (CLEAR * sums.floor / slope / math.sqrt(charge))


def _left_out(spread: float, multiple: float) -> float:
    """The part of the information beyond a multiple of the mean of f', if it is lognormal."""
    if not spread:
        return 0.0
    at = math.log(multiple) / spread
    return _normal(spread / 2 - at) - multiple * _normal(-spread / 2 - at)


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def newton_step(design: RegressionDesign, before: NewtonStep, sums: StepSums) -> NewtonStep:
    """The coefficients after a further step."""
    information, is_raised = sums.raised
    move, is_shortened = _shortened(design, np.asarray(np.linalg.solve(information, sums.score)))
    coefficients = _rounded(np.array(before.coefficients) + move)
    return NewtonStep(coefficients, move, information, is_raised, is_shortened, before.max_slope, before.left)


def row_count(family: Family, at: tuple[float, ...], sums: StepSums) -> tuple[float, float]:
    """The number of rows that count and its noise scale, from the first sums."""
    _, slope = _mean_and_slope(family, at[0])
    return float(sums.information[0, 0]) / slope, float(sums.information_scale[0, 0]) / slope


def _mean_and_slope(family: Family, predictor: float) -> tuple[float, float]:
    """The mean at a linear predictor, and its derivative."""
    mean = math.exp(predictor) if family == "poisson" else 1 / (1 + math.exp(-predictor))
    return mean, mean if family == "poisson" else mean * (1 - mean)


def predictor_range(design: RegressionDesign, coefficients: Cells) -> tuple[float, float]:
    """The smallest and the largest linear predictor, whatever the row."""
    low = high = float(coefficients[0])
    for index, block in enumerate(design.blocks[1:], start=1):
        part = coefficients[block.start : block.stop]
        ends = np.append(part, 0.0) if design.is_category(index) else np.append(part, -part)
        low, high = low + float(ends.min()), high + float(ends.max())
    return low, high


def _shortened(design: RegressionDesign, move: Cells) -> tuple[Cells, bool]:
    """A step that changes no linear predictor by more than `LONGEST`, whatever the row."""
    low, high = predictor_range(design, move)
    longest = max(-low, high)
    return (move, False) if longest <= LONGEST else (move * (LONGEST / longest), True)


def _rounded(coefficients: Cells) -> tuple[float, ...]:
    return tuple((np.round(coefficients, DECIMALS) + 0.0).tolist())


# --- the covariance of the last coefficients --------------------------------------------------------------------------


@dataclass(frozen=True)
class StepCovariance:
    """The covariances of the coefficients after the last step, for columns scaled to -1 to 1."""

    noise: Matrix
    sampling: Matrix
    flaw: Flaw  # why they do not hold, if anything


def covariance(sums: StepSums, step: NewtonStep, *, remaining: float = 1.0) -> StepCovariance:
    """The covariances of noise and of sampling; see the module's docstring.

    `remaining` is the part of the population that was not drawn.
    """
    inverse: Matrix = np.asarray(np.linalg.inv(step.information))
    move = step.move
    squares = sums.information_scale**2
    of_information = squares * np.outer(move, move)
    np.fill_diagonal(of_information, squares @ move**2)
    noise: Matrix = inverse @ (np.diag(sums.score_scale**2) + of_information) @ inverse
    squared = max(float(move @ step.information @ move), 0.0)
    distance = math.sqrt(max(squared - float(np.trace(step.information @ noise)), squared / 4))
    change = distance / math.sqrt(max(float(step.information[0, 0]), np.finfo(float).tiny))  # root mean square
    remainder = (math.sqrt(3) / 2 * change + step.left) * distance
    noise += inverse * (remainder**2 / len(move))
    sampling = _sampling(sums, inverse, np.diag(noise)) * remaining
    if step.is_raised:
        return StepCovariance(noise, sampling, "no clear information")
    if step.is_shortened:
        return StepCovariance(noise, sampling, "shortened")
    spread = math.sqrt(float(np.trace(step.information @ (noise + sampling))))
    return StepCovariance(noise, sampling, "not converged" if remainder > REMAINDER * spread else "")


def _sampling(sums: StepSums, inverse: Matrix, noise: Cells) -> Matrix:
    """The covariance through sampling, positive semidefinite, its diagonal with the allowance for the noise of M."""
    estimate = inverse @ sums.products @ inverse
    own = np.maximum(np.diag(estimate), 0.0)
    terms = len(own)
    upper = np.triu(np.ones((terms, terms)), 1) + 1  # each pair of terms is one number
    scale = np.array(
        [math.sqrt(float((np.triu(upper * np.outer(row, row) * sums.products_scale) ** 2).sum())) for row in inverse]
    )
    whole = np.maximum(noise + own, np.finfo(float).tiny)
    own = own + np.minimum(scale, (1 + Z_SQUARED) / 4 * scale**2 / whole)
    values, vectors = np.linalg.eigh(estimate)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    root = np.sqrt(np.maximum(np.diag(positive), 0.0))
    correlation = np.divide(positive, np.outer(root, root), out=np.eye(terms), where=np.outer(root, root) > 0)
    return np.asarray(correlation * np.sqrt(np.outer(own, own)))


# --- columns in their own units ---------------------------------------------------------------------------------------


def to_columns(design: RegressionDesign) -> Matrix:
    """The matrix that converts coefficients of columns scaled to -1 to 1 to those of the columns themselves."""
    matrix = np.eye(design.terms)
    for term, (middle, reach) in enumerate(zip(design.middles, design.reaches, strict=True), start=1):
        matrix[term, term] = 1 / reach
        matrix[0, term] = -middle / reach
    return matrix
