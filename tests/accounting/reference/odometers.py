"""The reference figures of odometers and accumulators, by our names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from accounting.reference.figures import LEAST
from dpnb.accounting.exact import binary_up, exact
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PureDP
from dpnb.accounting.odometers import (
    ApproxDPAccumulator,
    BasicOdometer,
    FilterOdometer,
    MixtureOdometer,
    Odometer,
    RDPAccumulator,
    RenyiOdometer,
    RenyiTracker,
    RogersOdometer,
    StitchedOdometer,
    ZCDPAccumulator,
)


def bounds(odometer: Odometer, losses: Iterable[Loss]) -> list[float]:
    """The reading after each loss."""
    read = []
    for loss in losses:
        odometer = odometer.step(loss)
        read.append(odometer.bound)
    return read


def last(odometer: Odometer, losses: Iterable[Loss]) -> float:
    return [odometer.bound, *bounds(odometer, losses)][-1]


def chosen(kind: str, param: Fraction, delta1: Fraction, delta2: Fraction = Fraction(0)) -> Any:
    """An odometer of Whitehouse et al. by name, with something next to nothing released."""
    start: Any
    if kind == "filter":
        start = FilterOdometer(param, delta1, slack_delta=delta2)
    elif kind == "stitched":
        start = StitchedOdometer(param, delta1, slack_delta=delta2, below="infinity")
    else:
        start = MixtureOdometer(param, delta1, "two" if kind == "mixture" else "one", slack_delta=delta2)
    return start.step(ZCDP(LEAST / 2))


def truncated(kind: str, seq: list[Any], d: Any, delta1: Fraction | None, delta: Fraction | None) -> int:
    """How many launches fit: the accumulator that is held to d includes the one that is about to be launched."""
    if kind not in ("rdp", "zcdp"):
        threshold, most = d
        state: Any = ApproxDPAccumulator(delta1, delta)
        read = bounds(state, [ApproxDP(*pair) for pair in seq])
        return sum(exact(bound) <= threshold for bound in read if bound < math.inf) if state.delta <= most else 0
    state = ZCDPAccumulator() if kind == "zcdp" else RDPAccumulator(2)
    fits = 0
    for rho in seq:
        state = state.step(ZCDP(rho)) if kind == "zcdp" else state.step(RDP({2: rho}))
        fits += state.rho <= d  # exact: the double that is read may be above a literal threshold
    return fits


def pair_38(hist: list[Any], delta1: Fraction, delta: Fraction) -> list[Any]:
    state: Any = ApproxDPAccumulator(delta1, delta)
    for pair in hist:
        state = state.step(ApproxDP(*pair))
    return [state.bound, state.delta if state.bound < math.inf else math.inf]


def first_over(delta_list: list[Fraction], delta2: Fraction) -> int:
    start = FilterOdometer(1, LEAST, slack_delta=delta2)
    return sum(math.isfinite(bound) for bound in bounds(start, [ApproxDP(0, delta) for delta in delta_list]))


def union(hist: list[dict[str, Any]], delta: Fraction, weights: dict[str, Any]) -> list[float]:
    curves = [RDP({Fraction(order): rho for order, rho in curve.items()}) for curve in hist]
    read = [bounds(RenyiOdometer(Fraction(order), delta * w), curves) for order, w in weights.items()]
    return [min(column) for column in zip(*read, strict=True)]


def summed_v(losses: list[Loss]) -> float:
    state = FilterOdometer(1, Fraction(1, 2))
    for loss in losses:
        state = state.step(loss)
    return binary_up(state.v)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "V_dp": lambda eps_list: summed_v([PureDP(e) for e in eps_list]),
    "V_gdp": lambda mu_list: summed_v([GDP(mu) for mu in mu_list]),
    "V_zcdp": lambda rho_list: summed_v([ZCDP(rho) for rho in rho_list]),
    "odo_filter_y": lambda V, y, delta1: FilterOdometer.tuned(y, delta1).bound_at(V or LEAST),
    "odo_filter": lambda V, eps_target, delta1: FilterOdometer(eps_target, delta1).bound_at(V or LEAST),
    "odo_mixture": lambda V, gamma, delta1: MixtureOdometer(gamma, delta1, "two").bound_at(V or LEAST),
    "odo_mixture_onesided": lambda V, gamma, delta1: MixtureOdometer(gamma, delta1).bound_at(V or LEAST),
    "odo_stitched": lambda V, v0, delta1: StitchedOdometer(v0, delta1, below="infinity").bound_at(V or LEAST),
    "odo_stitched_floor": lambda V, v0, delta1: StitchedOdometer(v0, delta1).bound_at(V or LEAST),
    "odometer_history": lambda kind, hist, param, delta1, delta2: bounds(
        chosen(kind, param, delta1, delta2), [ApproxDP(*pair) for pair in hist]
    ),
    "zcdp_odometer_history": lambda kind, rhos, param, delta: bounds(
        chosen(kind, param, delta), [ZCDP(rho) for rho in rhos]
    ),
    "rdp_odometer": lambda rhos, alpha, delta: bounds(
        RenyiOdometer(alpha, delta).step(RDP({alpha: LEAST})), [RDP({alpha: rho}) for rho in rhos]
    ),
    "rdp_odometer_union": union,
    "rogers_odometer": lambda hist, n, delta_g: last(
        RogersOdometer(int(n), delta_g).step(PureDP(Fraction(1, 10**160))), [ApproxDP(*pair) for pair in hist]
    ),
    "basic_odometer": lambda hist, delta_g: last(BasicOdometer(delta_g), [ApproxDP(*pair) for pair in hist]),
    "haney_rdp_accumulator": lambda hist: last(RDPAccumulator(2), [RDP({2: rho}) for rho in hist]),
    "haney_zcdp_accumulator": lambda hist: last(ZCDPAccumulator(), [ZCDP(rho) for rho in hist]),
    "haney_accumulator_38": pair_38,
    "haney_truncation_length": lambda seq, d, kind, delta1, delta: truncated(kind, seq, d, delta1, delta),
    "fz_tracker": lambda rho, Delta: bounds(RenyiTracker(2, Delta), [RDP({2: each}) for each in rho]),
    "whitehouse_N": first_over,
    "mixture_gamma_opt": lambda V, delta1: MixtureOdometer.tuned(V, delta1, "two").gamma,
    "mixture_gamma_opt_onesided": lambda V, delta1: MixtureOdometer.tuned(V, delta1, "one").gamma,
    "whitehouse_eps": lambda V, delta1: ApproxDPAccumulator(delta1, delta1).step(ZCDP(V / 2)).bound,
}
