"""Reference figures: within their tolerance, and never on the wrong side of it.

The figures' numbers are doubles taken literally, so they are fed as Fractions.  A correct double implementation may
differ by 1e-12 and by what the arguments' own rounding does to the result (`cond`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest

from dpnb.accounting.conversions import delta_from_mu, epsilon_from_mu, mu_from_epsilon, rho_from_mu
from dpnb.accounting.exact import decimal_sqrt_down, exact
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.intervals import combine, confidence_sequence_radius, fixed_radius, tuned_tau
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers import MixtureOdometer, Sided

GROUPS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "cases.json").read_text())["groups"]


def literal(value: Any) -> Any:
    """Doubles as the Fractions they are; lists element by element."""
    return [literal(item) for item in value] if isinstance(value, list) else Fraction(value)


def _after(budget: Fraction, history: list[Fraction]) -> GDPFilter:
    state = GDPFilter(budget)
    for mu in history:
        state = state.step(GDP(mu)) if mu else state
    return state


def _left(budget: Fraction, history: list[Fraction]) -> float:
    return decimal_sqrt_down(_after(budget, history).affordable().mu_squared)


def _bound(sided: Sided) -> Callable[..., float]:
    def bound(V: Fraction, gamma: Fraction, delta1: Fraction) -> float:
        # The formula has a value at V = 0; the odometer reads 0 there, since nothing was released.
        return MixtureOdometer(gamma, delta1, sided).bound_at(V or Fraction(1, 10**300))

    return bound


def _v(mu_list: list[Fraction]) -> Fraction:
    state = MixtureOdometer(1, Fraction(1, 2))
    for mu in mu_list:
        state = state.step(GDP(mu))
    return state.v


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gdp_delta": lambda eps, mu: delta_from_mu(mu, epsilon=eps),
    "gdp_eps": lambda mu, delta: epsilon_from_mu(mu, delta=delta),
    "gdp_mu": lambda eps, delta: mu_from_epsilon(eps, delta=delta),
    "gdp_to_zcdp": rho_from_mu,
    "gdp_headroom": lambda mu_hist, mu0: _left(mu0, mu_hist),
    "V_gdp": _v,
    "odo_mixture": _bound("two"),
    "odo_mixture_onesided": _bound("one"),
    "mixture_gamma_opt": lambda V, delta1: MixtureOdometer.tuned(V, delta1, "two").gamma,
    "mixture_gamma_opt_onesided": lambda V, delta1: MixtureOdometer.tuned(V, delta1, "one").gamma,
    "refine_mu": lambda mu_a, mu_b: _left(mu_b, [mu_a]),
    "refine_sigma": lambda sensitivity, mu_a, mu_b: float(sensitivity) / _left(mu_b, [mu_a]),
    "combine": lambda ys, sigmas: combine([float(y) for y in ys], [float(s) for s in sigmas]),
    "cs_radius": lambda sigmas, tau, alpha: confidence_sequence_radius(
        [float(s) for s in sigmas], tau=tau, alpha=alpha
    ),
    "fixed_ci_radius": lambda sigmas, alpha: fixed_radius([float(s) for s in sigmas], alpha=alpha),
    "cs_tau_opt": lambda I_target, alpha: tuned_tau(I_target, alpha=alpha),
}
DECIDED_ELSEWHERE = {"gdp_log_delta", "gdp_filter", "odo_mixture_onesided_exact", "representation_traps"}


def _cases(*names: str) -> list[Any]:
    return [pytest.param(name, case, id=case["id"]) for name in names for case in GROUPS[name]["cases"]]


def test_every_group_is_compared() -> None:
    assert set(FUNCTIONS) | DECIDED_ELSEWHERE == set(GROUPS)


@pytest.mark.parametrize(("group", "case"), _cases(*FUNCTIONS))
def test_figure_is_reproduced_on_the_safe_side(group: str, case: dict[str, Any]) -> None:
    got = FUNCTIONS[group](**{name: literal(value) for name, value in case["args"].items()})
    expected = case["expected"]
    pairs = zip(got, expected, strict=True) if isinstance(expected, list) else [(got, expected)]
    for ours, theirs in pairs:
        value, truth = exact(ours), Fraction(theirs)
        slack = truth * (Fraction(1, 10**12) + Fraction(8 * case.get("cond", 1) * 2.3e-16))
        assert abs(value - truth) <= slack
        # A figure has 17 digits; beyond their last half unit the direction must be right.
        shown = truth * Fraction(1, 10**16)
        if GROUPS[group]["rounded"] == "up":
            assert value >= truth - shown
        if GROUPS[group]["rounded"] == "down":
            assert value <= truth + shown


@pytest.mark.parametrize(("group", "case"), _cases("gdp_log_delta"))
def test_curve_is_right_where_no_double_reaches(group: str, case: dict[str, Any]) -> None:
    mu, epsilon = literal(case["args"]["mu"]), literal(case["args"]["eps"])
    assert delta_from_mu(mu, epsilon=epsilon) == 5e-324
    log_delta = Fraction(case["expected"])
    if log_delta > -10_000:
        with mpmath.workdps(60):
            delta = mpmath.exp(mpmath.mpf(log_delta.numerator) / log_delta.denominator)
            written = mpmath.nstr(delta, 40)
        assert math.isclose(epsilon_from_mu(mu, delta=written), epsilon, rel_tol=1e-13)
    else:
        # Too small for any use: taken as no delta at all.
        assert epsilon_from_mu(mu, delta=Fraction(1, 2**150_000)) == math.inf


@pytest.mark.parametrize(("group", "case"), _cases("gdp_filter"))
def test_filter_decides_on_the_exact_numbers(group: str, case: dict[str, Any]) -> None:
    args = {name: literal(value) for name, value in case["args"].items()}
    decided = _after(args["mu0"], args["mu_hist"]).admits(GDP(args["mu_next"]))
    assert decided == (case["expected"] == "CONTINUE")


@pytest.mark.parametrize(("group", "case"), _cases("odo_mixture_onesided_exact"))
def test_closed_form_is_just_above_the_mixture_itself(group: str, case: dict[str, Any]) -> None:
    bound = _bound("one")(**{name: literal(value) for name, value in case["args"].items()})
    assert Fraction(case["expected"]) <= exact(bound) <= Fraction(case["expected"]) * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize(("group", "case"), _cases("representation_traps"))
def test_doubles_taken_literally_do_not_fit_where_their_decimals_do(group: str, case: dict[str, Any]) -> None:
    assert case["expected"] == "HALT"
    *before, last = case["args"]["values"]
    for read, fits in ((Fraction, False), (exact, True)):
        state = GDPFilter.from_loss(GDP.from_squared(case["args"]["budget"]))
        for value in before:
            state = state.step(GDP.from_squared(read(value)))
        assert state.admits(GDP.from_squared(read(last))) == fits
