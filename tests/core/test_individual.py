"""Who takes part where each unit has a budget of its own: against brute force, unit by unit, in fractions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpnb
from core.unit_by_unit import QUESTIONS, heard, of_rows, opened, predicted, unit_budget
from dpnb._core.accountant.filters_and_odometers import FilterComparison
from dpnb._core.execution import releases
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, ExecutionError, InvalidValueError, LedgerError, RequestError
from dpnb.ledger import Ledger
from threads import at_once

MODES = ("skip", "drop", "clip")
BUDGETS = {
    "gdp": dpnb.Budget(epsilon=4, delta="1e-6", discovery_delta="5e-7"),
    "zcdp": dpnb.Budget(epsilon=4, delta="1e-6"),  # where some delta is set aside, nothing may be interleaved
}

Moves = list[tuple[str, str]]


def ask(session: dpnb.Session, name: str, mu: str, **more: Any) -> Any:
    return QUESTIONS[name].ask(session).release(mu=mu, **more)


def play(session: dpnb.Session, moves: Moves) -> None:
    for name, mu in moves:
        ask(session, name, mu)


def standing(session: dpnb.Session) -> Any:
    """How the units stand after all rows of the ledger, going on from what this kernel has in memory."""
    individuals = session._core.individuals
    assert individuals is not None
    state = individuals._state or individuals._fresh()
    for charge in session.ledger.charges(after=state.last_id):
        state, _, _ = individuals._after(state, charge, None)
    return state.unit_budgets.units  # type: ignore[attr-defined]


def spent(session: dpnb.Session, unit: str | None = "who") -> dict[Any, float]:
    """By unit, as mu squared."""
    rows, paid = session._core.tables.opened.rows(""), standing(session).spent
    names = rows.units if unit is None else rows.names[rows.units]
    return {int(name): float(paid[number]) for name, number in zip(names, rows.units, strict=True)}


def agrees(session: dpnb.Session, table: pd.DataFrame, mode: str, found: dict[int, Any], unit: Any = "who") -> None:
    """What was measured, and what is paid, is what brute force says."""
    oracle, expected = predicted(session, table, mode, unit)
    assert found.keys() == expected.keys()
    for number, (sums, slack) in expected.items():
        if not slack:
            assert found[number] == sums, number
        for slot in {*sums, *found[number]}:
            assert abs(found[number].get(slot, 0) - sums.get(slot, 0)) <= slack, number
    paid = spent(session, unit)
    for name, due in oracle.paid.items():
        assert due <= unit_budget(session) or session.version != session.ledger.charges()[0].table_version
        assert due <= Fraction(paid[name]) or mode == "clip"
        assert paid[name] == pytest.approx(float(due), rel=1e-12)


PERSON = st.tuples(
    st.sampled_from([*"abc", "z", None]),
    st.sampled_from([0.0, 0.25, 3.0, 8.0, 9.5, np.nan]),
    st.sampled_from([0.0, 1.75, 8.0, np.nan]),
    st.sampled_from(["p", "q", "r", None]),
)
ROWS = st.lists(st.lists(PERSON, min_size=1, max_size=3), max_size=6).map(
    lambda people: [(10 + who, *row) for who, rows in enumerate(people) for row in rows]
)
# Whole tenths and odd ones: sums of their squares, times what a share of a vector is, do not meet the budget exactly.
MOVES = st.lists(
    st.tuples(st.sampled_from(sorted(QUESTIONS)), st.sampled_from(["0.11", "0.37", "0.73", "1.01", "2.3"])),
    min_size=1,
    max_size=9,
    unique=True,
)


# --- against brute force ----------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=ROWS,
    moves=MOVES,
    mode=st.sampled_from(MODES),
    unit=st.sampled_from(["who", None]),
    filter_=st.sampled_from(sorted(BUDGETS)),
)
def test_who_takes_part_in_each_question_and_what_they_pay_is_what_brute_force_says(
    rows: list[Any], moves: Moves, mode: str, unit: str | None, filter_: str
) -> None:
    table = of_rows(rows)
    session = opened(table, mode=mode, unit=unit, budget=BUDGETS[filter_], filter=filter_)
    with heard() as found:
        play(session, [move for move in moves if filter_ == "gdp" or "texts" not in move])
    agrees(session, table, mode, found, unit)
    session.ledger.close()


@settings(max_examples=settings().max_examples // 5)  # each opens a session for every unit
@given(rows=ROWS.filter(bool), moves=MOVES, mode=st.sampled_from(MODES), unit=st.sampled_from(["who", None]))
def test_nobody_moves_all_sums_together_by_more_than_the_budget(
    rows: list[Any], moves: Moves, mode: str, unit: str | None
) -> None:
    """Without regard to anything the session says it charged: the tables with and without a unit, in fractions."""
    table = of_rows(rows)
    everybody, sigmas, budget = _sums(table, moves, mode, unit)
    names = table["who"].unique() if unit else table.index
    for name in names:
        rest = table[(table["who"] if unit else table.index) != name].reset_index(drop=True)
        others, same, _ = _sums(rest, moves, mode, unit)
        assert same == sigmas
        told = Fraction(0)
        for number, sigma in sigmas.items():
            here, there = everybody[number], others[number]
            moved = [here.get(slot, 0) - there.get(slot, 0) for slot in {*here, *there}]
            told += Fraction(sum(step**2 for step in moved)) / Fraction(sigma) ** 2
        assert told <= budget


def _sums(table: pd.DataFrame, moves: Moves, mode: str, unit: str | None) -> Any:
    session = opened(table, mode=mode, unit=unit, budget=BUDGETS["gdp"])
    with heard() as found:
        play(session, moves)
    sigmas = {charge.id: charge.sigma for charge in session.ledger.charges() if charge.sigma is not None}
    budget = unit_budget(session)
    session.ledger.close()
    return found, sigmas, budget


PEOPLE = of_rows(
    [
        *((1, site, 8, 8, "p") for site in "abc"),
        (2, "a", 4, 1, "p"),
        (2, "a", 5, 2, "q"),
        (3, "b", 1, 8, "q"),
        (4, "c", 0, np.nan, None),
        (5, "a", 8, 0, "p"),
        (5, "b", 8, 0, "p"),
        (6, "nowhere", np.nan, np.nan, "r"),
    ]
)
LONG: Moves = [
    *(("count at a", "0.9"), ("count", "0.4"), ("counts by site", "0.5"), ("means by site", "1.2"), ("median", "0.8")),
    *(
        ("in part a", "0.7"),
        ("in part b", "0.9"),
        ("sum in part a", "1.3"),
        ("several by site", "2"),
        ("active", "0.2"),
    ),
    *(("units by site", "0.6"), ("regression", "1.5"), ("count at b", "1.1"), ("active in part b", "0.1")),
    *(("units", "0.05"), ("active later", "0.04"), ("sum at a", "0.3"), ("mean", "0.21"), ("in part c", "0.66")),
]


@pytest.mark.parametrize("mode", MODES)
def test_a_long_history_leaves_some_in_and_some_out_as_brute_force_says(mode: str) -> None:
    session = opened(PEOPLE, mode=mode)
    with heard() as found:
        play(session, LONG)
    agrees(session, PEOPLE, mode, found)
    assert session._core.account.first_exclusion == 3
    assert len(set(spent(session).values())) >= 3
    assert {} in found.values()


def test_who_was_skipped_returns_for_a_cheaper_question_and_who_was_dropped_does_not() -> None:
    counted = {}
    for mode in MODES:
        session = opened(of_rows([(1, "a", 1, 1, "p")] * 3), mode=mode, budget=dpnb.Budget.gdp(1))
        with heard() as found:
            play(session, [("count", "0.8"), ("count at a", "0.9"), ("sum", "0.3")])
        whole = [3 * _weight(session, name) for name in ("count", "count at a")]
        steps = [sums.get(0, 0) for sums in found.values()]
        counted[mode] = [steps[0] == whole[0], steps[1] / whole[1], steps[2] > 0]
    assert counted["skip"] == [True, 0, True]
    assert counted["drop"] == [True, 0, False]
    assert counted["clip"] == [True, pytest.approx(0.6 / 0.9, rel=1e-5), False]


def _weight(session: dpnb.Session, name: str) -> int:
    """Of a row in a count."""
    return session._core.pricer.tables.compile(QUESTIONS[name].ask(session).plan).features[0].weight


def test_a_part_pays_for_what_was_asked_of_everybody_although_the_session_pays_only_for_the_largest_part() -> None:
    """The session's own figure does not grow with the last question, and everybody in part b had too little left."""
    for mode in MODES:
        session = opened(PEOPLE, mode=mode, budget=dpnb.Budget.gdp(1), unit=None)
        with heard() as found:
            play(session, [("in part a", "0.95"), ("count", "0.7"), ("in part b", "0.94")])
        agrees(session, PEOPLE, mode, found, None)
        assert max(spent(session, None).values()) <= 1
        assert found[session.ledger.charges()[-1].id] == {} or mode == "clip"


