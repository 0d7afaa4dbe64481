"""The loss of each unit in a query, and its remaining budget."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpnb.accounting.exact import Number, exact, shown
from dpnb.accounting.individual.arrays import (
    MAX_DOUBLE,
    Floats,
    budget_as_double,
    distances_up,
    minus_down,
    per_unit,
    plus_up,
    positive_literal,
    squares_up,
    times_up,
    times_up_roughly,
)
from dpnb.errors import InvalidValueError


def losses_of_linear_query(norms: ArrayLike, *, sigma: Number, order: Number = 1) -> Floats:
    """The loss of each unit in a sum of per-unit vectors with Gaussian noise: order ||v||^2/(2 sigma^2).

    Parameters
    ----------
    norms : array_like, shape (units,)
        L2 norm of each unit's contribution, finite, >= 0.
    sigma : Number
        Standard deviation of the noise, drawn once for the sum, > 0; a float is its literal binary value.
    order : Number, default 1
        Renyi order, >= 1.  At 1 the loss is the rho of zCDP.

    Returns
    -------
    ndarray, shape (units,)
        Losses in nats, at most a few units of the last place above the exact value and never below it; capped at the
        largest double, which no filter admits.  SENSITIVE.

    Raises
    ------
    InvalidValueError
        A norm is not finite or negative (the message is constant), sigma <= 0 or order < 1.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Example 2.7.

    Examples
    --------
    >>> from dpnb.accounting.individual import losses_of_linear_query
    >>> losses_of_linear_query([0.0, 1.0, 2.0], sigma=4)
    array([0.     , 0.03125, 0.125  ])
    """
    losses = squares_up(per_unit(norms, "norms"), _per_square(sigma, order))
    return np.minimum(losses, MAX_DOUBLE)


def per_instance_losses(answer: ArrayLike, without: ArrayLike, *, sigma: Number, order: Number = 1) -> Floats:
    """The loss of each unit of ONE table in an answer f(S) with Gaussian noise: order ||f(S) - f(S^-i)||^2/(2 sigma^2).

    Per-instance RDP is the Renyi divergence, in the larger of its two directions, between what is released of a table S
    and of S without unit i; for Gaussian noise both are this number, and f may be any function, for example a median.

    The loss of a unit depends on the other units.  So it describes one answer of one table, and must NOT be charged by
    an `IndividualFilter`: which units are excluded would then depend on whether unit i is in the table, and the
    answers would differ in more than unit i.  A filter charges the *individual* loss, the largest over all tables that
    contain the unit, which depends on the unit alone (:func:`losses_of_linear_query`).  For a sum both are equal.

    Parameters
    ----------
    answer : array_like, shape (coordinates,)
        f(S), finite: the exact answer.
    without : array_like, shape (units, coordinates)
        f(S^-i) for each unit i, finite: the exact answer without it.
    sigma : Number
        Standard deviation of the noise in each coordinate, > 0; a float is its literal binary value.
    order : Number, default 1
        Renyi order, >= 1.  At 1 the loss is the rho of zCDP.

    Returns
    -------
    ndarray, shape (units,)
        Losses in nats, rounded up; capped at the largest double.  SENSITIVE, and not for the unit alone: it tells
        something about the others.

    Raises
    ------
    InvalidValueError
        An entry is not finite or the shapes differ (the message is constant), sigma <= 0 or order < 1.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Definition 2.6 (individual loss: Definition 2.5); Wang 2019, *Per-instance
       differential privacy* (arXiv:1707.07708), for pure and approximate DP.

    Examples
    --------
    Without any one of five rows, the median of their numbers moves by half of the distance to the next one.

    >>> import numpy as np
    >>> from dpnb.accounting.individual import per_instance_losses
    >>> rows = np.array([0.0, 1.0, 2.0, 2.0, 100.0])
    >>> without = [[np.median(np.delete(rows, i))] for i in range(len(rows))]
    >>> per_instance_losses([np.median(rows)], without, sigma=1)
    array([0.   , 0.   , 0.125, 0.125, 0.125])
    """
    factor = _per_square(sigma, order)
    distances = distances_up(*_answers(answer, without))
    total = np.zeros(distances.shape[0])
    for column in distances.T:
        total = plus_up(total, squares_up(np.ascontiguousarray(column), factor))
    return np.minimum(total, MAX_DOUBLE)


def _per_square(sigma: Number, order: Number) -> Fraction:
    """The loss for each unit of squared distance."""
    scale = positive_literal(sigma, name="sigma")
    alpha = exact(order, name="order")
    if alpha < 1:
        raise InvalidValueError(f"order must be at least 1, got {shown(order)}; give 1 for zCDP or a Renyi order")
    return alpha / (2 * scale**2)


def _answers(answer: ArrayLike, without: ArrayLike) -> tuple[Floats, Floats]:
    """Two finite arrays of doubles of shapes (coordinates,) and (units, coordinates)."""
    try:
        first, others = np.asarray(answer, np.float64), np.asarray(without, np.float64)
        fits = first.ndim == 1 and others.ndim == 2 and others.shape[1] == first.shape[0]
        fits = fits and bool(np.isfinite(first).all() and np.isfinite(others).all())
    except (TypeError, ValueError, OverflowError):
        fits = False
    # Raised outside the handler, because the caught error may quote an entry.
    if not fits:
        raise InvalidValueError(
            "answer and without must be finite numbers, of shapes (coordinates,) and (units, coordinates); give such "
            "arrays"
        )
    return first, others


def losses_of_squares(squares: ArrayLike, *, sigma: Number, rough: bool = False) -> Floats:
    """The loss of each unit in a sum of per-unit vectors with Gaussian noise, as mu squared: ||v||^2/sigma^2.

    Parameters
    ----------
    squares : array_like, shape (units,)
        Square of the L2 norm of each unit's contribution, finite, >= 0, never below the true one.
    sigma : Number
        Standard deviation of the noise, drawn once for the sum, > 0; a float is its literal binary value.
    rough : bool, default False
        Round up even exact results, which is faster; for squares that have been rounded up.

    Returns
    -------
    ndarray, shape (units,)
        Equal to :func:`losses_of_linear_query` at order 2, and rounded up and capped like it.  SENSITIVE.

    Raises
    ------
    InvalidValueError
        A square is not finite or negative (the message is constant), or sigma <= 0.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Example 2.7; for the two tables that differ in a unit the release is
       (||v||/sigma)-GDP (Smith and Thakurta 2022, Theorem 1).

    Examples
    --------
    >>> from dpnb.accounting.individual import losses_of_squares
    >>> losses_of_squares([0.0, 1.0, 4.0], sigma=4)
    array([0.    , 0.0625, 0.25  ])
    """
    scale = positive_literal(sigma, name="sigma")
    times = times_up_roughly if rough else times_up
    return np.minimum(times(per_unit(squares, "squares"), 1 / scale**2), MAX_DOUBLE)


def remaining_of(spent: ArrayLike, *, budget: Number) -> Floats:
    """The remaining budget of each unit, max(0, budget - spent), rounded down.

    SENSITIVE: each entry is for that unit alone.

    Parameters
    ----------
    spent : array_like, shape (units,)
        Loss that each unit has spent, finite, >= 0, in the scale of `budget`.
    budget : Number
        Total loss of each unit, >= 0 and below 2^1000.

    Returns
    -------
    ndarray, shape (units,)

    Raises
    ------
    InvalidValueError
        An entry is not finite or negative (the message is constant), or the budget is outside its range.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Algorithm 3.

    Examples
    --------
    >>> from dpnb.accounting.individual import remaining_of
    >>> remaining_of([0.0, 0.25, 1.0], budget=1)
    array([1.  , 0.75, 0.  ])
    """
    return minus_down(budget_as_double(budget, name="budget"), per_unit(spent, "spent"))
