"""Many numbers as text at once, each as `dpnb.render.numbers` writes it."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN

import numpy as np

from dpnb._plan.schema import Key
from dpnb.render.numbers import describe_error, error_level, format_number
from dpnb.results.estimates.noisy import Cells

_POWERS = np.array([10.0**digits for digits in range(13)])
_FORMATS = [f"z,.{digits}f" for digits in range(13)]
_ROUNDED = {ROUND_HALF_EVEN: np.rint, ROUND_FLOOR: np.floor, ROUND_CEILING: np.ceil}

_UNCERTAIN = 2.0**-48
"""Relative distance from a multiple (or from the middle between two) below which `format_number` decides: a double and
its shortest decimal differ by at most 2^-53, and the product with a power of ten is rounded once."""

_LARGEST = 2.0**50


def format_numbers(values: Cells, errors: Cells, rounding: str = ROUND_HALF_EVEN) -> list[str]:
    """The text of each number of an array of shape (n,), rounded as by `format_number`."""
    with np.errstate(all="ignore"):
        magnitudes = np.log10(errors)
        known = np.isfinite(values) & np.isfinite(magnitudes) & (errors > 0)
        known &= np.abs(magnitudes - np.rint(magnitudes)) > 1e-9  # otherwise the number of digits is uncertain
        digits = np.where(known, np.clip(1 - np.floor(magnitudes), 0, 12), 0).astype(np.intp)
        powers = _POWERS[digits]
        scaled = values * powers
        nearest = np.rint(scaled)
        distance = np.abs(scaled - nearest)
        if rounding == ROUND_HALF_EVEN:
            distance = np.abs(distance - 0.5)
        certain = (distance > _UNCERTAIN * np.abs(scaled)) | (values == np.rint(values))
        known &= certain & (np.abs(scaled) < _LARGEST)
        numbers = _ROUNDED[rounding](scaled) / powers
    texts = [format(number, _FORMATS[d]) for number, d in zip(numbers.tolist(), digits.tolist(), strict=True)]
    for index in np.flatnonzero(~known).tolist():
        texts[index] = format_number(float(values[index]), float(errors[index]), rounding)
    return texts


def numbers_with_intervals(values: Cells, lows: Cells, highs: Cells) -> list[tuple[str, str]]:
    """`number_with_interval` of each number of arrays of shape (n,)."""
    with np.errstate(all="ignore"):
        errors = (highs - lows) / 2
    ends = format_numbers(lows, errors, ROUND_FLOOR), format_numbers(highs, errors, ROUND_CEILING)
    intervals = [f"{low} to {high}" for low, high in zip(*ends, strict=True)]
    return list(zip(format_numbers(values, errors), intervals, strict=True))


def describe_errors(errors: Cells, outputs: tuple[str, tuple[Key, ...]] | None, confidence: float) -> list[str]:
    """`describe_error` of each answer; `errors` has shape (answers, groups, outputs)."""
    if outputs and outputs[0] == "statistic":
        return [describe_error(one, outputs, confidence) for one in errors]
    flat = errors.reshape(len(errors), -1)
    is_plain = np.isfinite(flat).all(axis=1) & (flat.shape[1] > 0)
    largest, least = (flat.max(axis=1), flat.min(axis=1)) if flat.shape[1] else (flat.sum(axis=1),) * 2
    levels = np.where(
        least < largest * (1 - 1e-9), error_level(confidence, " or better"), error_level(confidence)
    ).tolist()
    worst = format_numbers(largest, largest, ROUND_CEILING)
    texts = [f"± {error}{level}" for error, level in zip(worst, levels, strict=True)]
    for index in np.flatnonzero(~is_plain).tolist():
        texts[index] = describe_error(errors[index], outputs, confidence)
    return texts
