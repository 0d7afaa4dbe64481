"""Gradients of a regression, unit by unit, and the prediction error of a row.  Reads rows; all of it is private.

A unit's gradient is a function of that unit's own rows alone, down to the last bit, on every machine: individual
accounting charges by its norm, and rebuilds the charges from the plan.  So no operation has a library-dependent result:
no matrix products (their rounding depends on a row's position), no library's exponential (its last bit depends on the
processor), no sums of doubles in an unspecified order.  Every double is the result of additions, multiplications,
divisions and roots of single numbers, which IEEE 754 rounds correctly, in the order written here; sums over rows are in
integers.

In steps of the clip: a row's entries are rounded to the grid toward zero and added up exactly; the sum is then scaled
down to the clip, toward zero again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers, starts_of
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.unit_vectors import SCALING_MARGIN, UnitVectors
from dpnb._compile.features import CLIP_STEPS, GradientFeature, ModelLossFeature
from dpnb._plan.measurements import RegressionModel
from dpnb._plan.regression import RegressionDesign, is_class

Floats = NDArray[np.float64]

NUMBERS_AT_ONCE = 2**16
"""Numbers in the arrays of a block of rows, so that these stay in the processor's cache."""

MAX_RESIDUAL = 2.0**16
"""Bound on a row's residual, in multiples of the clipping norm: a longer gradient is scaled down in any case."""

MAX_ROWS_AT_ONCE = 2**15
"""Number of rows whose sum fits 64 bits: 2**15 rows of 2**16 clipping norms of 2**30 steps."""

MAX_EXPONENT = 40.0
"""Bound on the argument of an exponential."""

LOG2_HIGH = float.fromhex("0x1.62e42feep-1")
LOG2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
"""The logarithm of 2 in two parts: a multiple of the first by a whole number below 2**21 is exact."""

TAYLOR = [1.0]
for _power in range(1, 14):
    TAYLOR.append(TAYLOR[-1] / _power)


def total(feature: GradientFeature, rows: NumpyEvaluator, units: Integers, chosen: Integers | slice) -> Integers:
    """The exact, unweighted sum of all units' gradients, shape (slots,).

    `units` is the unit of every row, and `chosen` are the rows that count, both ascending.
    """
    sums = np.zeros(feature.slots, np.int64)  # an entry of a unit is at most 2**30, so 2**33 units fit
    for _, values in _gradients(feature, rows, units[chosen], chosen):
        sums += values.sum(axis=0)
    return sums


def vectors(
    feature: GradientFeature, rows: NumpyEvaluator, units: Integers, chosen: Integers | slice, max_norm_squared: int
) -> UnitVectors:
    """The gradients of each unit that has a row that counts; see `total`."""
    width = feature.slots
    parts = list(_gradients(feature, rows, units[chosen], chosen))
    owners = np.concatenate([np.zeros(0, np.int64), *(of for of, _ in parts)])
    values = np.concatenate([np.zeros(0, np.int64), *(values.ravel() for _, values in parts)])
    starts = np.arange(len(owners)) * width
    slots = np.tile(np.arange(width), len(owners))
    if feature.weight != 1:
        values *= feature.weight
    return UnitVectors(owners, starts, slots, values, width, max_norm_squared)


