"""The square-root factorisation of prefix sums: counts over time for one charge.

The prefix sums of T counts are M x, with M the lower triangular matrix of ones.  Let c_k = binom(2k, k)/4^k be the
coefficients of (1 - x)^(-1/2), and A the lower triangular Toeplitz matrix with c_0, c_1, ... in its first column: the
coefficients of (1 - x)^(-1/2) squared are those of 1/(1 - x), so A A = M.  What is measured is A x, with independent
noise, and the prefix sums are computed from it, as A (A x + noise) (Fichtenberger, Henzinger and Upadhyay 2023).  Noise
on every count would add up to the root of T; here the noise of every prefix sum, and the sensitivity, grow as the root
of log(T)/pi only.

In integers
-----------
dpnb measures ``y = a x``, where a is A with its coefficients in integer steps of 2^-30, rounded down.  So the sums, and
their sensitivity, are exact integers.  Any public matrix may be measured; what remains exact is the way back: the
prefix sums are b y with b the lower triangular Toeplitz matrix for which b a = M, from ``sum of a_j b_(k-j) = 1`` for
every k, not the rounded coefficients once more.  The recursion is in doubles, and its rounding does not grow, since
the coefficients of (1 - x)^(1/2), by which an error is continued, add up to less than 2 in absolute value.

Sensitivity
-----------
Let a unit change the counts by d.  The columns of a have no negative entry, and none is longer than the first, of
squared norm N = sum of a_k^2.

* *A unit changes the counts by at most C in all: the absolute values of the d_t add up to at most C.*  By the triangle
  inequality the norm of a d is at most the sum of the absolute d_t times the norms of their columns, at most
  C sqrt(N).  All of C at the first step attains it.
* *A unit changes at most p of the counts, each by at most m, all in one direction.*  The product of columns s <= t is
  the sum over j of a_j a_(j + t - s), for j < T - t: less the later t, and less the further apart s and t are, since
  the coefficients decrease.  Moving the p steps to the first p, in order, brings every pair closer together and makes
  it earlier, so no product becomes less: the norm is at most m times that of the sum of the first p columns, which
  attains it.  A unit with k rows, at most m of them in one step, adds no more than with m in each of the first k/m
  steps, rounded up, since no entry and no product is negative.

Time is public here: which step a row belongs to is part of what is protected, and it is covered, since d may be
anywhere.

Counts that are chosen as one goes
----------------------------------
Step t of a x depends on the counts up to t only.  Suppose that the counts are not fixed: each may depend on what was
released before, but given that, two neighbouring tables differ in counts d that the first bound covers.  Then release t
is (D_t/sigma)-GDP given the past, with D_t = row t of a d, and for every course of events the squares of all D_t add up
to at most C^2 N.  So all of them together are (C sqrt(N)/sigma)-GDP by Smith and Thakurta 2022, Theorem 1, at one
charge for the horizon T.

Units that leave
----------------
Under individual accounting a counter follows how many units are still active (Feldman and Zrnic 2021, section 5).  Step
t counts the units that *leave*: those that do not take part in full in query t, for the first time.

Claim.  If every unit's filter admits at most B - mu_c^2 in squared mu, the queries and the totals of a counter that is
charged mu_c are sqrt(B)-GDP.

Proof.  Fix two tables that differ in one unit.  Whether another unit takes part is a function of its own data and of
what was released before, so given the past it is the same for both.  The unit itself leaves at most once, at a step s
that its data and the past determine, so it changes one count, by 1.  What is released at step t is then at most
D_t-GDP given the past, with D_t^2 its loss in query t plus (a_(t-s)/sigma)^2.  The first terms add up to at most
B - mu_c^2, the second ones to at most N/sigma^2 = mu_c^2, and Smith and Thakurta 2022, Theorem 1, applies.  ∎

The second terms begin when the unit cannot pay any more: so they are reserved before the first step.  The numbers of
*active* units themselves would change by 1 at every step before s; and a unit that may return, under "skip", changes
the numbers of absent units many times.  The number at the start must be public, or be counted.

References
----------
- Fichtenberger, Henzinger, Upadhyay 2023, *Constant Matters: Fine-grained Error Bound on Differentially Private
  Continual Observation*, arXiv:2202.11205 (the factorisation).
- Denisov, McMahan, Rush, Smith, Thakurta 2022, *Improved Differential Privacy for SGD via Optimal Private Linear
  Operators on Adaptive Streams*, arXiv:2202.08312 (counts that are chosen as one goes).
- Dwork, Naor, Pitassi, Rothblum 2010, *Differential privacy under continual observation*; Chan, Shi, Song 2011,
  *Private and continual release of statistics*: a binary tree of counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.errors import InvalidValueError

COEFFICIENT_BITS = 30
"""Bits of the largest coefficient: a step is finer than the noise by far, and the coefficients stay above 0."""

MAX_STEPS = 4096
"""Largest horizon."""


@lru_cache(maxsize=64)
def square_root_coefficients(steps: int) -> tuple[int, ...]:
    """The coefficients binom(2k, k)/4^k of the square root of prefix sums, in steps of 2^-30, rounded down.

    `steps`, from 1 to 4,096, is the number of counts.

    >>> [number / 2**30 for number in square_root_coefficients(4)]
    [1.0, 0.5, 0.375, 0.3125]
    """
    if isinstance(steps, bool) or not 1 <= steps <= MAX_STEPS:
        raise InvalidValueError(f"steps: must be a whole number from 1 to {MAX_STEPS:,}; got {steps!r}; merge steps")
    found, binomial = [], 1
    for k in range(steps):
        found.append((binomial << COEFFICIENT_BITS) >> 2 * k)
        binomial = binomial * 2 * (2 * k + 1) // (k + 1)
    return tuple(found)


@lru_cache(maxsize=64)
def prefix_sums_norm_squared(steps: int, places: int = 1) -> int:
    """The squared norm of the sum of the first columns, in steps of 2^-60.

    That is the largest for a unit that adds 1 to at most `places` of the counts.  The noise of each of 24 monthly
    totals, for a row in one month at mu = 1, is at most 2.075; of sums of noisy counts it would be up to 4.9, the root
    of 24.

    >>> round(prefix_sums_norm_squared(24) / 2**60, 3)
    2.075
    """
    coefficients = square_root_coefficients(steps)
    if isinstance(places, bool) or places < 1:
        raise InvalidValueError(f"places: must be a whole number of at least 1; got {places!r}; give one")
    total, squared = 0, 0
    for step, coefficient in enumerate(coefficients):
        total += coefficient - (coefficients[step - places] if step >= places else 0)
        squared += total**2
    return squared


def largest_norm_squared(steps: int, *, rows: int, rows_in_step: int) -> int:
    """The largest squared norm of what a unit adds to the measurements, if its rows count in one step each.

    In steps of 2^-60; attained where the rows fill steps exactly, and never below what is attained.

    >>> largest_norm_squared(2, rows=3, rows_in_step=3) / 2**60
    11.25
    """
    in_steps = rows_in_step**2 * prefix_sums_norm_squared(steps, -(-rows // rows_in_step))
    return min(rows**2 * prefix_sums_norm_squared(steps), in_steps)


def square_root_of_prefix_sums(counts: Sequence[int] | NDArray[Any]) -> list[int]:
    """The exact sums that are measured, in steps of 2^-30: the Toeplitz matrix of the coefficients times the counts.

    SENSITIVE, as the counts are: noise must be added.

    >>> [number / 2**30 for number in square_root_of_prefix_sums([8, 0, 8])]
    [8.0, 4.0, 11.0]
    """
    numbers = np.array([int(count) for count in counts], dtype=object)
    sums = np.zeros(len(numbers), dtype=object)
    for lag, coefficient in enumerate(square_root_coefficients(len(numbers))):
        sums[lag:] += coefficient * numbers[: len(numbers) - lag]
    return list(map(int, sums))


@lru_cache(maxsize=64)
def prefix_sum_weights(steps: int) -> NDArray[np.float64]:
    """The first column of the Toeplitz matrix that makes prefix sums of what was measured, and no error of its own.

    Prefix sum t is the sum over s <= t of entry t - s times measurement s.

    >>> np.convolve(prefix_sum_weights(3), square_root_of_prefix_sums([8, 0, 8]))[:3].tolist()
    [8.0, 8.0, 16.0]
    """
    coefficients = np.array(square_root_coefficients(steps), np.float64) / 2.0**COEFFICIENT_BITS
    weights = np.zeros(steps)
    for k in range(steps):
        weights[k] = 1.0 - coefficients[1 : k + 1] @ weights[:k][::-1]
    weights /= 2.0**COEFFICIENT_BITS
    weights.setflags(write=False)
    return weights


@lru_cache(maxsize=64)
def prefix_sum_scales(steps: int) -> NDArray[np.float64]:
    """The standard deviation of each prefix sum, ascending, where that of each measurement is 1.

    >>> (prefix_sum_scales(3) * 2**30).round(3).tolist()
    [1.0, 1.118, 1.179]
    """
    scales: NDArray[np.float64] = np.sqrt(np.cumsum(prefix_sum_weights(steps) ** 2))
    scales.setflags(write=False)
    return scales


def prefix_sums_of(measured: NDArray[np.float64]) -> NDArray[np.float64]:
    """The prefix sums of noisy values of what `square_root_of_prefix_sums` computes, in their order.

    >>> prefix_sums_of(np.array([2.0**30, 2.0**29])).tolist()
    [1.0, 1.0]
    """
    return np.convolve(prefix_sum_weights(len(measured)), measured)[: len(measured)]