def test_groups_that_are_refined_alone_cost_only_who_is_in_them() -> None:
    session = opened(PEOPLE)
    with heard() as found:
        ask(session, "counts by site", "0.3")
        before = spent(session)
        ask(session, "counts by site", "0.5", groups=["a"])
    agrees(session, PEOPLE, "skip", found)
    after = spent(session)
    assert {name for name in after if after[name] > before[name]} == {1, 2, 5}


@pytest.mark.parametrize("mode", MODES)
def test_a_table_without_rows_or_without_anybody_who_can_pay_is_answered_like_any_other(mode: str) -> None:
    for table in (PEOPLE[:0], PEOPLE):
        session = opened(table, mode=mode)
        play(session, [("count", "9"), ("mean", "9"), ("units", "7"), ("active", "9"), ("median", "3")])
        assert [charge.status for charge in session.ledger.charges()] == ["released"] * 5
        assert session.headroom == 0


# --- as long as everybody is in ---------------------------------------------------------------------------------------

EARLY: Moves = [(name, "0.15") for name in QUESTIONS if "active" not in name and name != "texts"]


@pytest.mark.parametrize("filter_", BUDGETS)
@pytest.mark.parametrize("mode", MODES)
def test_with_everybody_surely_in_answers_and_charges_are_those_of_the_worst_case(filter_: str, mode: str) -> None:
    sessions = [opened(PEOPLE, mode=one, filter=filter_, budget=BUDGETS[filter_]) for one in (None, mode)]
    told = []
    for session in sessions:
        answers = [ask(session, *move) for move in EARLY]
        rows = [
            (
                row.request_key,
                row.node,
                row.request,
                row.total_loss,
                row.loss,
                row.observations,
                row.status,
                row.group_keys,
            )
            for row in session.ledger.charges()
        ]
        assert session._core.account.first_exclusion is None
        told.append((rows, session.spent, session.headroom, [repr(answer.cost) for answer in answers]))
        if mode != "clip":
            noisy = [row.measurement for row in session.ledger.charges()]
            told[-1] += (noisy, [repr(answer).split("\n")[0] for answer in answers])  # type: ignore[operator]
    assert told[0] == told[1]
    if mode == "clip":  # of which the steps are finer
        worst, own = (_numbers(session) for session in sessions)
        assert own == pytest.approx(worst, rel=1e-2, abs=1e-2)