def model_losses(feature: ModelLossFeature, rows: NumpyEvaluator) -> Floats:
    """The prediction error of each row, from 0 to 1; arbitrary or NaN for rows that do not count."""
    model, design = feature.misfit.model, feature.design
    terms = _DesignColumns.of(model, design, rows, slice(None))
    at = np.array(feature.misfit.at).reshape(-1, design.terms)
    losses = np.empty(len(terms.outcome))
    for start in range(0, len(losses), NUMBERS_AT_ONCE):
        part = slice(start, start + NUMBERS_AT_ONCE)
        losses[part] = _prediction_errors(model, design, terms.predictor(at, part), terms.outcome[part])
    return losses


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _DesignColumns:
    """The columns of some rows."""

    sizes: tuple[int, ...]  # number of indicators of each category
    numbers: list[Floats]  # scaled to -1 to 1
    codes: list[Integers]  # index of each category's value; the first has no indicator
    outcome: NDArray[Any]  # a number, or the index of its value

    @classmethod
    def of(
        cls, model: RegressionModel, design: RegressionDesign, rows: NumpyEvaluator, chosen: Integers | slice
    ) -> _DesignColumns:
        scales = zip(model.columns, design.middles, design.reaches, strict=True)
        numbers = [np.clip((rows.numbers(node)[chosen] - middle) / reach, -1.0, 1.0) for node, middle, reach in scales]
        codes = [np.maximum(rows.level_codes(node)[0][chosen], 0).astype(np.int64) for node in model.categories]
        middle, reach = design.outcome
        if is_class(model):
            outcome: NDArray[Any] = rows.level_codes(model.outcome)[0][chosen]
        elif model.family == "poisson":
            outcome = np.clip(rows.numbers(model.outcome)[chosen], max(middle - reach, 0.0), middle + reach)
        else:
            outcome = np.clip((rows.numbers(model.outcome)[chosen] - middle) / reach, -1.0, 1.0)
        return cls(design.sizes, numbers, codes, outcome)

    def predictor(self, at: Floats, part: slice) -> Floats:
        """Linear predictors of some rows at some coefficients, shape (coefficients, rows), term by term."""
        predictor = np.repeat(at[:, :1], len(self.outcome[part]), axis=1)
        term = 1
        for column in self.numbers:
            predictor += at[:, term, None] * column[part]
            term += 1
        for codes, size in zip(self.codes, self.sizes, strict=True):
            table = np.concatenate([np.zeros((len(at), 1)), at[:, term : term + size]], axis=1)
            predictor += table[:, codes[part]]
            term += size
        return predictor

    def matrix(self, part: slice) -> Floats:
        """The terms of some rows, shape (rows, terms)."""
        matrix = np.zeros((len(self.outcome[part]), 1 + len(self.numbers) + sum(self.sizes)))
        matrix[:, 0] = 1.0
        term = 1
        for column in self.numbers:
            matrix[:, term] = column[part]
            term += 1
        for codes, size in zip(self.codes, self.sizes, strict=True):
            rows = np.flatnonzero(codes[part])
            matrix[rows, term - 1 + codes[part][rows]] = 1.0
            term += size
        return matrix


def _residuals(model: RegressionModel, design: RegressionDesign, predictor: Floats, outcome: NDArray[Any]) -> Floats:
    """Predictions minus outcomes, shape (coefficients, rows); with several classes, those of a chain are adjacent."""
    match model.family:
        case "linear":
            return np.asarray(predictor - outcome)
        case "logistic":
            return np.asarray(1.0 / (1.0 + exponential(-predictor)) - (outcome == 1))
        case "poisson":
            return np.asarray(exponential(predictor) - outcome)
    count = len(design.classes)
    probabilities = predictor.reshape(-1, count, predictor.shape[1])
    largest = probabilities[:, 0].copy()
    for index in range(1, count):
        np.maximum(largest, probabilities[:, index], out=largest)
    probabilities = exponential(probabilities - largest[:, None])
    totals = probabilities[:, 0].copy()
    for index in range(1, count):
        totals += probabilities[:, index]
    probabilities /= totals[:, None]
    present = np.flatnonzero(outcome >= 0)
    probabilities[:, outcome[present], present] -= 1.0
    return probabilities.reshape(predictor.shape)


def _prediction_errors(
    model: RegressionModel, design: RegressionDesign, predictor: Floats, outcome: NDArray[Any]
) -> Floats:
    """Prediction errors, from 0 to 1, shape (rows,)."""
    match model.family:
        case "linear":
            return np.asarray(np.minimum(np.abs(predictor[0] - outcome) / 2, 1.0))
        case "logistic":
            return np.asarray((predictor[0] > 0) != (outcome == 1), np.float64)
        case "poisson":
            return np.asarray(np.minimum(np.abs(exponential(predictor[0]) - outcome) / (2 * design.outcome[1]), 1.0))
    return np.asarray(predictor.argmax(axis=0) != outcome, np.float64)


