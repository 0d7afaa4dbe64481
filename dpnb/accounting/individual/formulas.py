"""Formulas of individual accounting that use public numbers only: noise, accuracy, rounds, cost."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from dpnb.accounting.exact import Number, binary_up, decimal_up, non_negative, positive, shown, sqrt_up
from dpnb.accounting.individual.arrays import positive_literal
from dpnb.errors import InvalidValueError


def norm_budget_variance(norm_budget: Number, *, rho: Number) -> float:
    """Variance of the noise of each sum for which a budget of squared norms is rho-zCDP: B_norm/(2 rho), rounded up.

    Parameters
    ----------
    norm_budget : Number
        B_norm, > 0: the largest sum of a unit's squared norms.
    rho : Number
        Total zCDP loss of all sums together, > 0.

    Returns
    -------
    float
        In the squared unit of the sums.

    Raises
    ------
    InvalidValueError
        norm_budget or rho <= 0.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Corollary 4.7.

    Examples
    --------
    >>> from dpnb.accounting.individual import norm_budget_variance
    >>> norm_budget_variance(2, rho=0.5)
    2.0
    """
    return binary_up(positive(norm_budget, name="norm_budget") / (2 * positive(rho, name="rho")))


def norm_budget_radius(norm_budget: Number, *, rho: Number, coordinates: int, delta: Number) -> float:
    """Error bound of a sum in all coordinates, with probability 1 - delta: sqrt(B_norm log(d/delta)/rho).

    The error is relative to the sum of the ACTIVE units; it does not include the excluded units.

    Parameters
    ----------
    norm_budget, rho : Number
        As for :func:`norm_budget_variance`.
    coordinates : int
        d, >= 1: the length of the vectors.
    delta : Number
        Probability that the error of one sum exceeds the bound, in (0, 1).

    Returns
    -------
    float
        In the unit of the norms, rounded up.

    Raises
    ------
    InvalidValueError
        norm_budget or rho <= 0, coordinates not an integer >= 1, or delta outside (0, 1).

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Corollary 4.7.

    Examples
    --------
    >>> from dpnb.accounting.individual import norm_budget_radius
    >>> round(norm_budget_radius(2, rho=0.5, coordinates=3, delta=0.05), 4)
    4.0469
    """
    budget, kappa = positive(norm_budget, name="norm_budget"), positive(rho, name="rho")
    miss, width = positive(delta, name="delta"), _count(coordinates, "coordinates")
    if miss >= 1 or width < 1:
        raise InvalidValueError(
            f"delta must be below 1 and coordinates at least 1, got {shown(delta)} and {width}; give such numbers"
        )
    context = Context(prec=60, rounding=ROUND_CEILING)
    ratio = context.divide(Decimal(width * miss.denominator), Decimal(miss.numerator))
    # Decimal's logarithm rounds to nearest, whatever the context says.
    logarithm = Fraction(context.next_plus(context.ln(ratio)))
    return sqrt_up(budget * logarithm / kappa)


def worst_case_rounds(budget: Number, *, sigma: Number, clip: Number, order: Number = 1) -> int:
    """The number of queries that the budget of every unit covers: floor(2 B sigma^2/(C^2 order)).

    Parameters
    ----------
    budget : Number
        B, the total loss of each unit, zCDP rho or Renyi loss at `order`, >= 0.
    sigma, clip : Number
        Standard deviation of the noise and largest norm of a contribution, > 0; a float is its literal binary value.
    order : Number, default 1
        Renyi order, > 0; 1 for zCDP.

    Returns
    -------
    int

    Raises
    ------
    InvalidValueError
        A number outside these ranges.

    Notes
    -----
    This is the exact number.  A filter's charges are rounded up, so where 2 B sigma^2/(C^2 order) is a whole number it
    may refuse the last of these rounds, but no earlier one, up to some millions of rounds.  (100 losses of 1/200 are
    1/2, but the double nearest to 1/200 is above it.)

    References
    ----------
    .. [1] Feldman and Zrnic 2021, section 4.2.

    Examples
    --------
    >>> from dpnb.accounting.individual import worst_case_rounds
    >>> worst_case_rounds(0.5, sigma=10, clip=1)
    100
    """
    scale, bound = positive_literal(sigma, name="sigma"), positive_literal(clip, name="clip")
    return math.floor(2 * non_negative(budget, name="budget") * scale**2 / (bound**2 * positive(order, name="order")))


def rho_of_descent(steps: int, *, noise_multiplier: Number) -> float:
    """The zCDP rho of k gradient steps, k/(2 sigma^2), rounded up.

    Each step's noise N(0, sigma^2 C^2 I) is drawn once and added to the sum of the clipped gradients.

    Parameters
    ----------
    steps : int
        k, >= 0.
    noise_multiplier : Number
        sigma, > 0; a float is its literal binary value.

    Returns
    -------
    float
        rho of all steps together.

    Raises
    ------
    InvalidValueError
        A number outside these ranges.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Algorithm 6 and Proposition 5.1.

    Examples
    --------
    >>> from dpnb.accounting.individual import rho_of_descent
    >>> rho_of_descent(100, noise_multiplier=10)
    0.5
    """
    return decimal_up(_count(steps, "steps") / (2 * positive_literal(noise_multiplier, name="noise_multiplier") ** 2))


def rho_of_filtered_descent(norm_budget: Number, *, noise_multiplier: Number, clip: Number) -> float:
    """The zCDP rho of any number of gradient steps under a norm filter, B_norm/(2 sigma^2 C^2), rounded up.

    Each step's noise N(0, sigma^2 C^2 I) is drawn once and added to the sum of the clipped gradients.

    Parameters
    ----------
    norm_budget : Number
        B_norm, >= 0: the largest sum of a unit's squared clipped norms.
    noise_multiplier, clip : Number
        sigma and C, > 0; a float is its literal binary value.

    Returns
    -------
    float
        rho of all steps together.

    Raises
    ------
    InvalidValueError
        A number outside these ranges.

    References
    ----------
    .. [1] Feldman and Zrnic 2021, Algorithm 7 and Proposition 5.2.

    Examples
    --------
    >>> from dpnb.accounting.individual import rho_of_filtered_descent
    >>> rho_of_filtered_descent(20, noise_multiplier=10, clip=2)
    0.025
    """
    scale = positive_literal(noise_multiplier, name="noise_multiplier") * positive_literal(clip, name="clip")
    return decimal_up(non_negative(norm_budget, name="norm_budget") / (2 * scale**2))


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InvalidValueError(f"{name} must be a whole number of at least 0, got {shown(value)}; give an int")
    return int(value)