def _numbers(session: dpnb.Session) -> list[float]:
    """Of the ungrouped counts and sums."""
    names = ("count", "count at a", "sum", "sum at a", "units")
    return [ask(session, name, "0.15").estimate for name in names]


def test_the_whole_budget_can_be_spent_on_one_question_in_which_everybody_takes_part() -> None:
    session = opened(PEOPLE)
    with heard() as found:
        QUESTIONS["count"].ask(session).release(share=1)
    agrees(session, PEOPLE, "skip", found)
    assert session._core.account.first_exclusion is None
    assert session.headroom == 0
    assert next(iter(found.values()))[0] == len(PEOPLE)


# --- other kernels ----------------------------------------------------------------------------------------------------


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[Callable[..., dpnb.Session]]:
    """Opens sessions on one ledger file."""
    made: list[dpnb.Session] = []

    def kernel(table: pd.DataFrame = PEOPLE, **changes: Any) -> dpnb.Session:
        made.append(opened(table, ledger=tmp_path / "people.dpnb", **changes))
        return made[-1]

    yield kernel
    for session in made:
        session.ledger.close()


@pytest.mark.parametrize("mode", MODES)
def test_two_kernels_that_take_turns_leave_the_state_that_a_third_one_rebuilds(
    kernels: Callable[..., dpnb.Session], mode: str
) -> None:
    both = kernels(mode=mode), kernels(mode=mode)
    with heard() as found:
        for number, move in enumerate(LONG):
            play(both[number * number % 3 % 2], [move])
    third = kernels(mode=mode)
    assert standing(both[0]) == standing(both[1]) == standing(third)
    agrees(third, PEOPLE, mode, found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("noted", [True, False])
def test_a_charge_that_a_crash_left_unanswered_is_paid_for_and_answered_in_its_place(
    kernels: Callable[..., dpnb.Session], monkeypatch: pytest.MonkeyPatch, mode: str, noted: bool
) -> None:
    first = kernels(mode=mode)
    with heard() as found:
        play(first, LONG[:3])
        with monkeypatch.context() as patch:
            if not noted:  # as after a kill: the row stays as it was reserved
                patch.setattr(Ledger, "fail", lambda *_: None)
            patch.setattr(releases, "measure", lambda *_, **__: 1 / 0)
            with pytest.raises(ExecutionError):
                play(first, LONG[3:4])
            with pytest.raises(ExecutionError):
                play(first, LONG[4:5])
        found.clear()
        second = kernels(mode=mode)
        play(second, LONG[5:9])
        play(first, LONG[9:12])
        play(second, LONG[3:4])  # taken up, after rows that came later
        play(first, [*LONG[12:15], LONG[4]])
        play(second, LONG[15:])
        play(kernels(mode=mode), LONG[:3])  # free, and measured no more
    third = kernels(mode=mode)
    assert standing(first) == standing(second) == standing(third)
    oracle, expected = predicted(third, PEOPLE, mode)
    for number, (sums, slack) in expected.items():
        for slot in {*sums, *found.get(number, {})}:
            assert number <= 3 or abs(found[number].get(slot, 0) - sums.get(slot, 0)) <= slack
    assert max(oracle.paid.values()) <= unit_budget(third)
    assert len(found) == len(expected) - 3


@pytest.mark.parametrize("mode", ["skip", "clip"])
@pytest.mark.waits
def test_threads_that_ask_at_once_leave_the_state_that_a_replay_leaves(mode: str) -> None:
    session = opened(PEOPLE, mode=mode)
    session.partition("site")
    with heard() as found:
        assert at_once(*(partial(play, session, LONG[number::4]) for number in range(4))) == []
    individuals = session._core.individuals
    assert individuals is not None
    lived = standing(session)
    individuals._state = None
    assert standing(session) == lived
    agrees(session, PEOPLE, mode, found)


def test_units_that_pay_in_one_mode_have_no_ledger_in_common_with_another(
    kernels: Callable[..., dpnb.Session],
) -> None:
    kernels(mode="skip").frame.count().release(mu=0.01)
    for mode in ("drop", "clip", None):
        with pytest.raises(LedgerError, match="created for another on_exhausted"):
            kernels(mode=mode)


# --- another version of the table -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_another_version_charges_everybody_the_worst_case(kernels: Callable[..., dpnb.Session], mode: str) -> None:
    changed = PEOPLE.assign(who=PEOPLE["who"].map({1: 5, 5: 1, 2: 3, 3: 2, 4: 6, 6: 4}))
    old, new = kernels(mode=mode), kernels(changed, mode=mode, version="2")
    ask(old, "count at a", "0.6")
    with heard() as found:
        play(new, [("count at a", "0.7"), ("count", "0.5"), ("units", "0.2")])
    agrees(new, changed, mode, found)
    assert min(spent(new).values()) >= 0.36
    assert standing(kernels(mode=mode)) == standing(old)
    with heard() as found:
        play(old, [("count", "0.6"), ("count at b", "0.11")])
    everything = Fraction(49 + 25 + 4, 100)
    assert min(spent(old).values()) >= everything
    assert {name for name, paid in spent(old).items() if Fraction(paid) > everything} >= {3, 4}


def test_a_version_of_which_nobody_can_be_left_is_refused_and_the_other_one_goes_on(
    kernels: Callable[..., dpnb.Session],
) -> None:
    old, new = kernels(), kernels(version="2")
    play(old, [("count at a", "0.9"), ("count at b", "0.9")])
    for session in (new, kernels(version="3")):
        with pytest.raises(BudgetExceeded, match="no unit of version"):
            ask(session, "count", "0.01")
        with pytest.raises(BudgetExceeded, match="no unit of version"):
            session.partition("site", name="again")["a"].frame.count().release(mu="0.01")
    assert [charge.table_version for charge in old.ledger.charges() if charge.loss] == ["1", "1"]
    ask(old, "count", "0.2")


def test_other_versions_count_in_parts_by_the_largest(kernels: Callable[..., dpnb.Session]) -> None:
    """A unit in one part of a version was in no other part."""
    old, new = (kernels(unit=None, version=version) for version in "12")
    play(old, [("in part a", "0.6"), ("in part b", "0.6"), ("in part c", "0.7")])
    ask(new, "active", "0.1")
    assert list(spent(new, None).values()) == pytest.approx([0.49 + 0.01] * len(PEOPLE))


# --- looks ------------------------------------------------------------------------------------------------------------


def figures(answer: Any) -> tuple[Any, ...]:
    return (
        answer.estimate,
        answer.interval,
        answer.noise_scale,
        answer.cost,
        answer.total_loss,
        answer.n_observations,
        answer.time,
    )


def test_only_looks_in_which_everybody_surely_took_part_are_combined(kernels: Callable[..., dpnb.Session]) -> None:
    session = kernels()
    first, second = ask(session, "count", "0.3"), ask(session, "count", "0.5")
    assert (second.n_observations, second.cost, second.total_loss) == (2, GDP("0.4"), GDP("0.5"))
    ask(session, "count at b", "0.8")
    best = figures(QUESTIONS["count"].ask(session).best)[:3]
    third = ask(session, "count", "0.9")
    assert (third.n_observations, third.cost, third.total_loss) == (1, GDP("0.9"), GDP("0.9"))
    assert "the units that could still pay" in str(third.excluded)
    assert first.excluded is second.excluded is None
    assert [look.estimate for look in second.history] == [first.estimate, second.estimate]
    assert [look.estimate for look in third.history] == [third.estimate]
    assert figures(QUESTIONS["count"].ask(session).best)[:3] == best
    fourth = third.refine(mu=1)
    assert (fourth.n_observations, fourth.cost) == (1, GDP(1))
    assert ask(session, "count", "0.4").cost == GDP(0)  # known better than that since the second look
    # Run All: the same again, in the same and in another kernel, for nothing.
    for again in (session, kernels()):
        rows = again.ledger.count
        asked = [ask(again, "count", mu) for mu in ("0.3", "0.5", "0.9", "1")]
        assert [figures(answer) for answer in asked] == [figures(one) for one in (first, second, third, fourth)]
        assert again.ledger.count == rows
        assert figures(QUESTIONS["count"].ask(again).best)[:3] == best


def test_a_question_first_asked_when_somebody_may_be_left_out_is_best_known_by_its_latest_look() -> None:
    session = opened(PEOPLE)
    ask(session, "count", "1.03")
    looks = [ask(session, "sum", mu) for mu in ("0.5", "0.9")]
    best = QUESTIONS["sum"].ask(session).best
    assert [look.n_observations for look in looks] == [1, 1]
    assert best.estimate == looks[1].estimate
    assert looks[1].cost == GDP("0.9")


def test_a_look_that_stands_alone_is_previewed_as_it_is_released() -> None:
    session = opened(PEOPLE)
    first = ask(session, "count", "0.5")
    ask(session, "counts by site", "1")  # beyond the worst case
    count = session.frame.count()
    within = float(first.arrays.half_width[0, 0]) / 2
    shown = count.preview(within=within)
    answer = count.release(within=within)
    assert (shown.cost, shown.total_loss) == (answer.cost, answer.total_loss)
    assert shown.expected_error == pytest.approx(float(answer.arrays.half_width[0, 0]), rel=1e-6)
    assert shown.expected_error == pytest.approx(within, rel=1e-6), "no more is paid than was asked for"
    assert answer.n_observations == 1


def test_what_is_refused_for_some_groups_is_refused_in_a_preview_too() -> None:
    session = opened(PEOPLE)
    ask(session, "counts by site", "0.5")
    ask(session, "count", "1")
    counts = session.frame.groupby("site").count()
    for say in (counts.preview, counts.release):
        with pytest.raises(RequestError, match="some units may be excluded"):
            say(mu="0.9", groups=["a"])


def test_groups_are_not_refined_alone_when_somebody_may_be_left_out() -> None:
    session = opened(PEOPLE)
    ask(session, "counts by site", "0.9")
    rows = session.ledger.count
    with pytest.raises(RequestError, match="some units may be excluded"):
        ask(session, "counts by site", "1.2", groups=["a"])
    assert session.ledger.count == rows


def test_a_share_of_what_is_left_for_everybody_is_refused_once_that_is_nothing() -> None:
    session = opened(PEOPLE)
    ask(session, "count", "1.03")
    with pytest.raises(BudgetExceeded):
        QUESTIONS["sum"].ask(session).release(share="0.5")
    ask(session, "sum", "0.5")


def test_noise_reduction_stops_where_a_look_would_stand_alone(kernels: Callable[..., dpnb.Session]) -> None:
    class Never:
        def is_satisfied(self, low: Any, high: Any) -> bool:
            return False

    for session in (kernels(), kernels()):
        looking = session.noise_reduction(session.frame.count(), name="looks", initial_mu="0.3")
        answer = looking.until(Never())
        assert (looking.met, answer.n_observations, answer.total_loss) == (False, 4, GDP.from_mu_squared("0.72"))
        rows = session.ledger.count
        with pytest.raises(BudgetExceeded, match="could not be combined"):
            looking.step()
        assert session.ledger.count == rows
        assert session._core.account.first_exclusion is None


def test_final_looks_stay_alone_and_a_later_one_is_not_combined_with_them() -> None:
    session = opened(PEOPLE)
    last = QUESTIONS["count"].ask(session).release(mu="0.5", final=True)
    with pytest.raises(RequestError, match="final"):
        ask(session, "count", "0.6")
    ask(session, "sum", "0.9")
    later = ask(session, "count", "0.9")
    assert later.n_observations == last.n_observations == 1
    assert later.cost == GDP("0.9")


# --- discoveries ------------------------------------------------------------------------------------------------------


def test_discoveries_are_refused_for_their_delta_alone() -> None:
    budget = dpnb.Budget(epsilon=1, delta="1e-6", discovery_delta="2e-8")
    session = opened(PEOPLE, budget=budget)
    for mu in ("2", "3"):
        QUESTIONS["texts"].ask(session).release(mu=mu)
    with pytest.raises(BudgetExceeded, match="discovery_delta"):
        QUESTIONS["texts"].ask(session).release(mu="4")
    ask(session, "count", "3")
    assert session.spent.delta == Fraction("2e-8")


# --- joins, and parts of parts ----------------------------------------------------------------------------------------


def test_a_join_charges_each_person_for_their_own_pairs_and_its_tables_for_their_own_rows() -> None:
    visits = pd.DataFrame({"who": [1, 1, 2, 3], "v": [1, 2, 3, 4]})
    bills = pd.DataFrame({"who": [1, 1, 2, 4], "b": [1, 2, 3, 4]})
    session = dpnb.Session(
        {"visits": visits, "bills": bills},
        name="people",
        schema={"visits": {"v": dpnb.Bounded(0, 8)}, "bills": {"b": dpnb.Bounded(0, 8)}},
        privacy_unit="who",
        max_rows_per_unit={"visits": 2, "bills": 2},
        budget=dpnb.Budget.gdp(1),
        ledger=":memory:",
        accounting="individual",
        not_private_test_seed=1,
    )
    of_visits, of_bills = session.table("visits"), session.table("bills")
    with heard() as found:
        of_visits.merge(of_bills, on="who").count().release(mu="0.8")
        of_visits.count().release(mu="1.2")
        of_bills.count_units().release(mu="0.5")
        session.count_active_units("now", table="bills").release(mu="0.1")
    assert found == {1: {0: 5}, 2: {0: 2}, 3: {0: 3}, 4: {0: 3}}  # one person's visits would be 1.44 and 0.64 is gone
    paid = {1: 0.64 + 0.26, 2: 0.64 / 16 + 0.36 + 0.26, 3: 0.36, 4: 0.26}
    assert standing(session).spent.tolist() == pytest.approx(list(paid.values()))


def test_parts_of_parts_charge_whoever_is_in_them() -> None:
    session = opened(PEOPLE, unit=None, budget=dpnb.Budget.gdp(1))
    large = session.frame["x"] > 4
    inner = session.partition("site")["a"].partition(large, name="large")
    inner[True].frame.count().release(mu="0.9")
    session.frame.count().release(mu="0.5")
    inner[False].frame.count().release(mu="0.9")
    inner[True].frame.count_units().release(mu="0.1")
    at_a = (PEOPLE["site"] == "a").to_numpy()
    paid = np.where(at_a & (PEOPLE["x"] > 4).to_numpy(), 0.81 + 0.01, 0.25)  # 0.25 more is not to be had, nor 0.81
    assert standing(session).spent.tolist() == pytest.approx(paid.tolist())


# --- found by attacks -------------------------------------------------------------------------------------------------


def test_a_part_has_no_headroom_once_somebody_may_have_been_left_out() -> None:
    session = opened(PEOPLE, unit=None, budget=dpnb.Budget.gdp(1))
    parts = session.partition("site")
    parts["a"].frame.count().release(mu="0.9")
    session.frame.count().release(mu="0.7")
    assert session._core.account.first_exclusion is not None
    assert parts["b"].headroom == 0


def test_an_interrupt_while_rows_are_taken_in_counts_no_version_twice(
    kernels: Callable[..., dpnb.Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = kernels(), kernels(version="2")
    ask(old, "count", "0.8")

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FilterComparison, "after", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _ = new.headroom
    ask(new, "count", "0.1")


# --- what does not go together ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "launch",
    [
        lambda s, **more: s.delegate(name="it", mu="0.1", **more),
        lambda s, **more: s.delegate(name="it", share="0.1", **more),
        lambda s, **more: s.above_threshold(10, name="it", epsilon="0.1", **more),
        lambda s, **more: s.above_threshold(10, name="it", mu="0.1", max_queries=2, **more),
    ],
)
def test_what_everybody_would_pay_at_launch_is_refused_in_the_session_and_in_its_parts(
    launch: Callable[..., Any],
) -> None:
    session = opened(PEOPLE)
    part = session.partition("site")["a"]
    for place in (session, part):
        for more in ({}, {"dry_run": True}):
            with pytest.raises(RequestError, match="accounting='individual'"):
                launch(place, **more)
    assert session.ledger.count == 1
    assert session.spent == GDP(0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"accounting": "each"}, "accounting: must be"),
        ({"accounting": "individual", "on_exhausted": "stop"}, "on_exhausted: must be"),
        ({"on_exhausted": "skip"}, "omit it"),
        ({"accounting": "individual", "filter": "rdp"}, "proved for"),
        ({"accounting": "individual", "filter": "rogers"}, "proved for"),
        ({"accounting": "individual", "filter": "basic"}, "proved for"),
        ({"accounting": "individual", "filter": "approx-dp"}, "proved for"),
    ],
)
def test_arguments_that_break_a_rule_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValueError, match=says):
        opened(PEOPLE, mode=None, budget=dpnb.Budget(epsilon=1, delta="1e-6"), **arguments)


