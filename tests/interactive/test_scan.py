"""Above-threshold in a session: which questions, what they cost, and what becomes of the hidden noise."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dpnb
from contracts.interactive import opened
from dpnb.accounting.conversions import mu_from_pure
from dpnb.accounting.convert import convert
from dpnb.accounting.losses import GDP, ZCDP, PureDP, Repeated
from dpnb.curator import audit
from dpnb.errors import InvalidValueError, MechanismClosed, PlanError, RequestError
from dpnb.interactive import scan as module
from waiting import wait_until

PLENTY = dpnb.Budget.gdp(300)
SURE = 200
"""An epsilon with which answers are right."""


def above(session: dpnb.Session, number: float) -> Any:
    return session.frame[session.frame["x"] > number].count()


def test_answers_until_so_many_were_above_and_below_is_free(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=PLENTY)
    scan = session.above_threshold(120, name="scan", epsilon=SURE, max_positives=2)
    spent = session.spent
    assert [bool(scan.ask(above(session, number))) for number in (3.5, 2.5, 1.5, 0.5)] == [False, False, True, True]
    assert session.spent == spent
    assert scan.state == "exhausted"
    with pytest.raises(MechanismClosed, match="exhausted: 2 of 2 positive answers, 4 queries"):
        scan.ask(above(session, 3))
    assert [answer.above for answer in scan.answers] == [False, False, True, True]
    assert session.odometer.kind == "time-uniform"  # it has ended without being closed


@pytest.mark.parametrize("filter_", ["gdp", "zcdp", "rdp", "approx-dp", "basic", "rogers"])
def test_costs_its_epsilon_as_pure_dp_converted_for_the_filter(tmp_path: Path, filter_: str) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(8, 1e-6), filter=filter_)
    scan = session.above_threshold(0, name="scan", epsilon="0.5")
    assert scan.cost == PureDP("0.5")
    assert session.spent == session._core.account.guarantee.initial_filter.step(PureDP("0.5")).spent
    if filter_ == "gdp":
        assert session.spent.mu < mu_from_pure("0.5")  # by its residue


@pytest.mark.parametrize("filter_", ["gdp", "zcdp", "approx-dp"])
def test_several_positives_cost_no_more_than_as_many_scans_with_one(tmp_path: Path, filter_: str) -> None:
    session = opened(tmp_path, filter=filter_, budget=dpnb.Budget(1, 1e-6))
    fresh = session.filter
    scan = session.above_threshold(120, name="scan", epsilon="0.25", max_positives=5, monotonic=True)
    assert scan.cost == Repeated(PureDP("0.05"), 5)
    alone = fresh
    for _ in range(5):
        alone = alone.step(PureDP("0.05"))
    assert session.filter.headroom == pytest.approx(alone.headroom, abs=1e-9)
    assert session.odometer.v == 5 * session._core.account.initial_odometer.step(convert(PureDP("0.05"), ZCDP)).v
    preview = repr(session.above_threshold(120, name="other", epsilon="0.25", max_positives=5, dry_run=True))
    assert "counted as 5 scans in a row, with epsilon 0.05 each" in " ".join(preview.split())
    again = session.above_threshold(120, name="scan", epsilon="0.25", max_positives=5, monotonic=True)
    assert again._terms.thresholds == 5
    assert not audit.audit(session.ledger.path).problems


@pytest.mark.parametrize("options", [{"filter": "basic"}, {"budget": dpnb.Budget(1, 1e-6, pure_epsilon="0.3")}])
def test_where_epsilons_add_one_threshold_serves_for_all_with_less_noise(tmp_path: Path, options: Any) -> None:
    session = opened(tmp_path, **{"budget": dpnb.Budget(1, 1e-6), **options})
    scan = session.above_threshold(120, name="scan", epsilon="0.25", max_positives=5)
    assert scan.cost == PureDP("0.25")
    assert scan._terms.thresholds == 1


def test_a_scan_with_new_thresholds_answers_until_so_many_were_above(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(20, 1e-6), filter="zcdp")
    scan = session.above_threshold(120, name="scan", epsilon=2, max_positives=2)
    assert scan._terms.thresholds == 2
    assert [bool(scan.ask(above(session, number))) for number in (3.5, 0.5, 3.4, 0.6)] == [False, True, False, True]
    assert scan.state == "exhausted"


def test_audit_refuses_more_mechanisms_than_positives(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(1, 1e-6))
    session.above_threshold(120, name="scan", epsilon="0.25", max_positives=5)
    (row,) = session.ledger.charges()
    paid = partial(audit.is_paid_for, tables=session._core.tables)
    assert paid(row)
    for count in (1, 4, 500):
        assert not paid(replace(row, loss=Repeated(PureDP(Fraction(1, 4) / count), count)))
    assert not paid(replace(row, loss=Repeated(PureDP("0.05"), 5), launch={}))


def test_the_gaussian_kind_is_for_a_declared_number_of_questions(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=PLENTY)
    scan = session.above_threshold(120, name="scan", mu=100, max_queries=3)
    assert session.spent == GDP(100)
    answers = [scan.ask(above(session, number)) for number in (0.5, 1.5, 3.5)]
    assert [answer.above for answer in answers] == [True, True, False]
    for answer, truth in zip(answers, (200, 150, 50), strict=True):
        low, high = answer.interval
        assert low < high
        assert answer.value == pytest.approx(truth, abs=1)
    assert scan.state == "exhausted"
    with pytest.raises(MechanismClosed):
        scan.ask(above(session, 2))


def test_hits_come_with_values_if_these_were_paid_for(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=PLENTY)
    scan = session.above_threshold(120, name="scan", epsilon=SURE, max_positives=3, return_values=True)
    assert scan.ask(above(session, 3.5)).value is None
    hit = scan.ask(session.frame["x"].sum())
    assert hit.value == pytest.approx(500, abs=5)
    assert hit.interval[0] <= 500.5
    assert "about" in repr(hit)
    plain = session.above_threshold(120, name="plain", epsilon=SURE)
    assert plain.ask(above(session, 0.5)).value is None


def test_a_question_may_bring_its_own_threshold(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=PLENTY)
    scan = session.above_threshold(120, name="scan", epsilon=SURE, max_positives=9)
    assert scan.ask(above(session, 2.5), threshold=80).above
    assert not scan.ask(above(session, 2.5)).above
    # whether a mean is above 2 is whether what exceeds 2 adds up to more than 0
    assert scan.ask((session.frame["x"] - 2).sum(), threshold=0).above
    assert not scan.ask((session.frame["x"] - 3).sum(), threshold=0).above


def test_the_same_question_again_is_no_new_question(tmp_path: Path) -> None:
    session = opened(tmp_path)
    answers = set()
    for again in (session, opened(tmp_path)):
        scan = again.above_threshold(100, name="scan", epsilon="0.1")
        answers |= {scan.ask(above(again, 2.5)) for _ in range(20)}
    assert len(answers) == len(scan.answers) == 1


def test_a_session_that_was_made_anew_goes_on_with_the_same_noise(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=PLENTY)
    scan = session.above_threshold(120, name="scan", epsilon=SURE, max_positives=2)
    scan.ask(above(session, 0.5))
    again = opened(tmp_path, budget=PLENTY)
    other = again.above_threshold(120, name="scan", epsilon=SURE, max_positives=2)
    assert other.state == "open"
    assert other.ask(above(again, 1.5)).above
    assert scan.state == other.state == "exhausted"
    assert again.spent == session.spent


def test_without_its_noise_it_answers_nothing_new_and_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(tmp_path)
    scan = session.above_threshold(100, name="scan", epsilon="0.1", max_positives=5)
    known = scan.ask(above(session, 2.5))
    monkeypatch.setattr(module, "_hidden", {})
    later = opened(tmp_path)
    dead = later.mechanisms["scan"]
    assert dead.state == "unavailable"
    assert dead.answers == [known]
    assert dead.ask(above(later, 2.5)) == known
    with pytest.raises(MechanismClosed, match="drawn in another kernel"):
        dead.ask(above(later, 3))
    dead.close()
    assert later.odometer.kind == "time-uniform"


@pytest.mark.waits
def test_a_fork_has_no_noise(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.above_threshold(100, name="scan", epsilon="0.1", max_positives=5)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            there = opened(tmp_path)
            state = there.above_threshold(100, name="scan", epsilon="0.1", max_positives=5).state
            os.write(writer, state.encode())
        finally:
            os._exit(0)
    wait_until(lambda: os.waitpid(child, os.WNOHANG)[0], "the fork ends")
    assert os.read(reader, 100) == b"unavailable"


def test_counts_only_takes_no_sums(tmp_path: Path) -> None:
    session = opened(tmp_path)
    scan = session.above_threshold(100, name="scan", epsilon="0.1", monotonic=True)
    with pytest.raises(RequestError, match="monotonic"):
        scan.ask(session.frame["x"].sum())
    scan.ask(above(session, 1))


@pytest.mark.parametrize(
    "ask",
    [
        lambda frame: frame["x"].mean(),
        lambda frame: frame.groupby("site").count(),
        lambda frame: frame["x"].quantile(0.5),
        lambda frame: frame["x"].std(),
    ],
)
def test_only_one_count_or_sum_can_be_compared(tmp_path: Path, ask: Any) -> None:
    session = opened(tmp_path)
    scan = session.above_threshold(100, name="scan", epsilon="0.1")
    with pytest.raises(PlanError, match="only a single count"):
        scan.ask(ask(session.frame))
    assert not scan.answers


def test_questions_of_others_and_other_things_are_refused(tmp_path: Path) -> None:
    session = opened(tmp_path)
    scan = session.above_threshold(100, name="scan", epsilon="0.1")
    sub = session.delegate(mu="0.1", name="colleague")
    with pytest.raises(RequestError, match="another session"):
        scan.ask(sub.frame.count())
    for thing in (7, None, session.frame, "count"):
        with pytest.raises(RequestError, match="must be a query"):
            scan.ask(thing)
    assert not scan.answers


def test_dry_run_says_what_it_costs_and_how_reliable_it_is(tmp_path: Path) -> None:
    session = opened(tmp_path)
    for given in ({"epsilon": "0.5", "max_positives": 2}, {"mu": "0.5", "max_queries": 10}):
        said = " ".join(repr(session.above_threshold(100, name="scan", dry_run=True, **given)).split())
        assert "nothing was charged" in said
        assert "with 95% confidence" in said
    assert session.ledger.count == 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, RequestError),
        ({"epsilon": 1, "mu": 1}, RequestError),
        ({"mu": 1}, RequestError),
        ({"epsilon": 1, "max_queries": 5}, RequestError),
        ({"epsilon": 0}, InvalidValueError),
        ({"epsilon": 1, "max_positives": 0}, InvalidValueError),
        ({"mu": 1, "max_queries": 5, "max_positives": 2}, RequestError),
        ({"mu": 1, "max_queries": 5, "monotonic": True}, RequestError),
        ({"mu": 1, "max_queries": 5, "return_values": True}, RequestError),
        ({"epsilon": 1, "max_positives": 1.5}, InvalidValueError),
        ({"mu": 1, "max_queries": 0}, InvalidValueError),
        ({"epsilon": 1, "return_values": 1}, InvalidValueError),
        ({"epsilon": 1, "threshold": "many"}, InvalidValueError),
        ({"epsilon": 1, "threshold": float("nan")}, InvalidValueError),
    ],
)
def test_bad_terms_are_refused_before_anything_is_charged(
    tmp_path: Path, given: dict[str, Any], error: type[Exception]
) -> None:
    session = opened(tmp_path)
    with pytest.raises(error):
        session.above_threshold(**{"threshold": 100, "name": "scan", **given})
    assert session.ledger.count == 0


def test_the_error_names_the_argument_of_the_analyst(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"^max_queries: must be an integer from 1 to 1,000,000,000; got 1"):
        opened(tmp_path).above_threshold(100, name="scan", mu=1, max_queries=10**10)
