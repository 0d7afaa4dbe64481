"""The time-uniform odometers: the contract, the losses' deltas, the words, the parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from contracts.odometers import SumOdometerContract
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import Number
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PointwiseDP, PureDP
from dpnb.accounting.odometers import (
    BasicOdometer,
    FilterOdometer,
    MixtureOdometer,
    RenyiOdometer,
    RogersOdometer,
    StitchedOdometer,
)
from dpnb.errors import ConversionError, InvalidValueError

#: The odometers in V, with 1% set aside for the losses' deltas.
IN_V: list[Callable[[], Any]] = [
    lambda: FilterOdometer("0.003", 0.01, slack_delta=0.01),
    lambda: MixtureOdometer.tuned("1e-6", 0.01, slack_delta=0.01),
    lambda: MixtureOdometer.tuned("1e-6", 0.01, "two", slack_delta=0.01),
    lambda: StitchedOdometer("1e-6", 0.01, slack_delta=0.01),
]


class TestLine(SumOdometerContract):
    def fresh(self) -> FilterOdometer:
        return FilterOdometer(1, 1e-6)

    def loss(self, size: Fraction) -> ZCDP:
        return ZCDP(size)


class TestOneSidedMixture(SumOdometerContract):
    def fresh(self) -> MixtureOdometer:
        return MixtureOdometer.tuned(1, delta=1e-6)

    def loss(self, size: Fraction) -> GDP:
        return GDP.from_mu_squared(size)


class TestTwoSidedMixture(SumOdometerContract):
    def fresh(self) -> MixtureOdometer:
        return MixtureOdometer("0.02", delta=1e-6, sided="two", slack_delta=1e-6)

    def loss(self, size: Fraction) -> ApproxDP:
        return ApproxDP(size, size / 10**14)


class TestStitched(SumOdometerContract):
    def fresh(self) -> StitchedOdometer:
        return StitchedOdometer("0.01", 1e-6, slack_delta=1e-6)

    def loss(self, size: Fraction) -> PointwiseDP:
        return PointwiseDP(size, size / 10**14)


class TestRogers(SumOdometerContract):
    def fresh(self) -> RogersOdometer:
        return RogersOdometer(1000, 1e-6)

    def loss(self, size: Fraction) -> ApproxDP:
        return ApproxDP(size, size / 10**14)


class TestRenyi(SumOdometerContract):
    def fresh(self) -> RenyiOdometer:
        return RenyiOdometer(8, 1e-6)

    def loss(self, size: Fraction) -> RDP:
        return RDP({8: size})


class TestBasic(SumOdometerContract):
    def fresh(self) -> BasicOdometer:
        return BasicOdometer(1e-6)

    def loss(self, size: Fraction) -> ApproxDP:
        return ApproxDP(size, size / 10**14)


@pytest.mark.parametrize("make", IN_V)
def test_each_kind_of_loss_adds_its_own_share_of_v(make: Callable[[], Any]) -> None:
    losses = [GDP(0.3), ZCDP(0.3), PureDP(0.3), ApproxDP(0.3, 1e-6), PointwiseDP(0.3, 1e-6)]
    expected = ["0.09", "0.6", "0.09", "0.09", "0.09"]
    assert [make().step(loss).v for loss in losses] == [Fraction(v) for v in expected]


@pytest.mark.parametrize("make", IN_V)
@given(epsilon=st.floats(1e-6, 10))
def test_converting_a_dp_loss_to_zcdp_first_reads_no_more(make: Callable[[], Any], epsilon: float) -> None:
    loss = PureDP(epsilon)
    assert make().step(convert(loss, ZCDP)).bound <= make().step(loss).bound


@pytest.mark.parametrize("make", IN_V)
def test_renyi_losses_of_some_orders_are_refused_by_the_odometers_in_v(make: Callable[[], Any]) -> None:
    with pytest.raises(ConversionError, match="use RenyiOdometer"):
        make().step(RDP({2: 0.1}))


@pytest.mark.parametrize("loss", [GDP(0.1, 0.004), ZCDP(0.1, 0.004), ApproxDP(0.1, 0.004), PointwiseDP(0.1, 0.004)])
@pytest.mark.parametrize("make", IN_V)
def test_deltas_may_fill_what_is_set_aside_exactly_and_no_more(make: Callable[[], Any], loss: Loss) -> None:
    full = make().step(loss).step(loss).step(ApproxDP(0, 0.002))
    assert math.isfinite(full.bound)
    over = full.step(ApproxDP(0, "1e-300"))
    assert over.bound == math.inf
    assert over.step(GDP(1)).bound == math.inf
    assert "more than was set aside" in over.statement()


def test_what_is_set_aside_lowers_the_confidence_and_not_the_curve() -> None:
    plain, aside = MixtureOdometer("0.02", 0.01), MixtureOdometer("0.02", 0.01, slack_delta=0.04)
    assert plain.bound_at(1) == aside.bound_at(1)
    assert "confidence 99%" in plain.step(GDP(1)).statement()
    assert "confidence 95%" in aside.step(GDP(1)).statement()


def test_statement_about_approximate_losses_is_about_a_view_that_determines_the_answers() -> None:
    # A DP release's own realised loss may exceed every bound; that of the view it is computed from does not.
    odometer = MixtureOdometer("0.02", 0.01, slack_delta=0.01)
    assert "loss of the answers and of the hidden coins behind them" in odometer.step(ApproxDP(0.1, 1e-6)).statement()
    for loss in (PointwiseDP(0.1, 1e-6), PureDP(0.1), GDP(0.1)):
        assert "view" not in odometer.step(loss).statement()


@pytest.mark.parametrize("make", [*IN_V, lambda: RogersOdometer(1000, 0.02)])
def test_pointwise_dp_losses_as_small_as_their_deltas_stay_below_the_bound(make: Callable[[], Any]) -> None:
    # A pair that gives y1 surely, or y1 with probability e^-epsilon and else y2, is (epsilon, 1 - e^-epsilon) pointwise
    # DP, and its loss is epsilon surely.  After a hundred of them the loss is 0.01, above the printed Theorem 3 of
    # Whitehouse et al. 2023, which is what the odometer reads for (epsilon, delta)-DP.
    epsilon = Fraction(1, 10**4)
    delta = Fraction(str(mpmath.mpf(1) - mpmath.exp(-mpmath.mpf(1) / 10**4)))
    corrected, printed = make(), make()
    for n in range(1, 101):
        corrected, printed = corrected.step(PointwiseDP(epsilon, delta)), printed.step(ApproxDP(epsilon, delta))
        assert corrected.bound >= n * epsilon
    assert printed.bound < 0.01 <= corrected.bound < math.inf


@given(losses=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e-3)), max_size=5))
def test_correction_for_pointwise_losses_is_the_sum_of_their_deltas(losses: list[tuple[float, float]]) -> None:
    pointwise, approx = MixtureOdometer(1, 0.01, slack_delta=0.01), MixtureOdometer(1, 0.01, slack_delta=0.01)
    for epsilon, delta in losses:
        pointwise, approx = pointwise.step(PointwiseDP(epsilon, delta)), approx.step(ApproxDP(epsilon, delta))
    deltas = sum((Fraction(str(delta)) for _, delta in losses), Fraction(0))
    exact_sum = Fraction(approx.bound) + deltas
    assert exact_sum <= Fraction(pointwise.bound) <= exact_sum * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("n", [2, 1000])
@pytest.mark.parametrize("delta", [1e-6, 1e-12, 1e-15])
@pytest.mark.parametrize("share", ["0.999", "1", "2", "1e3"])
def test_rogers_bound_is_beyond_the_quantile_of_a_gaussian_loss(n: int, delta: float, share: str) -> None:
    # With tiny steps the loss at a fixed time is N(S/2, S).  The restatement of the outer branch in Whitehouse et al.
    # 2023, Lemma 3, has log log where one log belongs, and falls below this quantile.
    root = math.sqrt(Fraction(share)) / n
    state = RogersOdometer(n, delta).step(PureDP(Fraction(root)))
    deviations = (state.bound - float(state.means)) / root
    assert deviations > stats.norm.isf(delta)
    if share == "0.999" and n == 1000:
        log_log = math.log(math.log(8 / delta * math.log2(n)))
        printed = math.sqrt(2 * (1 + 1 / 0.999) * (1 + math.log1p(0.999) / 2) * log_log)
        assert printed < stats.norm.isf(delta)


def test_rogers_odometer_has_half_of_delta_for_the_losses_deltas() -> None:
    odometer = RogersOdometer(1000, 1e-6).step(ApproxDP(0.1, "5e-7"))
    assert math.isfinite(odometer.bound)
    assert odometer.step(ApproxDP(0, "1e-300")).bound == math.inf


def test_rogers_odometer_is_infinite_where_the_mean_exceeds_every_double() -> None:
    assert RogersOdometer(1000, 1e-6).step(PureDP(1000)).bound == math.inf
    assert "No number is known" in RogersOdometer(1000, 1e-6).step(PureDP(1000)).statement()


def test_basic_odometer_is_the_plain_sum_until_delta_is_full() -> None:
    odometer = BasicOdometer(1e-6).step(PureDP(0.1)).step(ApproxDP(0.2, 1e-6))
    assert odometer.bound == 0.3
    assert odometer.step(PointwiseDP(0, "1e-300")).bound == math.inf
    assert BasicOdometer(1e-6).step(PointwiseDP(0.2, 1e-6)).bound == 0.2
    assert "confidence 100%" in BasicOdometer(0).step(PureDP(0.1)).statement()


@pytest.mark.parametrize("loss", [GDP(0.1), ZCDP(0.1), RDP({2: 0.1})])
@pytest.mark.parametrize("odometer", [RogersOdometer(1000, 1e-6), BasicOdometer(1e-6)])
def test_odometers_of_epsilons_ask_for_a_conversion_chosen_beforehand(odometer: Any, loss: Loss) -> None:
    with pytest.raises(ConversionError, match="chosen beforehand"):
        odometer.step(loss)


def test_renyi_odometer_counts_what_has_renyi_divergences_and_nothing_else() -> None:
    odometer = RenyiOdometer(8, 1e-6).step(GDP(1)).step(ZCDP(0.5)).step(RDP({2: 1, 8: 4})).step(PureDP("0.1"))
    assert 12 < odometer.rho < Fraction("12.05")
    for loss in (GDP(1, 1e-9), ApproxDP(1, 1e-9), RDP({2: 1})):
        with pytest.raises(ConversionError):
            odometer.step(loss)


@pytest.mark.parametrize(
    ("delta", "confidence"),
    [
        (0.05, "95%"),
        (1e-6, "99.9999%"),
        ("1.5e-6", "99.99985%"),
        (0.3, "70%"),
        ("1e-30", "1 - 1e-30"),
        ("1/3", "66.6%"),
    ],
)
def test_statement_gives_confidence_and_bound_in_words(delta: Number, confidence: str) -> None:
    said = MixtureOdometer("0.02", delta).step(GDP(0.1)).statement()
    assert said.startswith(f"With confidence {confidence}, the privacy loss so far is at most ")
    assert said.endswith(", at whatever moment you look.")


@given(mu=st.floats(1e-9, 1e9), delta=st.floats(1e-40, 0.49), slack=st.floats(0, 0.49))
def test_confidence_in_a_statement_never_flatters(mu: float, delta: float, slack: float) -> None:
    odometer = MixtureOdometer.tuned(1, delta, slack_delta=slack).step(GDP(mu))
    said = odometer.statement().split(", ")[0].removeprefix("With confidence ")
    failure = Fraction(str(delta)) + Fraction(str(slack))
    if said.endswith("%"):
        assert Fraction(said[:-1]) / 100 <= 1 - failure
    else:
        assert Fraction(said.removeprefix("1 - ")) >= failure


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: FilterOdometer(0, 0.1), "epsilon"),
        (lambda: FilterOdometer("1e151", 0.1), "epsilon"),
        (lambda: FilterOdometer(1, 0), "delta"),
        (lambda: FilterOdometer(1, 1), "delta"),
        (lambda: FilterOdometer(1, "1e-301"), "delta"),
        (lambda: FilterOdometer(1, math.nan), "delta"),
        (lambda: FilterOdometer(1, 0.5, slack_delta=0.5), "slack_delta"),
        (lambda: FilterOdometer(1, 0.5, slack_delta=-0.1), "slack_delta"),
        (lambda: FilterOdometer.tuned(0, 0.1), "v"),
        (lambda: FilterOdometer.tuned("1e400", 0.1), "v"),
        (lambda: MixtureOdometer(0, 0.1), "gamma"),
        (lambda: MixtureOdometer(-1, 0.1), "gamma"),
        (lambda: MixtureOdometer("1e400", 0.1), "gamma"),
        (lambda: MixtureOdometer(1, 2), "delta"),
        (lambda: MixtureOdometer(1, 0.1, "both"), "sided"),  # type: ignore[arg-type]
        (lambda: MixtureOdometer.tuned(1, 0.1, 1), "sided"),  # type: ignore[arg-type]
        (lambda: MixtureOdometer.tuned(-1, 0.1), "v"),
        (lambda: StitchedOdometer(0, 0.1), "v0"),
        (lambda: StitchedOdometer("1e301", 0.1), "v0"),
        (lambda: StitchedOdometer(1, 0.1, below="zero"), "below"),  # type: ignore[arg-type]
        (lambda: RogersOdometer(1, 0.1), "n"),
        (lambda: RogersOdometer(2.5, 0.1), "n"),  # type: ignore[arg-type]
        (lambda: RogersOdometer(True, 0.1), "n"),
        (lambda: RogersOdometer(10**151, 0.1), "n"),
        (lambda: RogersOdometer(2, 0.4), "delta"),
        (lambda: RogersOdometer(2, 0), "delta"),
        (lambda: RenyiOdometer(1, 0.1), "order"),
        (lambda: RenyiOdometer("1e301", 0.1), "order"),
        (lambda: RenyiOdometer(2, 0), "delta"),
        (lambda: BasicOdometer(1), "delta"),
        (lambda: BasicOdometer(-1), "delta"),
    ],
)
def test_parameters_out_of_range_are_refused(make: Callable[[], Any], named: str) -> None:
    with pytest.raises(InvalidValueError, match=rf"^{named} must .*got .*; "):
        make()
