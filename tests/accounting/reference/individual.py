"""The reference figures of individual accounting, by our names."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.individual import (
    IndividualFilter,
    NormFilter,
    losses_of_linear_query,
    norm_budget_radius,
    norm_budget_variance,
    remaining_of,
    rho_of_descent,
    rho_of_filtered_descent,
    worst_case_rounds,
)


def _doubles(values: list[Fraction]) -> NDArray[np.float64]:
    return np.array([float(value) for value in values])


def _rounds(rho: list[list[Fraction]], B: Fraction, mode: Any) -> list[Any]:
    state = IndividualFilter(B, units=len(rho[0]), on_exhausted=mode)
    active = []
    for losses in rho:
        state, taking_part = state.step(_doubles(losses))
        active.append(np.flatnonzero(taking_part).tolist())
    return [active, state.spent.tolist()]


def _clipped(norms: list[Fraction], C: Fraction, B_norm: Fraction) -> tuple[NormFilter, list[float]]:
    state, clipped = NormFilter(C, B_norm, units=1), []
    for norm in norms:
        state, taken = state.step([float(norm)])
        clipped.append(float(taken[0]))
    return state, clipped


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "individual_filter": _rounds,
    "individual_linear_rho": lambda norm, sigma: float(losses_of_linear_query([float(norm)], sigma=sigma)[0]),
    "individual_headroom": lambda spent, B: remaining_of(_doubles(spent), budget=B).tolist(),
    "norm_budget_sigma2": lambda B_norm, kappa: norm_budget_variance(B_norm, rho=kappa),
    "norm_budget_radius": lambda B_norm, kappa, d, delta: norm_budget_radius(
        B_norm, rho=kappa, coordinates=int(d), delta=delta
    ),
    "worst_case_rounds": lambda B, sigma, C, alpha: worst_case_rounds(B, sigma=sigma, clip=C, order=alpha),
    "alg7_radius": lambda C, B_norm, prev_norms: float(_clipped(prev_norms, C, B_norm)[0].radius[0]),
    "alg7_run": lambda norms, C, B_norm: _clipped(norms, C, B_norm)[1],
    "alg6_rho": lambda k, sigma: rho_of_descent(int(k), noise_multiplier=sigma),
    "alg7_rho": lambda B_norm, sigma, C: rho_of_filtered_descent(B_norm, noise_multiplier=sigma, clip=C),
}