def exponential(x: Floats) -> Floats:
    """The exponential of numbers clamped to `MAX_EXPONENT`, with relative error 1e-15 and machine-independent bits."""
    x = np.clip(x, -MAX_EXPONENT, MAX_EXPONENT)
    power = np.rint(x * (1 / (LOG2_HIGH + LOG2_LOW)))
    x -= power * LOG2_HIGH
    x -= power * LOG2_LOW
    result = np.full_like(x, TAYLOR[-1])
    for coefficient in reversed(TAYLOR[:-1]):
        result *= x
        result += coefficient
    # 2**power, by its exponent bits.
    result *= ((power.astype(np.int64) + 1023) << 52).view(np.float64)
    return result


# --- units -----------------------------------------------------------------------------------------------------------


def _gradients(
    feature: GradientFeature, rows: NumpyEvaluator, units: Integers, chosen: Integers | slice
) -> Iterator[tuple[Integers, Integers]]:
    """Units, and the gradient of each in steps, shape (units, slots), in batches."""
    model, design = feature.gradient.model, feature.design
    terms = _DesignColumns.of(model, design, rows, chosen)
    at = np.array(feature.gradient.at).reshape(-1, design.terms)
    limit = MAX_RESIDUAL * CLIP_STEPS
    residuals = np.empty((len(units), len(at)))
    rows_at_once = max(NUMBERS_AT_ONCE // len(at), 64)
    for start in range(0, len(units), rows_at_once):
        part = slice(start, start + rows_at_once)
        raw = _residuals(model, design, terms.predictor(at, part), terms.outcome[part])
        residuals[part] = np.clip(raw.T * (CLIP_STEPS / feature.gradient.clip_norm), -limit, limit)

    def entries(start: int, end: int) -> Floats:
        """The entries of rows, in steps, rounded toward zero."""
        part = slice(start, end)
        products = residuals[part, :, None] * terms.matrix(part)[:, None, :]
        np.trunc(products, out=products)
        return products.reshape(end - start, feature.slots)

    starts = np.r_[starts_of([units]), len(units)]
    rows_at_once = min(max(NUMBERS_AT_ONCE // feature.slots, 64), MAX_ROWS_AT_ONCE)
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + rows_at_once, "right")) - 1
        last = max(last, first + 1)
        start, end = int(starts[first]), int(starts[last])
        if end - start > rows_at_once:  # rows of a single unit
            values = _long_sum(entries, start, end, rows_at_once)
        else:
            values = entries(start, end)
            if last - first < end - start:
                values = np.add.reduceat(values.astype(np.int64), starts[first:last] - start).astype(np.float64)
        yield units[starts[first:last]], _scaled_down(values.reshape(-1, feature.chains, design.width))
        first = last


def _long_sum(entries: Callable[[int, int], Floats], start: int, end: int, at_once: int) -> Floats:
    """The sum over the rows of one unit, exact before it is converted to doubles; shape (1, slots)."""
    parts = [entries(at, min(at + at_once, end)).astype(np.int64).sum(axis=0) for at in range(start, end, at_once)]
    whole = [sum(column) for column in zip(*(part.tolist() for part in parts), strict=True)]
    return np.array([[float(number) for number in whole]])


def _scaled_down(values: Floats) -> Integers:
    """The gradients, clipped by scaling down toward zero; shape (units, chains * width).

    `values`, of shape (units, chains, width) in whole steps, is modified in place.
    """
    squares = values * values
    width = values.shape[2]
    while width > 1:  # fold, entry by entry
        half = (width + 1) // 2
        squares[:, :, : width - half] += squares[:, :, half:width]
        width = half
    # The relative error of the squares is below 2**-40, so no gradient that is too long is missed.
    squares = squares[:, :, 0]
    long = squares > float(CLIP_STEPS) ** 2 * (1 - 4 * SCALING_MARGIN)
    factors = np.where(long, CLIP_STEPS / np.sqrt(np.maximum(squares, 1.0)) * (1 - SCALING_MARGIN), 1.0)
    values *= factors[:, :, None]
    return values.reshape(len(values), -1).astype(np.int64)  # toward zero
