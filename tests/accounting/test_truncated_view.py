"""The truncated view: what it keeps, and that what it keeps is as private as its threshold says.

The guarantees are compared with exact distributions.  An adversary chooses the next launch because of the answers so
far, and the probabilities of every truncated view under two neighbours are added up (randomised response) or integrated
(Gaussian answers).  The control compares the state before the launch, as Haney et al. 2023, Definition 1.13 is printed.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpnb.accounting import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    ApproxDPAccumulator,
    BasicOdometer,
    Filter,
    FilterOdometer,
    GDPAccumulator,
    GDPFilter,
    Loss,
    MixtureOdometer,
    PureDP,
    RDPAccumulator,
    RDPFilter,
    RenyiOdometer,
    RenyiTracker,
    RogersOdometer,
    SpentAccumulator,
    StitchedOdometer,
    TruncatedView,
    ZCDPAccumulator,
    ZCDPFilter,
)
from dpnb.accounting.conversions import delta_from_mu
from dpnb.accounting.exact import exact
from dpnb.errors import ConversionError, DpnbError, InvalidValueError
from rationals import fractions

# --- what it keeps ----------------------------------------------------------------------------------------------------


def test_a_launch_counts_before_its_message_is_kept() -> None:
    view = TruncatedView(ZCDPAccumulator(), 0.5)
    assert view.step(ZCDP(0.5), "fits exactly").messages == ("fits exactly",)
    assert view.step(ZCDP(100), "too large").messages == ()
    assert view.step(ZCDP(100), "too large").truncated


def test_nothing_is_kept_after_the_cut_neither_cheaper_launches_nor_messages_of_earlier_ones() -> None:
    view = TruncatedView(GDPAccumulator(), 0.5).step(GDP(0.3), "a").append("b").step(GDP(0.41), "c")
    assert view.truncated
    assert (view.step(GDP(0), "d"), view.append("e"), view.step(GDP(0.1), "f")) == (view, view, view)
    assert view.messages == ("a", "b")
    assert view.odometer == GDPAccumulator().step(GDP(0.3)), "the launch that was cut is not counted"


def test_a_launch_may_return_several_messages_or_none() -> None:
    view = TruncatedView(ZCDPAccumulator(), 1).step(PureDP(0.5)).step(PureDP(0.5), "a", "b").append("c")
    assert view.messages == ("a", "b", "c")


def test_a_history_without_messages_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"history: must consist of pairs .* got GDP\(mu=0\.3\); write"):
        TruncatedView.from_history(GDPAccumulator(), 0.5, [GDP(0.3)])  # type: ignore[list-item]


def test_threshold_of_zero_keeps_what_costs_nothing() -> None:
    view = TruncatedView(ZCDPAccumulator(), 0).append("public").step(ZCDP(0), "constant").step(ZCDP("1e-30"), "noisy")
    assert (view.messages, view.truncated) == (("public", "constant"), True)


def test_a_tracker_whose_first_increment_exceeds_the_threshold_keeps_nothing() -> None:
    view = TruncatedView(RenyiTracker(8, 0.5), 0.4)
    assert view.truncated
    assert view.append("a").step(GDP(0), "b").messages == ()


def test_an_odometer_without_a_bound_keeps_nothing() -> None:
    assert TruncatedView(ApproxDPAccumulator(1e-6, 1e-7), 10).truncated
    over = TruncatedView(BasicOdometer(1e-6), 10).step(ApproxDP(0.1, 1e-6), "a").step(ApproxDP(0, 1e-9), "b")
    assert (over.messages, over.truncated) == (("a",), True)


KINDS: list[tuple[Any, Callable[[Fraction], Filter], Callable[[Fraction], Loss]]] = [
    (ZCDPAccumulator(), ZCDPFilter, ZCDP),
    (GDPAccumulator(), GDPFilter, GDP),
    (RDPAccumulator(8), lambda rho: RDPFilter({8: rho}), lambda rho: RDP({8: rho})),
]
decimals = st.integers(0, 60).map(lambda n: Fraction(n, 100))


@pytest.mark.parametrize(("odometer", "filter_", "loss"), KINDS)
@given(history=st.lists(decimals, max_size=10), threshold=decimals)
def test_it_ends_where_a_filter_with_that_budget_first_refuses(
    odometer: Any, filter_: Any, loss: Any, history: list[Fraction], threshold: Fraction
) -> None:
    view = TruncatedView.from_history(odometer, threshold, [(loss(size), i) for i, size in enumerate(history)])
    state, kept = filter_(threshold), []
    for i, size in enumerate(history):
        if not state.admits(loss(size)):
            break
        state, kept = state.step(loss(size)), [*kept, i]
    assert view.messages == tuple(kept)
    assert view.truncated == (len(kept) < len(history))
    assert view.guarantee == loss(threshold)


ODOMETERS: dict[str, Any] = {
    "zcdp": ZCDPAccumulator(),
    "gdp": GDPAccumulator(),
    "rdp": RDPAccumulator(4),
    "tracker": RenyiTracker(4, "0.1"),
    "approx-dp": ApproxDPAccumulator(0.05, 0.05),
    "mixture": MixtureOdometer.tuned(0.5, 0.05),
    "line": FilterOdometer(1, 0.05),
    "stitched": StitchedOdometer(0.1, 0.05),
    "renyi": RenyiOdometer(4, 0.05),
    "rogers": RogersOdometer(1000, 0.05),
    "basic": BasicOdometer(0.05),
}


@pytest.mark.parametrize("name", ODOMETERS)
@given(
    sizes=st.lists(fractions(0, "1/10", max_denominator=100), max_size=10),
    small=fractions(0, 3, max_denominator=50),
    more=fractions(0, 3, max_denominator=50),
)
def test_a_smaller_threshold_keeps_a_part_and_the_bound_is_always_within_it(
    name: str, sizes: list[Fraction], small: Fraction, more: Fraction
) -> None:
    history = [(PureDP(size) if i % 3 else None, i) for i, size in enumerate(sizes)]
    views = [TruncatedView.from_history(ODOMETERS[name], threshold, history) for threshold in (small, small + more)]
    assert views[1].messages[: len(views[0].messages)] == views[0].messages
    for view in views:
        assert view.messages == tuple(range(len(view.messages)))
        assert view.truncated == (len(view.messages) < len(sizes)) or not sizes
        assert not view.messages or exact(view.odometer.bound) <= view.threshold


# --- what it is worth, exactly ----------------------------------------------------------------------------------------

Course = tuple[float, float]
SIZES = [Fraction(3, 5), Fraction(3, 10), Fraction(9, 10)]


class OldState(TruncatedView):
    """As printed: the state before the launch is compared."""

    def step(self, loss: Loss, *messages: object) -> Any:
        if self.truncated or exact(self.odometer.bound) > self.threshold:
            return self._changed(truncated=True)
        return self._changed(odometer=self.odometer.step(loss), messages=(*self.messages, *messages))


def courses(view: TruncatedView, sizes: Sequence[Fraction] = SIZES, p: float = 1.0, q: float = 1.0) -> Iterator[Course]:
    """The probabilities of all truncated views; the adversary goes on boldly when the evidence is for P."""
    number = len(view.messages)
    after = view.step(PureDP(sizes[(number + (p > q) + 2 * (p > 2 * q)) % len(sizes)]), None)
    if after.truncated or number == 9:
        yield p, q
        return
    truth = 1 / (1 + math.exp(-float(sizes[(number + (p > q) + 2 * (p > 2 * q)) % len(sizes)])))
    for a, b in ((truth, 1 - truth), (1 - truth, truth)):
        yield from courses(after, sizes, p * a, q * b)


def delta_at(leaves: Sequence[Course], epsilon: float) -> float:
    return max(
        math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)
        for pairs in (leaves, [(q, p) for p, q in leaves])
    )


def renyi(order: float, leaves: Sequence[Course]) -> float:
    return max(
        math.log(math.fsum(p * (p / q) ** (order - 1) for p, q in pairs)) / (order - 1)
        for pairs in (leaves, [(q, p) for p, q in leaves])
    )


def keeps(leaves: Sequence[Course], guarantee: Loss) -> bool:
    """Whether the distributions of the views are as close as the guarantee says."""
    near = 1 + 1e-9
    if isinstance(guarantee, ZCDP):
        return all(renyi(a, leaves) <= a * float(guarantee.rho) * near for a in (1.01, 2, 8, 64))
    if isinstance(guarantee, RDP):
        return all(renyi(float(a), leaves) <= float(rho) * near for a, rho in guarantee.curve)
    if isinstance(guarantee, GDP):
        epsilons = np.linspace(0, 5, 26)
        return all(delta_at(leaves, e) <= delta_from_mu(guarantee.mu, epsilon=float(e)) + 1e-12 for e in epsilons)
    assert isinstance(guarantee, ApproxDP)
    return delta_at(leaves, float(guarantee.epsilon)) <= float(guarantee.delta) + 1e-12


THRESHOLDS = {"zcdp": "0.6", "gdp": "1.5", "rdp": "2.2", "tracker": "2.2", "stitched": "5", "rogers": "18"}
"""In the odometer's measure; 3.5 for the others."""


