"""What the units are a sample of: declared, kept by the ledger, stated, and used by all population intervals."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.errors import InvalidValueError, LedgerError, PlanError
from session.statements import opened

TOML = """\
name = "clinic"
sampled = {}
[budget]
epsilon = 1
delta = 1e-6
[schema]
age = {{ type = "bounded", low = 0, high = 90 }}
"""


def test_it_is_a_large_population_unless_declared() -> None:
    assert opened().sampled == "population"
    assert opened(sampled="population").sampled == "population"
    assert opened(sampled="census").sampled == "census"
    for fraction in (0.25, Fraction(1, 4)):
        assert opened(sampled=fraction).sampled == 0.25


@pytest.mark.parametrize("wrong", [0, 1, 1.5, -0.1, True, "sample", "0.1", math.nan, [0.1], Fraction(3, 2), 10**-400])
def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidValueError, match="sampled: "):
        opened(sampled=wrong)


def test_a_ledger_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    opened(path, sampled=0.1).frame.count().release(mu=0.1)
    assert opened(path).sampled == 0.1
    for other in ("census", "population", 0.2):
        with pytest.raises(LedgerError, match=r"sampled: .*sampled=0\.1.*leave it out, or use another ledger"):
            opened(path, sampled=other)
    assert opened(path, sampled=0.1).sampled == 0.1


def test_an_old_ledger_is_of_a_large_population(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    opened(path).frame.count().release(mu=0.1)
    with pytest.raises(LedgerError, match="sampled='population'"):
        opened(path, sampled=0.1)
    assert opened(path, sampled="population").sampled == "population"


@pytest.mark.parametrize(
    ("declared", "stated"),
    [(None, "a random sample of a large population"), ("census", "the whole population"), (0.25, "a fraction 0.25")],
)
def test_the_statement_says_it(declared: Any, stated: str, tmp_path: Path) -> None:
    report = opened(tmp_path / "clinic.dpnb", sampled=declared).report()
    assert stated in str(report.sections)
    unit = json.loads(report.to_json())["unit"]
    assert unit["sampled"] == {None: "population"}.get(declared, str(declared))


@pytest.mark.parametrize(("text", "found"), [('"census"', "census"), ("0.1", 0.1), ('"population"', "population")])
def test_a_declaration_has_it(text: str, found: Any, tmp_path: Path) -> None:
    file = tmp_path / "clinic.toml"
    file.write_text(TOML.format(text), encoding="utf-8")
    assert dpnb.Session.from_toml(file, pd.DataFrame({"age": [1.0, 2.0]})).sampled == found


def test_a_rehearsal_and_shares_of_a_budget_have_it(tmp_path: Path) -> None:
    options = {"name": "t", "budget": dpnb.Budget.gdp(1), "schema": {"age": dpnb.Bounded(0, 90)}, "sampled": 0.5}
    assert dpnb.Session.rehearse(**options).sampled == 0.5
    session = opened(tmp_path / "clinic.dpnb", sampled="census")
    answer = session.delegate(share=0.1, name="col").frame["age"].mean().release(share=0.5)
    assert answer.population_interval == answer.interval
    part = session.partition("g", max_parts_per_unit=1)["a"].frame["age"].mean().release(mu=0.02)
    assert part.population_interval == part.interval


def test_in_a_census_there_is_no_sampling_error() -> None:
    frame = opened(sampled="census", budget=dpnb.Budget.gdp(50)).frame
    for query in (frame["age"].mean(), frame["age"].std(), frame.groupby("g")["age"].median(), frame["age"].sum()):
        answer = query.release(mu=1)
        table = answer.to_pandas()
        assert table["population_low"].tolist() == table["low"].tolist()
        assert table["population_high"].tolist() == table["high"].tolist()
    with pytest.raises(PlanError, match="a census has no sampling error"):
        answer.population(mu=1)


def test_of_a_fraction_the_sampling_variance_is_less() -> None:
    def distance(**options: Any) -> float:
        session = opened(budget=dpnb.Budget.gdp(50), not_private_test_seed=1, **options)
        answer = session.frame["age"].mean(population=True).release(mu=5)
        _, high = answer.interval
        _, top = answer.population_interval
        return math.sqrt((top - float(answer.estimate)) ** 2 - (high - float(answer.estimate)) ** 2)

    assert distance(sampled=0.36) == pytest.approx(0.8 * distance(), rel=1e-9)
