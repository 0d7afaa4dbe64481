"""A preview, release, refinement or arithmetic of answers that has no meaning is refused and costs nothing."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded
from session.bad_input import Case, assert_refused, assert_refused_free, kept, make

TARGETS: dict[str, tuple[dict[str, Any], str]] = {
    "two targets": ({"mu": 0.1, "rho": 0.1}, "exactly one of"),
    "all targets": ({"mu": 0.1, "rho": 0.1, "epsilon": 1, "share": 1, "within": 1}, "exactly one of"),
    "mu zero": ({"mu": 0}, "greater than 0"),
    "mu negative": ({"mu": -0.1}, "greater than 0"),
    "mu nan": ({"mu": math.nan}, "finite"),
    "mu infinite": ({"mu": math.inf}, "finite"),
    "mu numpy nan": ({"mu": np.float64("nan")}, "finite"),
    "mu a text": ({"mu": "some"}, "finite"),
    "mu a truth value": ({"mu": True}, "finite"),
    "mu a mapping": ({"mu": {"north": 0.1}}, "only within="),
    "mu a set": ({"mu": {0.1}}, "finite"),
    "mu an array": ({"mu": np.array([0.1, 0.2])}, "finite"),
    "mu a Decimal nan": ({"mu": decimal.Decimal("nan")}, "finite"),
    "mu beyond the noise": ({"mu": "1e-320"}, "between 1e-12 and 1e6"),
    "mu far too small": ({"mu": 1e-200}, "between 1e-12 and 1e6"),
    "mu of thousands of digits": ({"mu": Fraction(1, 10**5000)}, "between 1e-12 and 1e6"),
    "mu of 1,900 digits": ({"mu": Fraction(10**1900, 10**1901 + 1)}, "at most 200 bits"),
    "share of 1,900 digits": ({"share": Fraction(10**1900, 10**1901 + 1)}, "at most 200 bits"),
    "mu far too large": ({"mu": Fraction(10**5000)}, "between 1e-12 and 1e6"),
    "rho zero": ({"rho": 0}, "greater than 0"),
    "rho negative": ({"rho": -1}, "greater than 0"),
    "rho nan": ({"rho": math.nan}, "finite"),
    "rho far too small": ({"rho": 1e-320}, "between 1e-24 and 1e12"),
    "rho far too large": ({"rho": 10**400}, "between 1e-24 and 1e12"),
    "epsilon zero": ({"epsilon": 0}, "greater than 0"),
    "epsilon negative": ({"epsilon": -1}, "greater than 0"),
    "epsilon nan": ({"epsilon": math.nan}, "finite"),
    "epsilon far too large": ({"epsilon": 10**400}, "between 1e-12 and 1e6"),
    "two targets of thousands of digits": ({"mu": Fraction(1, 10**5000), "rho": 1}, "exactly one of"),
    "share zero": ({"share": 0}, "greater than 0"),
    "share negative": ({"share": -0.1}, "greater than 0"),
    "share above one": ({"share": 1.01}, "at most 1"),
    "share nan": ({"share": math.nan}, "finite"),
    "share far too small": ({"share": 1e-300}, "between 1e-12 and 1e6"),
    "share of thousands of digits": ({"share": Fraction(10**5000)}, "between 1e-12 and 1e6"),
    "share in percent": ({"share": 50}, "at most 1"),
    "share a series": ({"share": pd.Series({"north": 0.1})}, "only within="),
    "within zero": ({"within": 0}, "greater than 0"),
    "within negative": ({"within": -2}, "greater than 0"),
    "within nan": ({"within": math.nan}, "finite"),
    "within infinite": ({"within": math.inf}, "finite"),
    "within far too fine": ({"within": "1e-400"}, "give another"),
    "within far too coarse": ({"within": {"north": Fraction(10**5000)}}, "between 1e-100 and 1e100"),
    "within of nothing": ({"within": {}}, "at least one entry"),
    "within of nothing, a series": ({"within": pd.Series(dtype=float)}, "at least one entry"),
    "within of groups that are not asked": ({"within": {"north": 5}}, "not a group or statistic"),
    "within of a statistic that is not asked": ({"within": {"mean": 5}}, "not a group or statistic"),
    "within of nothing named": ({"within": {None: 5}}, "within"),
    "within of a list of names": ({"within": {("north", None): 5}}, "within"),
    "within of one zero": ({"within": {"north": 0}}, "greater than 0"),
    "within of one nan": ({"within": {"north": math.nan}}, "finite"),
    "within of one a text": ({"within": {"north": "close"}}, "finite"),
    "within a data frame": ({"within": pd.DataFrame({"north": [5]})}, "finite|within"),
    "confidence zero": ({"mu": 0.1, "confidence": 0}, "0.95 is usual"),
    "confidence one": ({"mu": 0.1, "confidence": 1}, "0.95 is usual"),
    "confidence in percent": ({"mu": 0.1, "confidence": 95}, "0.95 is usual"),
    "confidence negative": ({"mu": 0.1, "confidence": -0.5}, "0.95 is usual"),
    "confidence nan": ({"mu": 0.1, "confidence": math.nan}, "finite"),
    "confidence a text": ({"mu": 0.1, "confidence": "high"}, "finite"),
    "confidence nothing": ({"mu": 0.1, "confidence": None}, "finite"),
    "confidence a list": ({"mu": 0.1, "confidence": [0.9, 0.95]}, "finite"),
    "confidence as good as one": ({"mu": 0.1, "confidence": 1 - Fraction(1, 10**400)}, "alpha|confidence"),
    "confidence as good as one, in the end": (
        {"mu": 0.1, "confidence": 1 - Fraction(1, 10**320), "final": True},
        "at most 1 - 1e-100",
    ),
    "final a text": ({"mu": 0.1, "final": "yes"}, "True or False"),
    "final one": ({"mu": 0.1, "final": 1}, "True or False"),
    "final nothing": ({"mu": 0.1, "final": None}, "True or False"),
    "simultaneous a text": ({"mu": 0.1, "simultaneous": "no"}, "True or False"),
    "simultaneous zero": ({"mu": 0.1, "simultaneous": 0}, "True or False"),
    "groups of no groups": ({"mu": 0.1, "groups": ["north"]}, "has none"),
    "an empty list of groups of no groups": ({"mu": 0.1, "groups": []}, "has none"),
}


@kept
def clinic() -> dpnb.Session:
    return make(name="targets")


@pytest.mark.parametrize("verb", ["preview", "release"])
@pytest.mark.parametrize(("target", "says"), TARGETS.values(), ids=TARGETS)
def test_a_target_without_a_meaning_is_refused(target: dict[str, Any], says: str, verb: str) -> None:
    question = clinic().frame.count()
    assert_refused_free(clinic(), lambda: getattr(question, verb)(**target), says)


@pytest.mark.parametrize("verb", ["preview", "release"])
def test_a_refinement_by_next_to_nothing_is_refused(verb: str) -> None:
    session = make()
    question = session.frame.count()
    question.release(mu=0.1)
    for more in (Fraction(1, 10**250), Fraction(1, 10**5000)):
        assert_refused_free(
            session, lambda more=more: getattr(question, verb)(mu=Fraction(1, 10) + more), "at most 200 bits"
        )


def test_a_refinement_below_the_grid_of_losses_is_free() -> None:
    session = make()
    question = session.frame.count()
    first = question.release(mu=0.1)
    again = question.release(mu=Fraction(1, 10) + Fraction(1, 10**50) / 3)
    assert again.cost == GDP(0)
    assert session.spent == GDP(0.1)
    assert again.estimate == first.estimate


@pytest.mark.parametrize("target", [{"mu": 2}, {"rho": Fraction(3)}, {"epsilon": 1.01}, {"within": 1e-3}], ids=str)
def test_too_much_is_refused_and_costs_nothing(target: dict[str, Any]) -> None:
    session = make()
    assert_refused(lambda: session.frame.count().release(**target), "largest|fits|at most")
    with pytest.raises(BudgetExceeded):
        session.frame.count().release(**target)
    assert session.spent == GDP(0)


@kept
def asked() -> SimpleNamespace:
    """A session in which several questions have been released."""
    session = make(name="asked")
    f = session.frame
    questions = SimpleNamespace(
        session=session,
        frame=f,
        rows=f.count(),
        towns=f.groupby("town").count(),
        both=f.groupby(["town", "grade"]).count(),
        mean=f["visits"].mean(),
        quartiles=f["visits"].quantile([0.25, 0.75]),
        summary=f["income"].describe(),
        agg=f.groupby("town").agg(n="count", mean=("visits", "mean")),
        streets=f.groupby("street", keys=["elm", "oak"]).count(),
        final=f.groupby("grade").count(),
        discovery=f.discover("street"),
    )
    questions.a_rows = questions.rows.release(mu=0.02)
    questions.a_towns = questions.towns.release(mu=0.02)
    questions.a_both = questions.both.release(mu=0.02)
    questions.a_sure = f.groupby("smoker").count().release(mu=0.02, confidence=0.99)
    questions.a_quartiles = questions.quartiles.release(mu=0.02)
    questions.a_agg = questions.agg.release(mu=0.02)
    questions.a_final = questions.final.release(mu=0.02, final=True)
    questions.a_discovery = questions.discovery.release(mu=0.02)
    return questions


REQUESTS: dict[str, Case] = {
    "preview of two lists": (lambda q: q.rows.preview(mu=[0.1], share=[0.1]), "one target may be a list"),
    "preview of an empty list": (lambda q: q.rows.preview(mu=[]), "at least one amount"),
    "preview of a list and a number": (lambda q: q.rows.preview(mu=[0.1], share=0.1), "exactly one of"),
    "preview of a list with nan": (lambda q: q.rows.preview(mu=[0.1, math.nan]), "finite"),
    "preview of a list with nothing": (lambda q: q.rows.preview(mu=[0.1, None]), "finite|exactly one"),
    "preview of a list of confidences": (lambda q: q.rows.preview(mu=0.1, confidence=[0.9, 0.95]), "finite"),
    "release of no target": (lambda q: q.rows.release(), "exactly one of"),
    "release of a list": (lambda q: q.rows.release(mu=[0.1]), "finite"),
    "within, an unknown group": (lambda q: q.towns.release(within={"west": 5}), "'west' is not a group"),
    "within, a known and an unknown group": (lambda q: q.towns.release(within={"north": 50, "west": 5}), "'west'"),
    "within, half of a key": (lambda q: q.both.release(within={"north": 5}), "'north' is not a group"),
    "within, a key too long": (lambda q: q.towns.release(within={("north", 1): 5}), "not a group"),
    "within of mixed statistics": (lambda q: q.summary.release(within=0.3), r"within=\{"),
    "within of mixed columns": (lambda q: q.agg.release(within=0.3), r"within=\{"),
    "within, an unknown statistic": (lambda q: q.summary.release(within={"mode": 1}), "'mode' is no"),
    "within of a mean without a count": (lambda q: q.mean.release(within=0.1), "release the count"),
    "within of a variance": (
        lambda q: q.frame["visits"].var().release(within=0.1),
        "release the count|choose the budget instead",
    ),
    "within of a correlation": (
        lambda q: q.frame["visits"].corr(q.frame["income"]).release(within=0.1),
        "choose the budget instead",
    ),
    "within of a ratio": (
        lambda q: q.frame["visits"].ratio(q.frame["income"]).release(within=0.1),
        "choose the budget instead",
    ),
    "within of a regression": (
        lambda q: q.frame.regress("visits", on="income").release(within=0.1),
        "choose the budget instead",
    ),
    "within of a discovery": (lambda q: q.discovery.release(within=3), "mu="),
    "groups, an unknown one": (lambda q: q.towns.release(mu=0.1, groups=["west"]), "can have; its values are"),
    "groups, an unknown text": (lambda q: q.streets.release(mu=0.1, groups=["fir"]), "must be keys of"),
    "groups, one twice": (lambda q: q.towns.release(mu=0.1, groups=["north", "north"]), "twice"),
    "groups, none": (lambda q: q.towns.release(mu=0.1, groups=[]), "at least one key"),
    "groups, a text": (lambda q: q.towns.release(mu=0.1, groups="north"), "a list of keys"),
    "groups, half of a key": (lambda q: q.both.release(mu=0.1, groups=["north"]), "must have 2 values"),
    "groups of a first look": (lambda q: q.streets.release(mu=0.1, groups=["elm"]), "first observation"),
    "groups of a first preview": (lambda q: q.streets.preview(mu=0.1, groups=["elm"]), "first observation"),
    "groups of a discovery": (lambda q: q.discovery.release(mu=0.1, groups=["elm"]), "group"),
    "final after a first look": (lambda q: q.towns.release(mu=0.1, final=True), "omit final"),
    "final when refining": (lambda q: q.a_towns.refine(mu=0.1, final=True), "omit final"),
    "final of one group": (lambda q: q.a_towns.refine(mu=0.1, final=True, groups=["north"]), "omit final"),
    "refine after final": (lambda q: q.a_final.refine(mu=0.1), "use another query"),
    "release after final": (lambda q: q.final.release(mu=0.1), "use another query"),
    "one group after final": (lambda q: q.a_final.refine(mu=0.1, groups=[1]), "use another query"),
    "refine without a target": (lambda q: q.a_towns.refine(), "exactly one of"),
    "refine an unknown group": (lambda q: q.a_towns.refine(mu=0.1, groups=["west"]), "can have; its values are"),
    "refine groups of a number": (lambda q: q.a_rows.refine(mu=0.1, groups=["north"]), "has none"),
    "shares of a number": (lambda q: q.a_rows.proportions(), "by group"),
    "shares of quantiles": (lambda q: q.a_quartiles.proportions(), "by group"),
    "shares of several statistics": (lambda q: q.a_agg.proportions(), "by group"),
    "shares of a discovery": (lambda q: q.a_discovery.proportions(), "counts or sums"),
}

ANSWERS: dict[str, Case] = {
    "an unknown group": (lambda q: q.a_towns["west"], "it has 'north', 'south'"),
    "half of a key": (lambda q: q.a_both["north"], r"it has \('north', 1\)"),
    "a key of an answer without groups": (lambda q: q.a_rows["north"], "one number"),
    "a place": (lambda q: q.a_towns[0], "it has"),
    "places": (lambda q: q.a_towns[:1], "key of a group"),
    "a list of keys": (lambda q: q.a_towns[["north"]], "key of a group"),
    "nothing": (lambda q: q.a_towns[None], "key of a group"),
    "a mask": (lambda q: q.a_towns[np.array([True, False])], "key of a group"),
    "an unknown statistic": (lambda q: q.a_agg["sum"], "it has 'n', 'mean'"),
    "a statistic by another level": (lambda q: q.a_quartiles[0.5], "it has"),
    "an unknown found group": (lambda q: q.a_discovery["elm"], "it has"),
    "float of groups": (lambda q: float(q.a_towns), r"\.estimate"),
    "other groups": (lambda q: q.a_towns - q.a_both, "the same groups"),
    "other statistics": (lambda q: q.a_agg - q.a_towns, "the same groups"),
    "a number less groups": (lambda q: q.a_rows - q.a_towns, "the same groups"),
    "another confidence": (lambda q: q.a_rows - q.a_sure[True], "same confidence"),
    "itself": (lambda q: q.a_towns - q.a_towns, "the same noise"),
    "its own refinement": (lambda q: q.a_towns / q.towns.best, "the same noise"),
    "its own group": (lambda q: q.a_towns + q.a_towns["north"], "the same noise"),
    "a share and its count": (lambda q: q.a_towns.proportions() / q.a_towns, "the same noise"),
    "two shares": (lambda q: q.a_towns.proportions()["north"] - q.a_towns.proportions()["south"], "the same noise"),
    "two quantiles": (lambda q: q.a_quartiles[0.75] - q.a_quartiles[0.25], "the same noise"),
    "division by 0": (lambda q: q.a_rows / 0, "divisor must not be 0"),
    "division by 0.0": (lambda q: q.a_towns / np.float64(0), "divisor must not be 0"),
    "division by False": (lambda q: q.a_rows / False, "answer or a finite number"),
    "a text divided by it": (lambda q: "1" / q.a_rows, "answer or a finite number"),
    "a product of answers": (lambda q: q.a_rows * q.a_towns, "multiplied by a number only"),
    "times nan": (lambda q: q.a_rows * math.nan, "answer or a finite number"),
    "plus infinity": (lambda q: q.a_rows + math.inf, "answer or a finite number"),
    "plus nothing": (lambda q: q.a_rows + None, "answer or a finite number"),
    "plus a text": (lambda q: q.a_rows + "1", "answer or a finite number"),
    "minus a list": (lambda q: q.a_towns - [1, 2], "answer or a finite number"),
    "minus a series": (lambda q: q.a_towns - pd.Series([1, 2]), "answer or a finite number"),
    "an array less it": (lambda q: np.array([1.0, 2.0]) - q.a_towns, "answer or a finite number"),
    "a question less it": (lambda q: q.a_rows - q.towns, "this is a query, not a number"),
    "a column times groups": (lambda q: q.frame["visits"] * q.a_towns, "float|constant"),
    "a column compared with groups": (lambda q: q.frame["visits"] > q.a_towns, "float|constant"),
    "iteration over one number": (lambda q: list(q.a_rows), "needs several numbers"),
    "length of one number": (lambda q: len(q.a_rows), "needs several numbers"),
    "truth of groups": (lambda q: bool(q.a_towns), "ambiguous"),
    "groups as a number": (lambda q: int(q.a_towns), "not a single number"),
    "format of groups": (lambda q: f"{q.a_towns:.2f}", "not a single number"),
    "a power": (lambda q: q.a_rows**2, "only the operators"),
    "a function of numpy": (lambda q: np.sin(q.a_rows), "np.sin"),
    "an array times it": (lambda q: np.array([1.0, 2.0]) * q.a_rows, "answer or a finite number"),
    "a series less it": (lambda q: pd.Series([1, 2]) - q.a_rows, "answer or a finite number"),
    "a series above it": (lambda q: pd.Series([1, 2]) > q.a_rows, "number or another answer"),
    "above a text": (lambda q: q.a_rows > "1", "number or another answer"),
    "above nan": (lambda q: q.a_rows > math.nan, "number or another answer"),
    "sorting one number": (lambda q: q.a_rows.sort_values(), "needs several numbers"),
    "sorting by nothing": (lambda q: q.a_agg.sort_values(), "needs the name of a column"),
    "sorting by another column": (lambda q: q.a_towns.sort_values("wage"), "not a column"),
    "sorting by another statistic": (lambda q: q.a_agg.sort_values("wage"), "needs the name of a column"),
    "no rows": (lambda q: q.a_towns.head(0), "at least one row"),
    "too many rows omitted": (lambda q: q.a_towns.tail(-99), "at least one row"),
    "half a row": (lambda q: q.a_towns.head(0.5), "whole number"),
    "the largest none": (lambda q: q.a_towns.nlargest(0), "at least 1"),
    "half a decimal": (lambda q: q.a_rows.round(0.5), "whole number"),
    "decimals of another statistic": (lambda q: q.a_agg.round({"wage": 1}), "not a statistic"),
    "another level": (lambda q: q.a_towns.sort_index(level="wage"), "level must be"),
    "two-way of one level": (lambda q: q.a_towns.unstack(), "several levels"),
    "another method": (lambda q: q.a_towns.cumsum(), "to_pandas"),
    "a cost of a part": (lambda q: q.a_towns["north"].cost, "belongs to a released answer"),
}

TABLES = {"request": REQUESTS, "answer": ANSWERS}
CASES = {f"{subject}: {name}": case for subject, cases in TABLES.items() for name, case in cases.items()}


@pytest.mark.parametrize(("ask", "says"), CASES.values(), ids=CASES)
def test_a_request_or_arithmetic_without_a_meaning_is_refused(ask: Any, says: str) -> None:
    questions = asked()
    assert_refused_free(questions.session, lambda: ask(questions), says)


def subject(_: str) -> Any:
    return asked()
