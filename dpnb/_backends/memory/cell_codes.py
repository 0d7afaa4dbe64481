"""Codes of several levels combined into one code of their cell.  Reads rows; every value in here is private."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def combined_codes(codes: list[NDArray[Any]], sizes: list[int]) -> tuple[NDArray[np.int64], int]:
    """Several codes combined into one, the last varying fastest, -1 where any is -1; and the number of combinations.

    Not for sizes whose product exceeds 64 bits; see `dense_codes`.
    """
    combined = codes[0].astype(np.int64)
    missing = combined < 0
    total = sizes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        combined *= size
        combined += code
        missing |= code < 0
        total *= size
    combined[missing] = -1
    return combined, total


def dense_codes(codes: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Several codes combined into one, numbered densely in the order of the tuples; -1 where any is -1."""
    combined = codes[0].astype(np.int64)
    for code in codes[1:]:
        pair = np.where((combined < 0) | (code < 0), -1, combined * (int(code.max(initial=0)) + 1) + code)
        distinct, dense = np.unique(pair, return_inverse=True)
        combined = dense.reshape(-1) - int(len(distinct) > 0 and distinct[0] < 0)
    return combined
