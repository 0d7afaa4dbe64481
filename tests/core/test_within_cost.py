"""`within=` over a grid of table shapes: neither too much is paid nor is the target missed, or it is refused.

What a target needs is worked out here from the table itself: the least mu at which the interval around the true
answer would be as wide as was asked.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._core.pricing import public_knowledge
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb._plan.measurements import QuantilesView
from dpnb.accounting.losses import GDP
from dpnb.errors import ErrorEstimateUnavailable
from dpnb.query.query import Query
from dpnb.results.answer import Answer
from dpnb.results.estimates.estimate import estimate
from dpnb.results.estimates.quantiles import rank_scale
from dpnb.results.observations import CombinedObservations

MOST_PAID, MOST_MISSED = 1.5, 1.2
GROUPS = ["a", "b", "c", "d"]
SCHEMA = {
    "wage": dpnb.Bounded(0, 60),
    "score": dpnb.Bounded(-1, 1),
    "age": dpnb.Bounded(0, 100),
    "even": dpnb.Categories(GROUPS),
    "uneven": dpnb.Categories(GROUPS),
}
ROWS_OF_A_PERSON = {"1": 1, "2": 2, "8": 8, "unequal": None}
Ask = Callable[[Any], Query]


def table(rows: str, people: int) -> pd.DataFrame:
    """People with wages far from the middle of the bounds, and scores in it."""
    chance = np.random.default_rng(people)
    each = ROWS_OF_A_PERSON[rows]
    owners = np.repeat(np.arange(people), chance.geometric(0.4, people).clip(1, 8) if each is None else each)
    count = len(owners)
    age = chance.uniform(20, 60, count)
    return pd.DataFrame(
        {
            "person": owners,
            "wage": (4 + age / 10 + chance.gamma(2, 2, count)).clip(0, 60),
            "score": chance.uniform(-1, 1, count),
            "age": age,
            "even": chance.choice(GROUPS, count),
            "uneven": chance.choice(GROUPS, count, p=[0.7, 0.2, 0.07, 0.03]),
        }
    )


def opened(rows: pd.DataFrame, *, most: int = 8, **changes: Any) -> dpnb.Session:
    given: dict[str, Any] = {
        "name": "grid",
        "privacy_unit": "person",
        "max_rows_per_unit": most,
        "budget": dpnb.Budget.gdp(10**9),
        "schema": SCHEMA,
        "public_size": int(rows["person"].nunique()),
        "ledger": ":memory:",
        "not_private_test_seed": 5,
    }
    return dpnb.Session(rows, **{**given, **changes})


QUESTIONS: dict[str, tuple[Ask, list[float]]] = {
    "count": (lambda f: f.count(), [50, 500]),
    "sum": (lambda f: f["wage"].sum(), [3000]),
    "median": (lambda f: f["wage"].median(), [100]),
    "quantile": (lambda f: f["age"].quantile(0.9), [100]),
    "mean": (lambda f: f["wage"].mean(), [0.1, 1.0]),
    "mean in the middle": (lambda f: f["score"].mean(), [0.01]),
    "share of a condition": (lambda f: (f["wage"] > 20).mean(), [0.01]),
    "var": (lambda f: f["wage"].var(), [5.0]),
    "std": (lambda f: f["wage"].std(), [1.0]),
    "ratio": (lambda f: f["wage"].ratio(f["age"]), [0.01]),
    "regress": (lambda f: f.regress("wage", on="age"), [{"age": 0.05}]),  # type: ignore[list-item]
    "means of equal groups": (lambda f: f.groupby("even")["wage"].mean(), [1.0]),
    "means of unequal groups": (lambda f: f.groupby("uneven")["wage"].mean(), [1.0]),
    "shares": (lambda f: f["uneven"].value_counts(normalize=True), [0.02]),
    "count and mean": (lambda f: f.groupby("even").agg(n="count", m=("wage", "mean")), [{"m": 1.0}]),  # type: ignore[list-item]
}


def no_more(session: dpnb.Session, frame: Any, ask: Ask) -> None:
    """Nothing is released before."""


def rows_counted(session: dpnb.Session, frame: Any, ask: Ask) -> None:
    plan = ask(frame).plan
    (frame.groupby([group.name for group in plan.group_by]) if plan.group_by else frame).count().release(mu=2)


def rows_counted_badly(session: dpnb.Session, frame: Any, ask: Ask) -> None:
    plan = ask(frame).plan
    (frame.groupby([group.name for group in plan.group_by]) if plan.group_by else frame).count().release(mu="0.05")


def looked_at(session: dpnb.Session, frame: Any, ask: Ask) -> None:
    ask(frame).release(mu=3)


def glanced_at(session: dpnb.Session, frame: Any, ask: Ask) -> None:
    ask(frame).release(mu="0.02")


LINEAR = ("count", "sum", "median", "quantile")
LOOKED_AT = ("var", "std", "ratio", "regress", "shares")


def cases(name: str) -> list[tuple[Callable[[dpnb.Session, Any, Ask], None], bool, bool]]:
    """What was released before, whether the number of rows is public, and whether a filter leaves a part of them.

    Every second of them still has all releases before, and both the whole table and a part.
    """
    if name in LINEAR:
        return [(no_more, False, False), (glanced_at, False, True)]
    befores = [no_more, rows_counted, looked_at, glanced_at]
    if name in LOOKED_AT:
        return [
            (no_more, True, False),
            *((before, False, (at + later) % 2 == 1) for at, before in enumerate(befores) for later in (0, 1)),
        ]
    known = [(False, False), (True, False), (False, True)]
    return [(before, *how) for before in (*befores, rows_counted_badly) for how in known]


class Outcome:
    """What a release with a target cost and gave, against what the table says that it needs."""

    def __init__(self, query: Query, answer: Answer, known: GDP, within: Any) -> None:
        core: Any = query.runner
        compiled = core.tables.compile(query.plan)
        refinement: CombinedObservations = core.pricer.state(query.plan, query.view, ()).refinement
        earlier = CombinedObservations(refinement.observations[:-1], refinement.tau, refinement.count)
        sums = core.tables.opened.sums(compiled).reshape(compiled.cells, -1).astype(float)
        schema = core.tables.schema(query.plan.source)
        outputs = answer.outputs[1] if answer.outputs else (None,)
        wanted = np.array([within.get(name, np.inf) if isinstance(within, dict) else within for name in outputs])

        def widest(mu: float) -> float:
            sigma = compiled.l2_sensitivity_squared**0.5 / mu
            radius = (earlier if earlier.observations else CombinedObservations((), None, compiled.cells)).radius_at(
                sigma, Fraction(5, 100)
            )
            if isinstance(query.view, QuantilesView):  # in rows of rank
                node = compiled.features[0]
                return radius * float(node.unit) * rank_scale(node, query.view.at[0]) / within
            ones = np.ones(compiled.cells)
            _, low, high = estimate(compiled, query.view, sums, sigma * ones, radius * ones, schema).unclipped
            return float(np.max(np.where(np.isinf(wanted), 0, (high - low) / 2 / wanted)))

        self.paid, total = 1.0, answer.total_loss.mu
        if not answer.cost.mu_squared:  # known well enough, by the interval that it has
            self.missed = float(np.max(np.where(np.isinf(wanted), 0, answer.arrays.half_width / wanted)))
            return
        low, high = total / 30, total * 30
        while high / low > 1.001:
            middle = (low * high) ** 0.5
            low, high = (low, middle) if widest(middle) <= 1 else (middle, high)
        needed = high**2 - float(known.mu_squared)
        self.missed = widest(total)
        self.paid = float(answer.cost.mu_squared) / needed if needed > 0 else float("inf")


def outcomes(rows: str, people: int, names: list[str], every: int = 1) -> tuple[dict[str, Outcome], Counter[str]]:
    """Of every question, and one in `every` cases that differ in what is known; refusals are counted by question."""
    data = table(rows, people)
    found: dict[str, Outcome] = {}
    refused: Counter[str] = Counter()
    for name in names:
        ask, targets = QUESTIONS[name]
        for (before, public, filtered), within in itertools.product(
            cases(name)[:: 1 if name in LINEAR else every], targets
        ):
            figures = {"public_rows": len(data)} if public else {}
            session = opened(data, **figures)
            frame = session.frame
            frame = frame[frame["age"] > 40] if filtered else frame
            before(session, frame, ask)
            query = ask(frame)
            known, spent = session._core.releases.total_loss(query.plan), session.spent
            try:
                answer = query.release(within=within)
            except ErrorEstimateUnavailable:
                refused[name] += 1 if session.spent == spent else 10**6  # a refusal costs nothing
                continue
            case = f"{name} within {within}, {before.__name__}, public rows {public}, filter {filtered}"
            found[case] = Outcome(query, answer, known, within)
    return found, refused


def too_far(found: dict[str, Outcome]) -> list[str]:
    """Cases that cost too much or missed the target."""
    return [
        f"{case}: paid {outcome.paid:.3g} times, missed by {outcome.missed:.3g}"
        for case, outcome in found.items()
        if outcome.paid > MOST_PAID or outcome.missed > MOST_MISSED
    ]


SHAPES = [("1", 300, 1), ("2", 3000, 1), ("8", 545, 1), ("unequal", 3000, 1)]


@pytest.mark.parametrize(
    ("rows", "people", "every"), [("8", 545, 2), *(pytest.param(*shape, marks=pytest.mark.slow) for shape in SHAPES)]
)
def test_a_target_is_neither_paid_for_too_much_nor_missed_or_it_is_refused(rows: str, people: int, every: int) -> None:
    found, refused = outcomes(rows, people, list(QUESTIONS), every)
    assert too_far(found) == []
    assert refused.total() <= 3 * len(found)
    answered = {case.split(" within ")[0] for case in found}
    assert answered >= {"count", "sum", "median", "quantile", "mean", "mean in the middle"}
    if people >= 3000:
        assert answered == set(QUESTIONS)


def persons_for_rows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each unit is taken for a row."""
    was = PublicSizes.of

    def of(self: PublicSizes, query: Any, unit: Any) -> Any:
        rows = was(self, query, unit)
        return rows if rows is None or query.plan.group_by else dataclasses.replace(rows, assumption=None)

    monkeypatch.setattr(PublicSizes, "of", of)
    return ["mean"]


