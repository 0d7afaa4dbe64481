"""A refinement that adds nothing to an answer says so: the cost of the first release would read as another charge."""

from __future__ import annotations

import pickle

import pytest

import dpnb


@pytest.fixture
def session() -> dpnb.Session:
    return dpnb.Session.rehearse(
        name="wages", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"wage": dpnb.Bounded(0, 100)}
    )


def test_the_same_target_says_that_nothing_was_charged(session: dpnb.Session) -> None:
    query = session.frame["wage"].mean()
    first = query.release(share=0.05)
    spent = session.spent
    again = query.answer.refine(share=0.05)
    assert session.spent == spent
    for shown in (str(again), again._repr_html_(), str(pickle.loads(pickle.dumps(again)))):
        assert "nothing was charged: already known at mu " in shown
    assert f"; it was released for this cost {str(first).rsplit('  cost ', 1)[1].split(';')[0]}; requested" in str(
        again
    )
    assert "nothing was charged" not in str(first) + str(query.release(share=0.05))


def test_a_looser_target_says_so_too_and_a_tighter_one_its_cost(session: dpnb.Session) -> None:
    answer = session.frame.count().release(mu="0.1")
    assert "nothing was charged: already known at mu 0.1" in str(answer.refine(mu="0.05"))
    finer = answer.refine(mu="0.2")
    assert "nothing was charged" not in str(finer)
    assert "cost " in str(finer)
