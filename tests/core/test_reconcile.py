"""Reconciliation of earlier answers: estimates that add up, with the intervals of the answers."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dpnb.errors import PlanError, RequestError
from tests.core.test_batches import open_session, queries_of, table


def complete(session: Any) -> Any:
    df = session.frame
    return df[df["town"].notna() & df["plan"].notna()]


def separate_answers(session: Any) -> list[Any]:
    df = complete(session)
    first = df.groupby("plan").size().release(mu=0.05)
    second = df.groupby(["town", "plan"]).size().release(mu=0.1)
    return [first.refine(mu=0.07), second, df.count().release(mu=0.03)]


def test_estimates_add_up_and_intervals_stay() -> None:
    session = open_session(not_private_test_seed=2)
    answers = separate_answers(session)
    spent, rows = session.spent, session.ledger.count
    reconciled = session.reconcile(answers)
    by_plan, cells, total = reconciled
    assert by_plan.estimate.sum() == pytest.approx(float(total))
    np.testing.assert_allclose(cells.estimate.unstack().sum(), by_plan.estimate)
    assert answers[0].estimate.sum() != pytest.approx(float(answers[2]), abs=1)
    for one, answer in zip(reconciled, answers, strict=True):
        assert one.answer == answer
        np.testing.assert_array_equal(one.arrays.low, answer.arrays.low)
        np.testing.assert_array_equal(one.arrays.high, answer.arrays.high)
    assert (session.spent, session.ledger.count) == (spent, rows)
    assert "do not shrink" in str(reconciled)
    assert "do not shrink" in reconciled._repr_html_()
    assert len(reconciled.to_pandas()) == 2 + 6 + 1


def test_estimates_are_weighted_least_squares_of_all_measurements() -> None:
    session = open_session()
    answers = separate_answers(session)
    design, values = [], []
    for charge in session.ledger.charges():
        measured = charge.measurement
        assert measured is not None
        cells = {2: np.tile(np.eye(2), 3), 6: np.eye(6), 1: np.ones((1, 6))}[len(measured.values)]
        design.append(cells / measured.sigma)
        values.append(measured.to_floats() / measured.sigma)
    expected, *_ = np.linalg.lstsq(np.concatenate(design), np.concatenate(values), rcond=None)
    np.testing.assert_allclose(np.ravel(session.reconcile(answers)[1].arrays.value), expected, rtol=1e-9)


def test_sums_are_restored_after_an_answer_of_a_batch_was_refined() -> None:
    session = open_session(not_private_test_seed=2)
    cells, by_plan, by_town, total = session.plan(queries_of(session)).release(mu=0.1)
    finer = by_plan.refine(mu=0.15)
    assert finer.estimate.sum() != pytest.approx(float(total), abs=0.1)
    reconciled = session.reconcile([cells, finer, by_town, total])
    sums = [float(np.sum(one.estimate)) for one in reconciled]
    assert all(one == pytest.approx(other) for one, other in pairwise(sums))
    unrefined = open_session()
    batch = unrefined.plan(queries_of(unrefined)).release(mu=0.1)
    for one, answer in zip(unrefined.reconcile(batch), batch, strict=True):
        np.testing.assert_allclose(one.arrays.value, answer.arrays.value, rtol=1e-9)


def test_all_answers_of_a_session_are_reconciled_by_default() -> None:
    session = open_session()
    separate_answers(session)
    session.frame["visits"].mean().release(mu=0.02)
    session.frame["visits"].histogram(4).release(mu=0.02)
    session.frame.groupby("town").count_units().release(mu=0.02)
    descriptions = {one.answer.description for one in session.reconcile()}
    assert len(descriptions) == 3
    assert all(text.startswith("count of rows") for text in descriptions)


def test_means_are_reconciled_through_their_sums() -> None:
    session = open_session(table(30_000))
    df = complete(session)
    answers = [df.groupby("plan")["visits"].mean().release(mu=0.1), df["visits"].mean().release(mu=0.05)]
    by_plan, overall = session.reconcile(answers)
    low, high = by_plan.estimate.min(), by_plan.estimate.max()
    assert low <= float(overall) <= high
    assert not low <= float(answers[1]) <= high or float(answers[1]) != float(overall)


def test_answers_about_other_rows_are_refused() -> None:
    session = open_session()
    df = session.frame
    answers = [df.count().release(mu=0.05), df.groupby("plan").size().release(mu=0.05)]
    with pytest.raises(PlanError, match="rows without a value of a group column"):
        session.reconcile(answers)
    with pytest.raises(RequestError, match="at least two queries"):
        session.reconcile()
    with pytest.raises(RequestError, match="at least two queries"):
        session.reconcile(answers[:1])


def test_anything_but_answers_of_the_session_is_refused() -> None:
    session, other = open_session(), open_session()
    answers = separate_answers(session)
    for wrong in (3, "x", {"a": 1}):
        with pytest.raises(RequestError, match="needs a list of answers"):
            session.reconcile(wrong)  # type: ignore[arg-type]
    for listed in ([3], [answers[0], session.frame.count()], [*answers, pickle.loads(pickle.dumps(answers[0]))]):
        with pytest.raises(RequestError, match="takes answers of this session"):
            session.reconcile(listed)
    with pytest.raises(RequestError, match="takes answers of this session"):
        other.reconcile(answers)


def test_answers_refined_for_some_groups_are_refused() -> None:
    session = open_session()
    answers = separate_answers(session)
    answers[0] = answers[0].refine(mu=0.1, groups=["free"])
    with pytest.raises(RequestError, match="some groups"):
        session.reconcile(answers)
    assert {one.answer.description for one in session.reconcile()} == {one.description for one in answers[1:]}


def test_arithmetic_is_left_to_the_answers() -> None:
    session = open_session()
    by_plan, _, total = session.reconcile(separate_answers(session))
    with pytest.raises(RequestError, match="compute with the answers"):
        by_plan - total
    with pytest.raises(RequestError, match="compute with the answers"):
        total * 2
