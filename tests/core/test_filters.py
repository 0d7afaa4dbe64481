"""A session keeps its promise by any of the filters, and shows what the others would have left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb.accounting import guarantee as promises
from dpnb.accounting.exact import exact, few_digits_down
from dpnb.accounting.guarantee import FILTERS, make_guarantee
from dpnb.accounting.losses import GDP, ApproxDP
from dpnb.accounting.odometers import (
    FilterOdometer,
    MixtureOdometer,
    RDPAccumulator,
    RenyiOdometer,
    StitchedOdometer,
)
from dpnb.errors import BudgetExceeded, InvalidValueError, LedgerError
from dpnb.session.snapshot import snapshot

BUDGET = dpnb.Budget(epsilon=1, delta=1e-6)
Make = Callable[..., dpnb.Session]
every_filter = pytest.mark.parametrize("name", FILTERS)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(**changes: Any) -> dpnb.Session:
        arguments: dict[str, Any] = {
            "name": "clinic",
            "budget": BUDGET,
            "schema": {"visits": dpnb.Bounded(0, 10)},
            "ledger": tmp_path / "clinic.dpnb",
        }
        table = pd.DataFrame({"visits": [i % 7 for i in range(300)]})
        return dpnb.Session(table, **{**arguments, **changes})

    return made


def small(name: str) -> float:
    """Of which every filter admits several; Rogers' admits much less than the others."""
    return 0.002 if name == "rogers" else 0.02


def question(session: dpnb.Session, number: int) -> Any:
    return session.frame[session.frame["visits"] > number].count()


def lines(session: dpnb.Session, part: str) -> dict[str, dict[str, Any]]:
    return {line["id"]: line for line in msgspec.to_builtins(snapshot(session, compared=True))[part]}


@every_filter
def test_releases_are_charged_to_the_chosen_filter(make: Make, name: str) -> None:
    session = make(filter=name)
    made = make_guarantee(name, BUDGET)
    expected = made.initial_filter
    for number, mu in enumerate((small(name), 2 * small(name), small(name) / 2)):
        question(session, number).release(mu=mu)
        expected = expected.step(made.to_filter_loss(GDP(mu)))
    assert session.filter == expected
    assert session.spent == expected.spent
    assert session.headroom == few_digits_down(expected.headroom)
    later = make(filter=name)  # as in another kernel
    assert later.filter == expected


@every_filter
def test_what_the_filter_refuses_costs_nothing_and_the_message_names_what_fits(make: Make, name: str) -> None:
    session = make(filter=name)
    question(session, 0).release(mu=small(name))
    before = session.spent
    with pytest.raises(BudgetExceeded, match=r"the largest that fits is mu=([0-9.e-]+)") as refusal:
        question(session, 1).release(mu=0.3)
    assert session.spent == before
    named = float(str(refusal.value).split("fits is mu=")[1].split(",")[0])
    assert question(session, 1).preview(mu=named).fits
    assert not question(session, 1).preview(mu=named * 1.001).fits
    question(session, 1).release(mu=named)


@every_filter
def test_share_1_leaves_nothing_worth_asking(make: Make, name: str) -> None:
    session = make(filter=name)
    question(session, 0).release(share=0.5)
    question(session, 1).release(share=1)
    assert session.headroom < 1e-6
    with pytest.raises(BudgetExceeded, match=r"nothing is left|the largest that fits"):
        question(session, 2).release(mu=0.01)


CALLS = 40_000
"""Of Python functions of dpnb, for three questions; "rogers", which searches longest, takes 25,000."""


class NeverEnds(Exception):  # noqa: N818
    """More calls were made than any such work takes."""


@contextmanager
def ending() -> Iterator[None]:
    """The block makes at most `CALLS` calls; counted, since seconds would measure the machine."""
    calls = 0

    def count(frame: Any, event: str, argument: object) -> None:
        nonlocal calls
        calls += is_ours(frame.f_code.co_filename)
        if calls > CALLS:
            raise NeverEnds

    before = sys.gettrace()
    sys.settrace(count)  # which hears of calls alone, since it follows none of them
    try:
        yield
    finally:
        sys.settrace(before)


@cache
def is_ours(filename: str) -> bool:
    return "/dpnb/" in filename.replace("\\", "/")


