"""The reference figures of intervals, by our names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpnb.accounting.intervals import combine, confidence_sequence_radius, fixed_radius, tuned_tau

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "combine": lambda ys, sigmas: combine([float(y) for y in ys], [float(s) for s in sigmas]),
    "cs_radius": lambda sigmas, tau, alpha: confidence_sequence_radius(
        [float(s) for s in sigmas], tau=tau, alpha=alpha
    ),
    "fixed_ci_radius": lambda sigmas, alpha: fixed_radius([float(s) for s in sigmas], alpha=alpha),
    "cs_tau_opt": lambda I_target, alpha: tuned_tau(I_target, alpha=alpha),
}
