"""Groups that are in the answer because they are in the table.

Kind: values
Fault: A GROUP BY answers for the groups that occur, so a group with one person tells for certain that this person is
in the table, however much noise its count has.
Reported: OpenMined/PipelineDP#281 (why partitions are selected privately); arXiv:1909.01917 (Wilson et al. 2019,
Google's thresholding)
dpnb: Groups are declared, or passed by the analyst, or found by `discover` at a stated delta. Declared groups without
rows are in every answer; those without rows that are asked for by a key, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import CONTAINERS, answer, in_container

OTHERS = pd.DataFrame({"g": ["a"] * 30 + ["b"] * 30, "t": ["x"] * 60, "d": [pd.Timestamp("2020-01-05")] * 60})
PEOPLE = {
    "in an empty group": {"g": "c"},
    "in a group that is not declared": {"g": "elsewhere"},
    "with a text of their own": {"t": "secret"},
    "in an empty month": {"d": pd.Timestamp("2020-06-05")},
    "outside the declared dates": {"d": pd.Timestamp("1913-06-05")},
}
SCHEMA = {"g": dpnb.Categories(["a", "b", "c"]), "t": dpnb.Text(), "d": dpnb.Dates("2020-01-01", "2020-12-31")}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "categories": lambda frame: frame.groupby("g").count(),
    "texts": lambda frame: frame.groupby("t", keys=["x", "y", "secret"]).count(),
    "months": lambda frame: frame.groupby(frame["d"].dt.month).count(),
    "two": lambda frame: frame.groupby(["g", frame["d"].dt.month]).count(),
}
Keys = Callable[[pd.DataFrame, str], list[Any]]
COLUMN = {"categories": "g", "texts": "t", "months": "d", "two": "g"}


def attack(keys: Keys) -> list[tuple[str, str]]:
    """Questions whose groups tell that a person is in the table."""
    base = {question: keys(OTHERS, question) for question in QUESTIONS}
    tables = {name: pd.concat([OTHERS, pd.DataFrame([{**OTHERS.iloc[0], **row}])]) for name, row in PEOPLE.items()}
    return [(name, question) for name, rows in tables.items() for question in QUESTIONS
            if keys(rows, question) != base[question]]  # fmt: skip


def released(container: str) -> Keys:
    def keys(rows: pd.DataFrame, question: str) -> list[Any]:
        table = in_container(rows.reset_index(drop=True), container)
        return list(answer(table, SCHEMA, QUESTIONS[question]).keys)

    return keys


def groups_that_occur(rows: pd.DataFrame, question: str) -> list[Any]:
    return list(rows.groupby(COLUMN[question]).size().index)


@pytest.mark.parametrize("container", CONTAINERS)
def test_dpnb_resists(container: str) -> None:
    pytest.importorskip(container.split()[-1])
    assert attack(released(container)) == []


def test_the_control_is_caught() -> None:
    assert len(attack(groups_that_occur)) >= len(PEOPLE)
