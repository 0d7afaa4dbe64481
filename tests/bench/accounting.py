"""How fast filters, odometers and conversions are: ``make bench``.

Each figure is the best of several runs, beside what the same machine does in the same minute: a filter beside the bare
comparison of a float sum with a bound, and beside dp-accounting composing the same event; losses that never repeat
beside one that does; reading after 10,000 steps beside reading after 10.  First, without times, what is left of a
budget after a launch in pure DP and after a selection, and how far that falls short.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpnb._compile.marginals import Marginals
from dpnb._core.execution.selections import range_within
from dpnb.accounting import conversions
from dpnb.accounting.budget import Budget
from dpnb.accounting.convert import convert
from dpnb.accounting.filters import FILTERS as FILTERS_BY_NAME
from dpnb.accounting.filters import (
    ApproxDPFilter,
    BasicFilter,
    GDPFilter,
    RDPFilter,
    RogersFilter,
    ZCDPFilter,
)
from dpnb.accounting.grid import loss_up
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PureDP, PureGDP
from dpnb.accounting.odometers import FilterOdometer, MixtureOdometer, ReflectionOdometer, StitchedOdometer
from dpnb.accounting.prefix_sums import prefix_sum_scales, prefix_sums_norm_squared
from dpnb.interactive.above_threshold import AboveThresholdParameters
from dpnb.mechanisms.selection import ExponentialMechanism, PermuteAndFlip

STEPS = 20_000
RESIDUES = 200  # the charge of a launch is searched for
RUNS = 5

FILTERS: list[tuple[Any, Loss]] = [
    (BasicFilter(1000, 0.1), ApproxDP(0.001, 1e-9)),
    (RogersFilter(100, 1e-6), PureDP(0.001)),
    (ApproxDPFilter(100, conversion_delta=1e-6), PureDP(0.001)),
    (ApproxDPFilter(100, conversion_delta=1e-6), GDP(0.001)),
    (ZCDPFilter(100), ZCDP(0.001)),
    (ZCDPFilter(100), GDP(0.001)),
    (RDPFilter({8: 100}), RDP({8: 0.001})),
    (RDPFilter({2: 100, 8: 100, 64: 100}), RDP({2: 0.001, 8: 0.001, 64: 0.001})),
    (GDPFilter(10), GDP(0.001)),
]
CONVERTED: list[tuple[Any, Loss]] = [
    (BasicFilter(1000, 0.1), PureDP(0.001)),
    (RogersFilter(100, 1e-6), ApproxDP(0.001, 1e-12)),
    (ZCDPFilter(100), PureDP(0.001)),
    (RDPFilter({2: 100, 8: 100, 64: 100}), GDP(0.001)),
    (RDPFilter({2: 100, 8: 100, 64: 100}), PureDP(0.001)),
]
ODOMETERS: list[tuple[Any, Loss]] = [
    (FilterOdometer(1, 1e-6), GDP(0.001)),
    (MixtureOdometer.tuned(1, 1e-6), GDP(0.001)),
    (StitchedOdometer(0.01, 1e-6), GDP(0.001)),
]


CONVERSIONS: dict[str, Callable[[float], object]] = {
    "delta_from_mu": lambda x: conversions.delta_from_mu(x, epsilon=1),
    "epsilon_from_mu": lambda x: conversions.epsilon_from_mu(x / 3, delta=1e-6),
    "mu_from_epsilon": lambda x: conversions.mu_from_epsilon(x / 3, delta=1e-6),
    "epsilon_from_rho": lambda x: conversions.epsilon_from_rho(x / 3, delta=1e-6),
    "rho_from_epsilon": lambda x: conversions.rho_from_epsilon(x / 3, delta=1e-6),
    "residue_charge": lambda x: conversions.residue_charge(x / 10, mu_squared="0.056"),
    "mu_beside_reserve": lambda x: conversions.mu_beside_reserve(x, delta=1e-6, pure_epsilon="0.15"),
    "mu_from_pure": lambda x: conversions.mu_from_pure(x / 3),
}


def seconds(work: Callable[[], object]) -> float:
    """The best of several runs."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def stepped(state: Any, loss: Loss, steps: int = STEPS) -> Any:
    """The state after many steps."""
    for _ in range(steps):
        state = state.step(loss)
    return state


def fed(state: Any, losses: list[GDP]) -> Any:
    """The state after these losses."""
    for loss in losses:
        state = state.step(loss)
    return state