@pytest.mark.parametrize("name", ODOMETERS)
@pytest.mark.parametrize("factor", ["0.4", "1"])
def test_the_view_of_an_adaptive_adversary_is_within_its_guarantee(name: str, factor: str) -> None:
    threshold = Fraction(THRESHOLDS.get(name, "3.5")) * Fraction(factor)
    view = TruncatedView(ODOMETERS[name], threshold)
    leaves = list(courses(view))
    assert math.fsum(p for p, _ in leaves) == pytest.approx(1)
    assert keeps(leaves, view.guarantee)
    assert len(leaves) > 2 or factor != "1", "some messages are kept"


@pytest.mark.parametrize("name", [name for name in ODOMETERS if name != "tracker"])
def test_control_a_view_that_compares_the_state_before_the_launch_is_not(name: str) -> None:
    threshold, large = Fraction(THRESHOLDS.get(name, "3.5")), [Fraction(20)]
    view = OldState(ODOMETERS[name], threshold)
    assert not keeps(list(courses(view, large)), view.guarantee)
    assert keeps(list(courses(TruncatedView(ODOMETERS[name], threshold), large)), view.guarantee)


MU0 = 1.0


def gaussian_delta(view_of: Callable[..., TruncatedView], second: Callable[[float], float], epsilon: float) -> float:
    """Delta of two Gaussian answers at mu 0.3 and `second` of the first one's evidence, by the trapezium rule."""
    first = 0.3
    z = np.linspace(-9, 9, 4001)
    x = first**2 / 2 + first * z
    weight, left = stats.norm.pdf(z) * (z[1] - z[0]), epsilon - x
    mus = np.array([second(float(one)) for one in x])
    start = view_of(GDPAccumulator(), MU0).step(GDP(first), "first")
    kept = {mu: len(start.step(GDP(mu), "second").messages) == 2 for mu in np.unique(mus)}
    both = stats.norm.cdf(mus / 2 - left / mus) - np.exp(left) * stats.norm.cdf(-mus / 2 - left / mus)
    one = np.maximum(0.0, -np.expm1(left))
    return float(weight @ np.where([kept[mu] for mu in mus], both, one))