def equal_groups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Groups are taken to be equally large."""
    was = PublicSizes.of

    def of(self: PublicSizes, query: Any, unit: Any) -> Any:
        rows = was(self, query, unit)
        return rows if rows is None else dataclasses.replace(rows, assumption=None)

    monkeypatch.setattr(PublicSizes, "of", of)
    return ["means of unequal groups"]


def unclear_counts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every released count serves."""
    monkeypatch.setattr(public_knowledge, "PRECISE_COUNT_RATIO", 0.0)
    monkeypatch.setattr(public_knowledge, "USABLE_COUNT_RATIO", 0.0)
    return ["mean", "mean in the middle", "means of equal groups", "means of unequal groups"]


def any_look(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every look at the question serves, and the number of rows is enough for everything."""
    monkeypatch.setattr("dpnb._core.pricing.resolve.is_reliable_forecast", lambda *_, **__: True)
    return ["var", "ratio", "regress"]


@pytest.mark.parametrize(
    "weakened",
    [
        equal_groups,
        any_look,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (persons_for_rows, unclear_counts)),
    ],
)
def test_the_grid_catches_what_is_weaker(
    weakened: Callable[[pytest.MonkeyPatch], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = weakened(monkeypatch)
    found, _ = outcomes("8", 545, names)
    assert too_far(found) != []