def reading(state: Any) -> float:
    """Seconds to read a filter's headroom or an odometer's bound."""
    name = "headroom" if hasattr(state, "headroom") else "bound"
    return seconds(lambda: [getattr(state, name) for _ in range(1000)]) / 1000


def float_sum() -> float:
    """What a filter would be without exactness, types and messages."""
    total, budget = 0.0, 1e9
    for _ in range(STEPS):
        if total + 0.001 > budget:
            raise ValueError
        total += 0.001
    return total


def composed() -> Any:
    """A peer's accountant, composing one event after another as an adaptive analyst must."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant()
    event = dp_event.GaussianDpEvent(1000)
    for _ in range(STEPS // 100):
        accountant.compose(event)
    return accountant


def saved_by_batches() -> list[tuple[str, float]]:
    """How many times the budget of a batch separate tables need for the same errors."""
    workloads = {
        "all six margins of 5 x 4 x 10": ((5, 4, 10), ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))),
        "5 x 4 with its margins and total": ((5, 4), ((0, 1), (0,), (1,), ())),
        "10 groups and their total": ((10,), ((0,), ())),
    }
    return [
        (name, len(tables) / float(Marginals(sizes, tables).optimal([1.0] * len(tables)).sum()))
        for name, (sizes, tables) in workloads.items()
    ]


def totals_over_time() -> None:
    """Print the standard deviation of the last of T cumulative counts at mu = 1, for a row in one step."""
    print(f"{'last of T cumulative counts at mu 1':<28}{'square root':>13}{'noisy counts':>14}{'binary tree':>13}")
    for steps in (12, 24, 100, 365, 1024):
        root = prefix_sums_norm_squared(steps) ** 0.5 * float(prefix_sum_scales(steps)[-1])
        levels = math.ceil(math.log2(steps)) + 1  # each is a histogram, and a total has up to one node on each but one
        print(f"{steps:<28}{root:>13.2f}{steps**0.5:>14.2f}{(levels * (levels - 1)) ** 0.5:>13.2f}")
    print()


def what_is_left() -> None:
    """Print what a pure-DP launch leaves of a budget, and what a reserve leaves for Gaussian releases."""
    print(f"{'left after one launch':<28}{'epsilon':>9}{'converted alone':>17}{'residue':>10}")
    for epsilon in (1, 2):
        budget = Budget(epsilon, 1e-6)
        for launch in (PureDP(e) for e in ("0.05", "0.1", "0.15", "0.2", "0.3")):
            fresh = GDPFilter.from_loss(budget.loss)
            each = (convert(launch, GDP), launch)
            texts = [f"{fresh.step(one).headroom:.1%}" if fresh.admits(one) else "refused" for one in each]
            print(f"{budget!r:<28}{float(launch.epsilon):>9}{texts[0]:>17}{texts[1]:>10}")
    print(
        f"\n{'largest of 20 groups, (1, 1e-6)':<34}{'left, as one loss':>19}{'left':>8}{'falls short by':>16}", end=""
    )
    print(f"{'permute-and-flip':>18}")
    for name, (winners, epsilon) in itertools.product(("gdp", "zcdp"), ((1, "0.1"), (5, "0.15"), (10, "0.2"))):
        fresh = FILTERS_BY_NAME[name].from_budget(Budget(1, 1e-6))
        pure = PermuteAndFlip(20, winners, Fraction(epsilon))
        other = ExponentialMechanism(20, winners, range_within(fresh, pure.loss))
        one = f"{fresh.step(PureDP(epsilon)).headroom:.1%}" if fresh.admits(PureDP(epsilon)) else "refused"
        widths = [choice.shortfall(Fraction(1, 20)) for choice in (other, pure)]
        left = f"{fresh.step(other.loss).headroom:.1%}"
        print(f"{f'top({winners}) at {epsilon}, {name}':<34}{one:>19}{left:>8}{widths[0]:>16}{widths[1]:>18}")
    print(f"\n{'reserve, under epsilon 1, delta 1e-6':<44}{'releases at sigma 70':>22}")
    for reserve in ("0", "0.05", "0.1", "0.15", "0.2", "0.3"):
        budget = Budget(1, 1e-6, pure_epsilon=reserve)
        both = GDPFilter.from_loss(PureGDP.of(budget.loss.mu_squared, Fraction(0), budget.pure_epsilon))
        print(f"{reserve:<44}{both.max_repetitions(GDP(Fraction(1, 70))):>22}")
    print()


def scans_and_odometers() -> None:
    """Print what a scan with several positives takes from (1, 1e-6), and odometers when that budget is spent."""
    mu_squared = Budget(1, 1e-6).loss.mu_squared
    fresh = GDPFilter.from_loss(Budget(1, 1e-6).loss)
    print(f"{'scan, epsilon 0.05 for each positive':<40}{'new thresholds':>16}{'one, as reliable':>18}{'margin':>8}")
    for positives in (1, 5, 10):
        each = AboveThresholdParameters(Fraction(1, 20) * positives, positives, thresholds=positives)
        one = AboveThresholdParameters(each.epsilon, positives)
        ratio = one.margin(100, 0.05) / each.margin(100, 0.05)  # margins are proportional to 1/epsilon
        as_reliable = loss_up(PureDP(one.epsilon * ratio))
        taken = [f"{fresh.budget_fraction(loss):.1%}" for loss in (each.loss, as_reliable) if fresh.admits(loss)]
        texts = [*taken, "refused"][:2]
        print(f"{positives:<40}{texts[0]:>16}{texts[1]:>18}{float(each.margin(100, 0.05)):>8.0f}")
    print(f"\n{'odometer when epsilon 1, delta 1e-6 is spent':<44}{'reading':>12}")
    for odometer in (
        MixtureOdometer.tuned(mu_squared, 1e-6),
        FilterOdometer.tuned(mu_squared, 1e-6),
        ReflectionOdometer(mu_squared, 1e-6),
    ):
        print(f"{type(odometer).__name__:<44}{odometer.bound_at(mu_squared):>12.3f}")
    print()


def main() -> None:
    """Print the tables."""
    what_is_left()
    totals_over_time()
    scans_and_odometers()
    bare = seconds(float_sum) / STEPS
    peer = seconds(composed) / (STEPS // 100)
    print(f"{'step':<44}{'a second':>12}{'float sums':>12}{'dp-accounting':>15}")
    for fresh, loss in [*FILTERS, *CONVERTED, *ODOMETERS]:
        each = seconds(lambda fresh=fresh, loss=loss: stepped(fresh, loss)) / STEPS  # type: ignore[misc]
        name = f"{type(fresh).__name__} of {loss!r}"
        slow = "  below 100,000" if each > 1e-5 else ""
        print(f"{name[:43]:<44}{1 / each:>12,.0f}{each / bare:>11.0f}x{each / peer:>14.3f}x{slow}")
    each = seconds(lambda: stepped(GDPFilter(10), PureDP(0.001), RESIDUES)) / RESIDUES
    print(f"{'GDPFilter of a launch':<44}{1 / each:>12,.0f}{each / bare:>11.0f}x{each / peer:>14.3f}x")
    print(f"\n{'step, no loss like another':<44}{'a second':>12}{'ratio':>12}")
    different = [GDP(Fraction(1000 + i % 997, 10**6) + Fraction(i, 10**12)) for i in range(STEPS)]
    for fresh in (GDPFilter(10), ZCDPFilter(100), RDPFilter({2: 100, 8: 100, 64: 100})):
        same, other = seconds(lambda f=fresh: stepped(f, different[0])), seconds(lambda f=fresh: fed(f, different))  # type: ignore[misc]
        print(f"{type(fresh).__name__:<44}{STEPS / other:>12,.0f}{other / same:>11.2f}x")
    print(f"\n{'reading, after 10,000 steps beside after 10':<44}{'a second':>12}{'ratio':>12}")
    for fresh, loss in [*FILTERS, *ODOMETERS]:
        few, many = stepped(fresh, loss, 10), stepped(fresh, loss, 10_000)
        short, long = reading(few), reading(many)
        print(f"{type(fresh).__name__:<44}{1 / long:>12,.0f}{long / short:>11.2f}x")
    print(f"\n{'conversion':<44}{'a second':>12}")
    for name, work in CONVERSIONS.items():
        start = time.perf_counter()  # each argument once: results are kept
        for i in range(100):
            work(1 + i / 1000)
        print(f"{name:<44}{100 / (time.perf_counter() - start):>12,.0f}")
    print(f"\n{'separate tables beside a batch, same errors':<44}{'budget':>12}")
    for name, ratio in saved_by_batches():
        print(f"{name:<44}{ratio:>11.3f}x")


if __name__ == "__main__":
    main()