def _bold_when_behind(x: float) -> float:
    """The whole rest of the budget, or more than that, which a view that counts the launch does not keep."""
    return 0.95 if x < 0.1 else 2.5


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_gaussian_answers_of_an_adaptive_adversary_stay_within_gdp(epsilon: float) -> None:
    allowed = delta_from_mu(MU0, epsilon=epsilon)
    assert gaussian_delta(TruncatedView, _bold_when_behind, epsilon) <= allowed
    assert gaussian_delta(OldState, _bold_when_behind, epsilon) > 1.5 * allowed
    whole = gaussian_delta(TruncatedView, lambda _: math.floor(math.sqrt(MU0 - 0.09) * 1e9) / 1e9, epsilon)
    assert whole == pytest.approx(allowed, rel=1e-6), "nothing is lost when the threshold is used up"


def test_control_a_threshold_that_the_answers_choose_proves_nothing() -> None:
    """Ending where the answers look good and calling the bound at that moment the threshold."""
    leaves: list[Course] = []

    def go_on(p: float, q: float, number: int) -> None:
        if number == 8 or p / q > 1.5:
            leaves.append((p, q))
            return
        truth = 1 / (1 + math.exp(-0.5))
        go_on(p * truth, q * (1 - truth), number + 1)
        go_on(p * (1 - truth), q * truth, number + 1)

    go_on(1.0, 1.0, 0)
    early = ZCDPAccumulator().step(PureDP(0.5))
    assert not keeps(leaves, TruncatedView(ZCDPAccumulator(), early.bound).guarantee)
    eight = ZCDPAccumulator()
    for _ in range(8):
        eight = eight.step(PureDP(0.5))
    assert keeps(leaves, TruncatedView(ZCDPAccumulator(), eight.bound).guarantee)


# --- the object -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ODOMETERS)
def test_guarantee_is_the_threshold_in_the_kind_of_the_odometer(name: str) -> None:
    expected = {
        "zcdp": ZCDP(0.5), "gdp": GDP(0.5), "rdp": RDP({4: 0.5}), "tracker": RDP({4: 0.5}),
    }.get(name, ApproxDP(0.5, 0.05))  # fmt: skip
    assert TruncatedView(ODOMETERS[name], 0.5).guarantee == expected


def test_the_delta_of_a_time_uniform_odometer_includes_its_slack() -> None:
    view = TruncatedView(MixtureOdometer.tuned(1, 1e-6, slack_delta=1e-7), 3)
    assert view.guarantee == ApproxDP(3, "1.1e-6")


def test_threshold_is_rounded_down_to_a_double_and_never_over_counts() -> None:
    view = TruncatedView(ZCDPAccumulator(), Fraction(1, 3))
    assert Fraction(1, 3) * (1 - Fraction(1, 2**52)) <= view.threshold < Fraction(1, 3)
    assert view.guarantee == ZCDP(view.threshold)
    assert view.step(ZCDP(Fraction(1, 3)), "above it").truncated


