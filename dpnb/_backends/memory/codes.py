"""Codes of cells, and of values to look up.  Reads rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String
from dpnb.schema import Key, text_of


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


@dataclass(frozen=True)
class LookupKeys:
    """Values of a key column to look up."""

    code_of: Mapping[Key, int]
    # the code for each code of the column, -1 for none; for a numeric column the code of each of `numbers`
    table: NDArray[np.int64]
    numbers: NDArray[np.float64] | None  # the values of a numeric column, ascending; otherwise None

    @classmethod
    def of(cls, keys: Iterable[Key], kind: Dtype, texts: Mapping[str, int]) -> LookupKeys:
        """Some values of a column of a type, with codes 0, 1, ...; `texts` has the codes of a column of texts."""
        code_of = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        if isinstance(kind, Categorical):
            table = [code_of.get(value, -1) for value in kind.values]
        elif isinstance(kind, String):
            table = [-1] * len(texts)
            for key, code in code_of.items():
                if (text_code := texts.get(text_of(key) or "")) is not None:
                    table[text_code] = code
        elif isinstance(kind, Numeric | Boolean):
            order = sorted(code_of, key=float)
            numbers = np.array([float(value) for value in order])
            return cls(code_of, np.array([code_of[key] for key in order], np.int64), numbers)
        else:
            raise TypeError(type(kind).__name__)
        return cls(code_of, np.array([*table, -1], np.int64), None)

    def of_codes(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The code of each row's value, by the codes of the column; -1 for other values."""
        found: NDArray[np.int64] = self.table[codes]
        return found

    def of_numbers(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The code of each row's number; -1 for other numbers."""
        if self.numbers is None or not self.code_of:
            return np.full(len(numbers), -1)
        at = np.clip(np.searchsorted(self.numbers, numbers), 0, len(self.table) - 1)
        return np.where(self.numbers[at] == numbers, self.table[at], -1)