@every_filter
def test_session_that_has_spent_everything_still_answers_at_once(make: Make, name: str) -> None:
    session = make(filter=name)
    question(session, 0).release(share=1)
    with ending():  # and does not hold the ledger meanwhile
        with pytest.raises(BudgetExceeded, match="nothing is left"):
            question(session, 1).release(share=0.5)
        with pytest.raises(BudgetExceeded, match="nothing is left"):
            question(session, 2).release(mu=0.1)
        preview = question(session, 2).preview(mu=0.1)
    assert not preview.fits
    assert preview.max_mu == 0
    assert "nothing is left" in repr(preview)


def test_a_search_for_what_is_smaller_than_any_answer_needs_would_not_end(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make(filter="rogers")
    question(session, 0).release(share=1)
    monkeypatch.setattr(promises, "ROUNDING_TOLERANCE", Fraction(0))
    with pytest.raises(NeverEnds), ending():
        question(session, 1).release(share=0.5)


@every_filter
def test_preview_of_what_does_not_fit_tells_its_true_share_and_the_largest_that_fits(make: Make, name: str) -> None:
    session = make(filter=name)
    preview = question(session, 0).preview(mu=10)
    assert preview.cost_fraction > 1
    assert not preview.fits
    assert preview.max_mu
    assert question(session, 0).preview(mu=preview.max_mu).fits
    assert "largest that fits" in repr(preview)


@every_filter
def test_preview_says_what_the_release_does(make: Make, name: str) -> None:
    session = make(filter=name)
    mu = small(name)
    question(session, 0).release(mu=mu)
    preview = question(session, 1).preview(mu=mu)
    answer = question(session, 1).release(mu=mu)
    assert preview.fits
    assert preview.headroom_after == session.headroom
    assert preview.cost == answer.cost == GDP(mu)
    assert preview.cost_fraction == answer.cost_fraction > 0
    assert preview.max_repetitions is not None
    assert preview.max_repetitions >= 1
    # It counts this question too; asked that often, nothing like it fits any more.
    assert (
        session.filter.max_repetitions(make_guarantee(name, BUDGET).to_filter_loss(GDP(mu)))
        == preview.max_repetitions - 1
    )


@pytest.mark.parametrize("name", ["gdp", "zcdp", "rdp", "approx-dp"])
def test_refining_costs_what_asking_once_costs(make: Make, name: str, tmp_path: Path) -> None:
    twice, once = make(filter=name), make(filter=name, ledger=tmp_path / "once.dpnb")
    question(twice, 0).release(mu=0.03).refine(mu=0.05)
    question(once, 0).release(mu=0.05)
    assert twice.spent == once.spent
    assert "refining later" not in repr(question(once, 0).preview(mu=0.06))


@pytest.mark.parametrize("name", ["rogers", "basic"])
def test_refining_costs_more_where_epsilons_are_counted(make: Make, name: str, tmp_path: Path) -> None:
    twice, once = make(filter=name), make(filter=name, ledger=tmp_path / "once.dpnb")
    question(twice, 0).release(mu=small(name)).refine(mu=2 * small(name))
    question(once, 0).release(mu=2 * small(name))
    assert isinstance(twice.spent, ApproxDP)
    assert twice.spent.epsilon > once.spent.parts[0]
    assert "costs more than one release at the finer level" in repr(question(once, 0).preview(mu=3 * small(name)))


def test_nothing_is_left_to_take_a_share_of(make: Make) -> None:
    session = make()
    question(session, 0).release(share=1)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        question(session, 1).release(share=0.5)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        question(session, 1).preview(share=0.5)


def test_ledger_of_one_filter_serves_no_other(make: Make) -> None:
    make(filter="zcdp").frame.count().release(mu=0.01)
    with pytest.raises(LedgerError, match="was created for another filter; the ledger has zcdp, the session has gdp"):
        make()


def test_gdp_budget_cannot_be_kept_by_another_filter(make: Make, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="needs a budget in epsilon and delta"):
        make(filter="approx-dp", budget=dpnb.Budget.gdp(1))
    assert not (tmp_path / "clinic.dpnb").exists()


# --- side by side ----------


def test_every_filter_says_how_many_more_questions_it_would_admit(make: Make) -> None:
    session = make(filter="zcdp")
    for number in range(3):
        question(session, number).release(mu=0.002)
    shown = lines(session, "filters")
    assert next(iter(shown)) == "zcdp"
    assert set(shown) == set(FILTERS)
    assert [name for name, line in shown.items() if line["enforced"]] == ["zcdp"]
    for name, line in shown.items():
        made = make_guarantee(name, BUDGET)
        state = made.initial_filter
        for _ in range(3):
            state = state.step(made.to_filter_loss(GDP(0.002)))
        more = state.max_repetitions(made.to_filter_loss(GDP(0.002)))
        assert line["value"] == state.headroom
        assert line["text"].endswith(f"; {more:,} more like the last")
    more = {name: int(line["text"].split("; ")[1].split(" ")[0].replace(",", "")) for name, line in shown.items()}
    assert more["gdp"] > more["zcdp"] >= more["rdp"] > more["approx-dp"] > more["basic"]


def test_filter_past_its_own_refusal_says_which_question(make: Make) -> None:
    session = make()
    for number in range(4):
        question(session, number).release(mu=0.1)
    shown = lines(session, "filters")
    assert "more like the last" in shown["gdp"]["text"]
    assert shown["basic"]["text"] == "would have refused query 3"
    assert shown["basic"]["value"] == 0
    question(session, 9).release(mu=0.01)
    assert lines(session, "filters")["basic"]["text"] == "would have refused query 3"


def test_gdp_budget_is_compared_with_nothing(make: Make) -> None:
    session = make(budget=dpnb.Budget.gdp(1))
    question(session, 0).release(mu=0.5)
    assert list(lines(session, "filters")) == ["gdp"]
    assert not {"rogers", "basic", "renyi", "rdp-accumulator"} & set(lines(session, "odometers"))


def test_odometers_are_shown_with_their_readings_in_words(make: Make) -> None:
    session = make(public_size=300)
    for number in range(3):
        question(session, number).release(mu=0.05)
    shown = lines(session, "odometers")
    assert set(shown) == {
        "mixture",
        "filter",
        "reflection",
        "stitched",
        "rogers",
        "basic",
        "renyi",
        "gdp-accumulator",
        "zcdp-accumulator",
        "rdp-accumulator",
        "approx-dp-accumulator",
    }
    for name, line in shown.items():
        if name.endswith("accumulator"):
            assert line["kind"] == "accumulator"
            assert "fixed beforehand" in line["description"]
        else:
            assert line["kind"] == "time-uniform"
            assert line["description"].startswith("With confidence 99.9999%")
    assert exact(shown["gdp-accumulator"]["text"].removeprefix("mu ")) ** 2 >= 3 * exact(0.05) ** 2


def test_rogers_odometer_keeps_the_public_size_that_the_ledger_was_made_with(make: Make) -> None:
    # Its bound must be fixed before the first answer.
    first = make(public_size=300)
    question(first, 0).release(mu=0.05)
    assert lines(make(public_size=10**6), "odometers") == lines(first, "odometers")
    assert "rogers" in lines(make(), "odometers")


def test_each_filter_and_odometer_is_in_the_text_and_in_the_still_picture(make: Make) -> None:
    session = make(filter="zcdp")
    question(session, 0).release(mu=0.01)
    for face in (str(session), session._repr_html_()):
        assert "Same guarantee under each filter" in face
        assert face.count("(enforced)") == 1
        assert "zCDP (enforced)" in face
        assert "Odometers, time-uniform" in face
        assert "Odometers, accumulator" in face


def test_odometers_are_tuned_to_the_promise_by_rules_that_never_change(make: Make) -> None:
    # The ledger keeps mu0 squared, not these figures: another rule would be one chosen after the first answers.
    session = make()
    odometers = session._core.account.compared().odometers
    mu0_squared = session._core.account.guarantee.mu0_squared
    assert odometers["mixture"] == session.odometer == MixtureOdometer.tuned(mu0_squared, BUDGET.delta)
    assert odometers["filter"] == FilterOdometer.tuned(mu0_squared, BUDGET.delta)
    assert odometers["stitched"] == StitchedOdometer(mu0_squared / 100, BUDGET.delta)
    order = make_guarantee("rdp", BUDGET).initial_filter.budget.orders[0]
    assert odometers["renyi"] == RenyiOdometer(order, BUDGET.delta)
    assert odometers["rdp-accumulator"] == RDPAccumulator(order)