def test_words() -> None:
    view = TruncatedView(GDPAccumulator(), 0.5)
    assert view.statement() == (
        "The view has not ended; its 0 messages are within GDP(mu=0.5), and so is every continuation that is cut at "
        "the threshold."
    )
    assert repr(view) == (
        "TruncatedView(threshold=0.5, messages=0, truncated=False, odometer=GDPAccumulator(mu_squared=0.0))"
    )


def test_it_cannot_be_changed_in_place_and_can_be_pickled() -> None:
    view = TruncatedView(RenyiTracker(8, 1), 2).step(GDP(0.3), "a")
    assert pickle.loads(pickle.dumps(view)) == view
    for name in ("messages", "threshold", "anything"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(view, name, ())


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: TruncatedView(SpentAccumulator(GDPFilter(1)), 1), r"^odometer: must be an accumulator or a time-"),
        (lambda: TruncatedView(GDPFilter(1), 1), r"^odometer: must be .*got GDPFilter.*give for example"),
        (lambda: TruncatedView(ZCDPAccumulator(), -1), r"^threshold must not be negative"),
        (lambda: TruncatedView(ZCDPAccumulator(), math.inf), r"^threshold must be a finite number"),
        (lambda: TruncatedView(ZCDPAccumulator(), "x"), r"^threshold must be a finite number"),
    ],
)
def test_what_makes_no_view_is_refused(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(InvalidValueError, match=match):
        make()


def test_a_loss_that_the_odometer_cannot_count_is_an_error_and_not_a_message() -> None:
    view = TruncatedView(ZCDPAccumulator(), 1)
    for loss in (RDP({2: 0.1}), GDP(0.1, 1e-9), "no loss"):
        with pytest.raises(DpnbError) as error:
            view.step(loss, "a")  # type: ignore[arg-type]
        assert isinstance(error.value, ConversionError)
    assert view.messages == ()


# --- losses with a delta ----------------------------------------------------------------------------------------------


def leaking(view: TruncatedView, losses: Sequence[ApproxDP], p: float = 1.0, q: float = 1.0) -> Iterator[Course]:
    """As `courses`, with the worst (epsilon, delta)-DP mechanisms, which give the table away with probability delta."""
    number = len(view.messages)
    loss = losses[(number + (p > q) + 2 * (p > 2 * q)) % len(losses)]
    after = view.step(loss, None)
    if after.truncated or number == 9:
        yield p, q
        return
    epsilon, delta = float(loss.epsilon), float(loss.delta)
    yield p * delta, 0.0
    yield 0.0, q * delta
    truth = (1 - delta) / (1 + math.exp(-epsilon))
    lie = (1 - delta) - truth
    for a, b in ((truth, lie), (lie, truth)):
        yield from leaking(after, losses, p * a, q * b)


LEAKING: dict[str, Any] = {
    "approx-dp": ApproxDPAccumulator(0.02, 0.06),
    "mixture": MixtureOdometer.tuned(0.5, 0.02, slack_delta=0.04),
    "line": FilterOdometer(1, 0.02, slack_delta=0.04),
    "stitched": StitchedOdometer(0.1, 0.02, slack_delta=0.04),
    "basic": BasicOdometer(0.06),
}


@pytest.mark.parametrize("name", LEAKING)
@pytest.mark.parametrize("threshold", ["1", "2", "4"])
def test_views_of_losses_with_a_delta_are_within_their_guarantee(name: str, threshold: str) -> None:
    losses = [ApproxDP("0.5", "0.015"), ApproxDP("0.2"), ApproxDP("0.3", "0.005"), ApproxDP("0", "0.02")]
    view = TruncatedView(LEAKING[name], threshold)
    leaves = list(leaking(view, losses))
    assert math.fsum(p for p, _ in leaves) == pytest.approx(1)
    assert view.guarantee == ApproxDP(threshold, "0.06")
    assert keeps(leaves, view.guarantee)
    assert len(leaves) > 8 or threshold != "4"


@pytest.mark.parametrize("name", ["approx-dp", "basic"])
def test_control_a_view_that_forgets_deltas_is_not(name: str) -> None:
    class Forgetful(TruncatedView):
        def step(self, loss: Loss, *messages: object) -> Any:
            return super().step(PureDP(loss.epsilon), *messages)  # type: ignore[attr-defined]

    losses = [ApproxDP("0.05", "0.05")]
    view = Forgetful(LEAKING[name], "0.4")
    assert not keeps(list(leaking(view, losses)), view.guarantee)
    assert keeps(list(leaking(TruncatedView(LEAKING[name], "0.4"), losses)), view.guarantee)