def test_the_active_are_counted_only_where_units_pay_for_themselves_and_at_a_named_moment() -> None:
    with pytest.raises(RequestError, match="every unit takes part"):
        opened(PEOPLE, mode=None).count_active_units("now")
    session = opened(PEOPLE)
    for moment in ("", 1, None, "\ud800"):
        with pytest.raises(RequestError, match="moment"):
            session.count_active_units(moment)
    first = ask(session, "active", "0.5")
    assert ask(session, "active", "0.5").time == first.time
    ask(session, "count", "0.9")
    assert ask(session, "active", "0.5").estimate == first.estimate
    assert ask(session, "active later", "0.5").estimate != first.estimate


@pytest.mark.parametrize("mode", MODES)
def test_a_rehearsal_accounts_for_each_unit_too_and_reads_no_table(mode: str) -> None:
    session = dpnb.Session.rehearse(
        None,
        name="people",
        schema={"x": dpnb.Bounded(0, 8)},
        privacy_unit="who",
        max_rows_per_unit=2,
        budget=dpnb.Budget.gdp(1),
        accounting="individual",
        on_exhausted=mode,
    )
    for mu in ("0.9", "1.5"):
        answer = session.frame.count().release(mu=mu)
    assert answer.notice is not None
    assert session.count_active_units("now").release(mu="0.1").total_loss == GDP("0.1")
    assert session._core.account.first_exclusion == 2
