"""Every interactive mechanism keeps the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpnb
from contracts.interactive import InteractiveContract, opened


def test_what_was_launched_is_listed_a_line_each(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.delegate(mu="0.1", name="colleague")
    session.partition("site").close()
    assert str(session.mechanisms).splitlines() == [
        "colleague: sub-session, open, charged at launch",
        "by site: partition, closed, charged step by step",
    ]


def test_in_a_rehearsal_everything_says_that_it_is_one() -> None:
    schema = {"site": dpnb.Categories(["a", "b"]), "x": dpnb.Bounded(0, 5)}
    session = dpnb.Session.rehearse(name="mock", budget=dpnb.Budget.gdp(1), schema=schema)
    inside = (session.partition("site")["a"], session.delegate(mu="0.1", name="sub"))
    scan = session.above_threshold(10, name="scan", epsilon="0.1", return_values=True)
    said = [scan.ask(session.frame.count()), *(one.frame.count().release(mu="0.1") for one in inside)]
    said += [session.noise_reduction(session.frame["x"].sum(), initial_mu="0.1").step(), *inside]
    assert all(repr(one).startswith("REHEARSAL") for one in said)


class TestSubSession(InteractiveContract):
    kind, at_launch = "sub-session", True

    def launch(self, session: dpnb.Session) -> Any:
        return session.delegate(mu=0.3, name="it")

    def launch_otherwise(self, session: dpnb.Session) -> Any:
        return session.delegate(mu=0.2, name="it")

    def launch_too_much(self, session: dpnb.Session) -> Any:
        return session.delegate(mu=50, name="much")

    def ask(self, session: dpnb.Session, it: Any, number: int = 0) -> Any:
        return it.frame[it.frame["x"] > number].count().release(mu=0.1)


class TestPartition(InteractiveContract):
    kind, at_launch = "partition", False

    def launch(self, session: dpnb.Session) -> Any:
        return session.partition("site", name="it")

    def launch_otherwise(self, session: dpnb.Session) -> Any:
        return session.partition(session.frame["x"] > 1, name="it")

    def launch_too_much(self, session: dpnb.Session) -> Any:
        return TooDear(session.partition("site", name="much"))

    def ask(self, session: dpnb.Session, it: Any, number: int = 0) -> Any:
        if isinstance(it, TooDear):
            return it.partition["a"].frame.count().release(mu=50)
        return it["a"].frame[it["a"].frame["x"] > number].count().release(mu=0.1)


class TooDear:
    """A partition that will be asked for more than there is."""

    def __init__(self, partition: Any) -> None:
        self.partition = partition


class TestAboveThreshold(InteractiveContract):
    kind, at_launch = "above-threshold", True

    def launch(self, session: dpnb.Session) -> Any:
        return session.above_threshold(1e6, name="it", epsilon=0.2, max_positives=2)

    def launch_otherwise(self, session: dpnb.Session) -> Any:
        return session.above_threshold(1e6, name="it", epsilon=0.2, max_positives=3)

    def launch_too_much(self, session: dpnb.Session) -> Any:
        return session.above_threshold(0, name="much", epsilon=50)

    def ask(self, session: dpnb.Session, it: Any, number: int = 0) -> Any:
        return it.ask(session.frame[session.frame["x"] > number].count())


class TestGaussianScan(TestAboveThreshold):
    def launch(self, session: dpnb.Session) -> Any:
        return session.above_threshold(1e6, name="it", mu=0.2, max_queries=4)

    def launch_otherwise(self, session: dpnb.Session) -> Any:
        return session.above_threshold(1e6, name="it", mu=0.2, max_queries=5)

    def launch_too_much(self, session: dpnb.Session) -> Any:
        return session.above_threshold(0, name="much", mu=50, max_queries=4)


class TestNoiseReduction(InteractiveContract):
    kind, at_launch = "noise reduction", False

    def launch(self, session: dpnb.Session) -> Any:
        return session.noise_reduction(session.frame["x"].sum(), name="it", initial_mu=0.05)

    def launch_otherwise(self, session: dpnb.Session) -> Any:
        return session.noise_reduction(session.frame.count(), name="it", initial_mu=0.05)

    def launch_too_much(self, session: dpnb.Session) -> Any:
        return session.noise_reduction(session.frame["x"].sum(), name="much", initial_mu=50)

    def ask(self, session: dpnb.Session, it: Any, number: int = 0) -> Any:
        for _ in range(number):
            it.step()
        return it.observe(number)


class TestDescent(InteractiveContract):
    kind, at_launch = "gradient descent", False

    def launch(self, session: dpnb.Session) -> Any:
        return self.fit(session, "it", 0.05)

    def launch_otherwise(self, session: dpnb.Session) -> Any:
        return self.fit(session, "it", 0.06)

    def launch_too_much(self, session: dpnb.Session) -> Any:
        return self.fit(session, "much", 50)

    def fit(self, session: dpnb.Session, name: str, mu: float) -> Any:
        return session.frame.fit("x", on="site", family="linear", mu=mu, steps=9, public_size=200, chains=2, name=name)

    def ask(self, session: dpnb.Session, it: Any, number: int = 0) -> Any:
        it.begin()
        for _ in range(number):
            it.step()
        return it.step()
