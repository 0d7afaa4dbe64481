"""What a release does: charge first, answer once, remember."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory import execute as execution
from dpnb._backends.memory import memory_backend
from dpnb.accounting.exact import exact
from dpnb.accounting.grid import grid_down
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, ErrorEstimateUnavailable, ExecutionError, RequestError

Make = Callable[..., dpnb.Session]

PEOPLE = 400


@pytest.fixture
def table() -> pd.DataFrame:
    rows = PEOPLE * 3
    return pd.DataFrame(
        {
            "person": [f"p{i // 3}" for i in range(rows)],
            "visits": [i % 7 for i in range(rows)],
            "plan": [("free", "paid")[i % 2] for i in range(rows)],
        }
    )


@pytest.fixture
def make(table: pd.DataFrame, tmp_path: Path) -> Make:
    def made(**changes: Any) -> dpnb.Session:
        arguments: dict[str, Any] = {
            "name": "clinic",
            "privacy_unit": "person",
            "max_rows_per_unit": 3,
            "budget": dpnb.Budget.gdp(1),
            "schema": {"visits": dpnb.Bounded(0, 10), "plan": dpnb.Categories(["free", "paid", "none"])},
            "ledger": tmp_path / "clinic.dpnb",
        }
        return dpnb.Session(table, **{**arguments, **changes})

    return made


def test_release_charges_what_was_asked(make: Make) -> None:
    session = make()
    answer = session.frame.count().release(mu=0.6)
    assert session.spent == GDP(0.6)
    assert session.headroom == 0.64
    assert answer.cost == GDP("0.6")
    assert abs(answer.estimate - 3 * PEOPLE) < 6 * answer.noise_scale


@pytest.mark.parametrize(
    ("target", "mu_squared"),
    [
        ({"mu": 0.1}, Fraction(1, 100)),
        ({"mu": "1/3"}, grid_down(Fraction(1, 9))),
        ({"rho": 0.125}, Fraction(1, 4)),
        ({"share": 0.25}, Fraction(1, 4)),
        ({"share": 1}, Fraction(1)),
    ],
)
def test_each_kind_of_target_costs_its_own_loss(make: Make, target: dict[str, Any], mu_squared: Fraction) -> None:
    session = make()
    session.frame.count().release(**target)
    assert session.spent == GDP.from_mu_squared(mu_squared)


def test_epsilon_means_the_mu_that_gives_it_at_the_budgets_delta(make: Make) -> None:
    session = make(budget=dpnb.Budget(epsilon=2, delta=1e-6))
    session.frame.count().release(epsilon=1)
    assert session.spent == dpnb.Budget(epsilon=1, delta=1e-6).loss


def test_all_of_epsilon_is_all_of_the_budget(make: Make) -> None:
    session = make(budget=dpnb.Budget(epsilon=2, delta=1e-6))
    session.frame.count().release(epsilon=2)
    assert session.headroom == 0


def test_ten_releases_of_a_tenth_fill_the_budget_and_the_eleventh_is_refused(make: Make) -> None:
    session = make(budget=dpnb.Budget.gdp(1), schema={"visits": dpnb.Bounded(0, 10)})
    visits = session.frame["visits"]
    for place in range(10):
        session.frame[visits > place / 10].count().release(rho=0.05)
    assert session.headroom == 0
    with pytest.raises(BudgetExceeded):
        session.frame[visits > 5].count().release(mu=1e-9)


def test_share_1_spends_exactly_what_is_left(make: Make) -> None:
    session = make(budget=dpnb.Budget(epsilon=1, delta=1e-6))
    for place in range(5):
        session.frame[session.frame["visits"] > place].count().release(share=0.3)
    session.frame.count().release(share=1)
    assert session.headroom == 0
    assert session.spent.mu_squared == session.filter.budget.mu_squared


def test_the_identical_request_is_answered_alike_and_free(make: Make) -> None:
    first = make().frame.groupby("plan")["visits"].mean().release(mu=0.3)
    later = make()  # as in another kernel
    again = later.frame.groupby("plan")["visits"].mean().release(mu=0.3)
    assert again == first
    assert repr(again) == repr(first)
    pd.testing.assert_frame_equal(again.to_pandas(), first.to_pandas())
    assert later.spent == GDP(0.3)


def test_the_same_number_written_otherwise_is_the_same_request(make: Make) -> None:
    session = make()
    count = session.frame.count()
    first = count.release(mu=0.5)
    assert count.release(mu="1/2") == first
    assert session.spent == GDP(0.5)


def test_a_share_and_an_error_are_resolved_once(make: Make) -> None:
    session = make()
    first = session.frame.count().release(share=0.5)
    session.frame["visits"].count().release(share=0.5)
    assert session.frame.count().release(share=0.5) == first
    assert session.headroom == pytest.approx(0.25)


def test_a_tighter_target_pays_only_what_is_missing(make: Make) -> None:
    session = make()
    count = session.frame.count()
    count.release(mu=0.3)
    better = count.release(mu=0.5)
    assert better.cost == GDP(0.4)
    assert session.spent == GDP(0.5)
    assert better.n_observations == 2
    assert better.noise_scale == pytest.approx(3 / 0.5)


def test_refining_an_answer_is_asking_for_a_tighter_target(make: Make) -> None:
    session = make()
    refined = session.frame.count().release(mu=0.3).refine(mu=0.5)
    assert refined == session.frame.count().release(mu=0.5)


def test_a_looser_target_is_free_and_as_good_as_what_is_known(make: Make) -> None:
    session = make()
    known = session.frame.count().release(mu=0.5)
    looser = session.frame.count().release(mu=0.2)
    assert looser.estimate == known.estimate
    assert looser.cost == GDP(0)
    assert session.spent == GDP(0.5)


def test_an_old_request_gives_its_old_answer_after_a_refinement(make: Make) -> None:
    session = make()
    first = session.frame.count().release(mu=0.3)
    session.frame.count().release(mu=0.5)
    assert session.frame.count().release(mu=0.3) == first
    best = session.frame.count().best
    assert best is not None
    assert best.noise_scale < first.noise_scale


def test_nothing_is_known_before_the_first_release(make: Make) -> None:
    assert make().frame.count().best is None


def test_a_wider_confidence_of_a_known_answer_is_free(make: Make) -> None:
    session = make()
    narrow = session.frame.count().release(mu=0.5, confidence=0.9)
    wide = session.frame.count().release(mu=0.5, confidence=0.99)
    assert session.spent == GDP(0.5)
    assert wide.estimate == narrow.estimate
    assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]


@pytest.mark.parametrize("within", [5, 40, 400])
def test_within_is_kept(make: Make, within: float) -> None:
    session = make(budget=dpnb.Budget.gdp(100))
    low, high = session.frame.count().release(within=within).interval
    assert high - low <= 2 * within
    low, high = session.frame.count().release(within=within / 3).interval
    assert high - low <= 2 * within / 3


def test_within_for_a_mean_needs_a_count_and_says_which(make: Make) -> None:
    session = make()
    visits = session.frame.groupby("plan")["visits"]
    with pytest.raises(ErrorEstimateUnavailable, match="count of visits by plan"):
        visits.mean().release(within=1)
    assert session.spent == GDP(0)


def test_within_for_a_mean_uses_a_released_count(make: Make) -> None:
    session = make(schema={"visits": dpnb.Bounded(0, 10), "plan": dpnb.Categories(["free", "paid"])})
    visits = session.frame.groupby("plan")["visits"]
    visits.count().release(mu=0.3)
    assert "the released count of visits by plan" in repr(visits.mean().preview(within=0.5))
    answer = visits.mean().release(within=0.5)
    widths = answer.to_pandas()["high"] - answer.to_pandas()["low"]
    assert (widths <= 1.2).all()
    visits.mean().release(mu=0.6)
    assert "the released mean of visits by plan" in repr(visits.mean().preview(within=0.2))  # it holds a count too


def test_within_for_a_mean_uses_public_rows(make: Make) -> None:
    session = make(public_rows=3 * PEOPLE)
    preview = session.frame["visits"].mean().preview(within=0.5)
    assert preview.fits
    assert "public_rows=1200" in repr(preview)
    with pytest.raises(ErrorEstimateUnavailable):  # how many rows a filter keeps is not public
        session.frame[session.frame["visits"] > 3]["visits"].mean().preview(within=0.5)


def test_a_preview_costs_nothing_and_tells_the_price(make: Make) -> None:
    session = make()
    preview = session.frame.count().preview(mu=0.5)
    assert session.spent == GDP(0)
    assert (preview.cost, preview.headroom_after, preview.fits, preview.max_repetitions) == (GDP(0.5), 0.75, True, 4)
    answer = session.frame.count().release(mu=0.5)
    low, high = answer.interval
    assert preview.expected_error == pytest.approx((high - low) / 2)
    assert session.headroom == preview.headroom_after


def test_a_preview_of_a_refinement_says_that_only_the_difference_is_charged(make: Make) -> None:
    count = make().frame.count()
    assert "difference" not in repr(count.preview(mu=0.5))
    count.release(mu="0.3")
    preview = count.preview(mu="0.5")
    assert preview.cost.mu == pytest.approx(0.4)
    for text in (repr(preview), preview._repr_html_()):
        assert "combined with earlier observations, to a total of mu 0.5; only the difference is charged" in text
    assert "difference" not in repr(count.preview(mu="0.3"))  # free


def test_a_preview_of_too_much_says_that_it_does_not_fit(make: Make) -> None:
    preview = make().frame.count().preview(mu=2)
    assert not preview.fits
    assert "would be refused" in repr(preview)


def test_a_refusal_names_the_largest_budget_that_fits_which_then_does(make: Make) -> None:
    session = make()
    count = session.frame.count()
    count.release(mu=0.3)
    with pytest.raises(BudgetExceeded) as refusal:
        count.release(mu=1.5)
    assert session.spent == GDP(0.3)
    largest = str(refusal.value).split("largest that fits is mu=")[1].split(",")[0]
    count.release(mu=float(largest))
    assert session.headroom < 1e-3  # it is rounded down to four digits
    assert session.spent.mu_squared <= 1


def test_a_refused_session_goes_on(make: Make) -> None:
    session = make()
    with pytest.raises(BudgetExceeded):
        session.frame.count().release(mu=2)
    session.frame.count().release(mu=1)


def test_a_group_without_rows_is_answered_too(make: Make) -> None:
    answer = make(budget=dpnb.Budget.gdp(1000)).frame.groupby("plan").count().release(share=1)
    assert answer.to_pandas().index.tolist() == ["free", "paid", "none"]
    assert answer.estimate.round().tolist() == [600, 600, 0]


def test_the_charge_is_durable_before_a_row_is_read(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make()
    seen: list[GDP] = []
    real = execution.execute

    def spying(*arguments: Any) -> list[int]:
        seen.append(make().spent)  # what another kernel finds in the file at this moment
        return real(*arguments)

    monkeypatch.setattr(memory_backend, "execute", spying)
    session.frame.count().release(mu=0.5)
    assert seen == [GDP(0.5)]


def test_a_failure_after_the_charge_keeps_it_and_says_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make()

    def failing(*_: Any) -> list[int]:
        raise RuntimeError("row 17 holds 4711")

    with monkeypatch.context() as patch:
        patch.setattr(memory_backend, "execute", failing)
        with pytest.raises(ExecutionError, match="the charge stands") as failure:
            session.frame.count().release(mu=0.5)
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert session.spent == GDP(0.5)
    assert make().ledger.charges()[0].status == "failed"
    session.frame.count().release(mu=0.5)  # takes the charge up
    assert session.spent == GDP(0.5)


def test_a_new_version_keeps_the_spending_and_reuses_nothing(make: Make) -> None:
    make(version="2024").frame.count().release(mu=0.3)
    later = make(version="2025")
    assert later.spent == GDP(0.3)
    assert later.frame.count().best is None
    later.frame.count().release(mu=0.3)
    assert later.spent.mu_squared == exact("0.18")


def test_later_changes_of_the_table_change_nothing(make: Make, table: pd.DataFrame) -> None:
    session = make(budget=dpnb.Budget.gdp(10_000))
    table.loc[:, "visits"] = 0
    del table["plan"]
    assert session.frame["visits"].sum().release(share=0.5).estimate == pytest.approx(3594, abs=1)


def test_rows_are_units_without_a_privacy_unit(make: Make) -> None:
    session = make(privacy_unit=None, max_rows_per_unit=None)
    assert session.frame.count().release(mu=0.5).noise_scale == 2
    assert session.guarantee.endswith("for one row")


def test_seeded_noise_is_repeatable_and_marked_everywhere(make: Make, tmp_path: Path) -> None:
    answers = [
        make(ledger=tmp_path / f"{name}.dpnb", not_private_test_seed=7).frame.count().release(mu=0.5) for name in "ab"
    ]
    assert answers[0].estimate == answers[1].estimate
    session = make(ledger=tmp_path / "a.dpnb", not_private_test_seed=7)
    for face in (repr(answers[0]), answers[0]._repr_html_(), str(session), session._repr_html_()):
        assert "NOT PRIVATE" in face


def test_seeded_noise_never_mixes_with_a_real_ledger(make: Make) -> None:
    make().frame.count().release(mu=0.5)
    with pytest.raises(dpnb.errors.LedgerError, match="noise"):
        make(not_private_test_seed=7)


def test_a_rehearsal_reads_no_table_and_writes_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = dpnb.Session.rehearse(
        object(),
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=3,
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"visits": dpnb.Bounded(0, 10), "plan": dpnb.Categories(["free", "paid"])},
        public_size=500,
        ledger=tmp_path / "real.dpnb",
    )
    answer = session.frame.count_units().release(within=100)
    assert abs(answer.estimate - 500) < 200
    preview = session.frame.groupby("plan")["visits"].mean().preview(share=0.5)
    for face in (answer, preview, session):
        assert "REHEARSAL" in repr(face)
        assert "REHEARSAL" in face._repr_html_()
    assert list(tmp_path.iterdir()) == []


def test_the_default_ledger_stands_in_the_working_directory(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(ledger=None).frame.count().release(mu=0.5)
    assert (tmp_path / "clinic.dpnb").is_file()


def test_a_budget_in_gdp_has_no_epsilon_to_ask_with(make: Make) -> None:
    session = make(budget=dpnb.Budget.gdp(1))
    with pytest.raises(RequestError, match="mu= or rho="):
        session.frame.count().release(epsilon=1)
    assert session.spent == GDP(0)
