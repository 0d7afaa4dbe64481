"""The reduction behind the Gaussian filter, as a program (Smith and Thakurta 2022, proof of Theorem 1).

One draw W0 ~ N(b mu0, 1) is all that depends on the secret bit b.  Answer i is m_i W0 + (row i of L) V, with
m_i = mu_i/mu0, V standard normal and L L^T = I - m m^T: given the answers before it, it is N(b mu_i, 1) whatever b is,
and row i needs m_1..m_i only, so that m_i may be chosen from those answers.

The footnote of the paper that gives the rows omits a square root in the diagonal; with it the answers have the wrong
variance.  That reading is kept here under the name `printed`, as a control.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["last_row", "lower_triangle"]


def last_row(m: Any, *, printed: bool = False) -> NDArray[np.float64]:
    """The row of L that belongs to the last of `m`.

    Parameters
    ----------
    m : array_like, shape (..., i)
        Numbers whose squares add up to at most 1; Fractions are taken exactly.
    printed : bool
        Leave the square root of the diagonal out, as the paper's footnote does.

    Returns
    -------
    ndarray, shape (..., i)

    Raises
    ------
    ValueError
        The squares add up to more than 1.
    """
    ratios = np.asarray(m)
    left = 1 - np.cumsum(ratios * ratios, axis=-1)
    if (left < -1e-12).any():
        raise ValueError("the squares of m must add up to at most 1; take smaller steps")
    left = np.maximum(left, 0)
    before = np.concatenate([np.ones_like(left[..., :1]), left[..., :-1]], axis=-1)
    products = ratios[..., -1:] * ratios
    # Nothing is left once the squares reach 1: every later m is 0, and its row is (0, ..., 0, 1).
    squares = np.where(before * left > 0, products * products, 0) / np.where(before * left > 0, before * left, 1)
    row = -np.where(products < 0, -1, 1) * np.sqrt(squares.astype(np.float64))
    diagonal = np.where(before > 0, left, 1)[..., -1] / np.where(before > 0, before, 1)[..., -1]
    diagonal = np.asarray(diagonal, dtype=np.float64)
    row[..., -1] = diagonal if printed else np.sqrt(diagonal)
    return np.asarray(row, dtype=np.float64)


def lower_triangle(m: Any, *, printed: bool = False) -> NDArray[np.float64]:
    """All rows of L for one sequence `m`, shape (k,); the result has shape (k, k)."""
    ratios = np.asarray(m)
    size = len(ratios)
    rows = [np.pad(last_row(ratios[: i + 1], printed=printed), (0, size - i - 1)) for i in range(size)]
    return np.array(rows)
