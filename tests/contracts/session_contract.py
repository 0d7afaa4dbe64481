"""What an analyst does with a session: every action returns all that is shown, so that two sessions can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import dpnb
from dpnb.errors import DpnbError

Shown = list[object]
Action = Callable[[Any], Shown]

CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), "TIME"),
    (re.compile(r"<(Remote)?Session "), "<Session "),
    (re.compile(r"(requests? in )\S+"), r"\1LEDGER"),
    (re.compile(r'("ledger": ?)"[^"]*"'), r'\1"LEDGER"'),
    (re.compile(r"(?<![\w.])[0-9a-f]{16}\b"), "ID"),
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"(?:<div[^>]*>|\n *)table in the curator[\s\S]*?up to date(?:</div>)?"), ""),
)
"""What differs between two sessions: times, addresses, names of ledgers, and where the table is."""


def normal(shown: object) -> str:
    """The text of a value, without what differs between two sessions."""
    text = str(shown)
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return text


def all_of(answer: Any) -> Shown:
    """Everything that an answer shows."""
    return [answer, repr(answer), answer._repr_html_(), answer.to_pandas().to_dict()]


def release(session: Any) -> Shown:
    query = session.frame["age"].mean()
    before = [query, query.preview(share=0.1), query.explain(), query.unanswered, query.best]
    answer = query.release(share=0.1)
    return [*before, *all_of(answer), query.best, query.preview(share=0.1)]


def refine(session: Any) -> Shown:
    answer = session.frame["age"].mean().release(share=0.05)
    return all_of(answer.refine(share=0.1))


def groups(session: Any) -> Shown:
    frame = session.frame
    shown = all_of(frame.groupby("plan")["cost"].mean().release(share=0.1))
    return [*shown, *all_of(frame[frame["age"] > 50].groupby("plan").size().release(share=0.1))]


def persons(session: Any) -> Shown:
    """Values within a person, tables of persons, and what is made of these."""
    frame = session.frame
    by_age = frame.sort_values(["age", "cost"])
    table = by_age.groupby("person").agg(total=("cost", "sum"), plan=("plan", "last"), n="size")
    shown = all_of(table[table["n"] > 1].groupby("plan")["total"].mean().release(share=0.1))
    shown += [by_age.groupby("person")["cost"].diff().mean().explain()]
    parts = session.partition(table["plan"])
    return [
        *shown,
        by_age.groupby("person")["cost"].shift(1).sum().release(share=0.05),
        frame.regress("cost ~ age | person").release(share=0.1),
        frame.regress("cost ~ age", family="poisson").release(share=0.1),
        frame.regress("cost ~ age + C(plan)", population=True).release(share=0.1),
        session.plan([table.groupby("plan").size(), table.count()]).release(share=0.1),
        parts["free"].frame["total"].sum().release(share=0.1),
    ]


def discover(session: Any) -> Shown:
    return all_of(session.frame.discover("town").release(share=0.2))


def several(session: Any) -> Shown:
    frame = session.frame
    return [
        *all_of(frame[["age", "cost"]].mean().release(share=0.1)),
        *all_of(frame["age"].median().release(share=0.1)),
    ]


def combined(session: Any) -> Shown:
    frame = session.frame
    answers = session.plan([frame.groupby(["plan", "ward"]).size(), frame.groupby("plan").size()]).release(share=0.2)
    return [*answers, *session.reconcile(answers)]


def batch(session: Any) -> Shown:
    frame = session.frame
    plan = session.plan([frame.count(), frame["age"].mean(), frame.groupby("plan").size()])
    return [plan.preview(share=0.2), plan.release(share=0.2), session.log.drop(columns="time").to_dict()]


def margins(session: Any) -> Shown:
    frame = session.frame
    return [dpnb.crosstab(frame["plan"], frame["age"] > 50, margins=True).release(share=0.2)]


def top(session: Any) -> Shown:
    return [session.frame["plan"].value_counts().top(2).release(epsilon=0.3)]


def partition(session: Any) -> Shown:
    parts = session.partition("plan", max_parts_per_unit=2)
    shown = [part.frame["cost"].mean().release(share=0.1) for part in (parts["free"], parts["basic"])]
    inner = parts["free"]
    shown += [inner, inner.log.drop(columns="time").to_dict(), inner._repr_html_()]
    parts.close()
    return [*shown, parts.state]


def delegate(session: Any) -> Shown:
    inner = session.delegate(share=0.2, name="colleague")
    answer = inner.frame["age"].mean().release(share=0.5)
    again = session.delegate(share=0.2, name="colleague")
    shown = [answer, inner, inner.headroom, inner.log.drop(columns="time").to_dict(), again is inner]
    inner.close()
    return [*shown, inner.state]


def noise_reduction(session: Any) -> Shown:
    total = session.noise_reduction(session.frame["cost"].sum(), max_mu=0.2)
    shown = [total.step(), total.step(), str(total)]
    total.close()
    return [*shown, total.state]


def above_threshold(session: Any) -> Shown:
    scan = session.above_threshold(150, epsilon=0.3, name="alarm", max_positives=1)
    frame = session.frame
    shown = [scan.ask(frame[frame["plan"] == plan].count()) for plan in ("free", "basic")]
    return [*shown, str(scan), scan.answers, session.mechanisms]


def launches_without_noise(session: Any) -> Shown:
    """Launches that are found by name, or refused, and then an answer, whose noise must not depend on them."""

    def scan(**changes: Any) -> Any:
        return session.above_threshold(150, **{"name": "alarm", "epsilon": "0.1", **changes})

    first = scan()
    shown: Shown = [first.ask(session.frame.count())]
    first.close()
    shown.append(scan().answers)
    shown += attempted(lambda: scan(epsilon="0.2"), lambda: scan(name="too much", epsilon=50))
    return [*shown, *all_of(session.frame.count().release(share=0.1))]


def fit(session: Any) -> Shown:
    frame = session.frame
    model = frame.fit("cost", on=["age"], family="linear", mu="0.1", steps=2, name="cost")
    return [model.run(), str(model), frame[["age", "cost"]].cov().release(share=0.1)]


def refusals(session: Any) -> Shown:
    session.frame.count().release(share=0.01)
    return attempted(
        lambda: session.frame.count().release(mu=50),
        lambda: session.frame["age"].mean().release(within=-1),
        lambda: session.frame["height"],
        lambda: session.delegate(share=3, name="too much"),
        lambda: session.frame["plan"].value_counts().top(99),
    )


def attempted(*attempts: Callable[[], object]) -> Shown:
    """What each returns, or the error that it raises."""
    shown: Shown = []
    for attempt in attempts:
        try:
            shown.append(attempt())
        except DpnbError as error:
            shown.append(f"{type(error).__name__}: {error}")
    return shown


def plots(session: Any) -> Shown:
    answer = session.frame.groupby("plan")["cost"].mean().release(share=0.1)
    return [answer.plot().to_json()]


ACTIONS: list[Action] = [
    release, refine, groups, persons, discover, several, combined, batch, margins, top, partition, delegate,
    noise_reduction, above_threshold, launches_without_noise, fit, refusals, plots,
]  # fmt: skip


class SessionContract:
    """A suite for sessions of any kind; a subclass gives the fixtures `session` and `other`, with equal noise."""

    @pytest.mark.parametrize("act", ACTIONS)
    def test_it_shows_what_the_other_shows(self, act: Action, session: Any, other: Any) -> None:
        one, two = outcome(act, session), outcome(act, other)
        assert one == two
        assert state(session) == state(other)


def outcome(act: Action, session: Any) -> list[str]:
    """All that an action shows, or the error that it raises."""
    try:
        return [normal(shown) for shown in act(session)]
    except DpnbError as error:
        return [f"{type(error).__name__}: {normal(error)}"]


def state(session: Any) -> list[str]:
    """All that a session shows about itself."""
    log = session.log.drop(columns="time")
    own = [session, repr(session), session._repr_html_(), session.explain(), log.to_dict(), session.headroom]
    return [normal(one) for one in [*own, session.spent, session.odometer, session.filter, session.schema]]
