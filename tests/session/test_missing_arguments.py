"""A missing argument says what it is, with a line to copy; a missing declaration names ``draft``."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb.errors import InvalidValueError, MissingArgument
from dpnb.render.refusals import explanation_for

TABLE = pd.DataFrame({"age": [41.0] * 9})
GIVEN: dict[str, Any] = {
    "table": TABLE,
    "name": "m",
    "budget": dpnb.Budget(epsilon=1, delta=1e-6),
    "schema": {"age": dpnb.Bounded(0, 99)},
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_session_explains_each_missing_argument(name: str) -> None:
    given = {key: value for key, value in GIVEN.items() if key != name}
    with pytest.raises(
        MissingArgument, match=f"^Session: {name} is missing: .*; write for example dpnb.Session\\("
    ) as told:
        dpnb.Session(**given)
    assert isinstance(told.value, TypeError)
    assert "range" not in explanation_for(told.value).title


def test_several_missing_arguments_are_explained_at_once() -> None:
    with pytest.raises(MissingArgument, match=r"name is missing.*budget is missing.*schema is missing"):
        dpnb.Session(TABLE)  # type: ignore[call-arg]


def test_a_session_writes_a_schema_of_the_columns_that_were_given() -> None:
    table = pd.DataFrame({"age": [41], "plan": ["free"], "wage": [1.5], "seen": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(MissingArgument) as told:
        dpnb.Session(table, name="m", budget=None)  # type: ignore[call-arg]
    assert (
        "schema={'age': dpnb.Bounded(low, high, integer=True), 'plan': dpnb.Categories([...]), "
        "'wage': dpnb.Bounded(low, high), 'seen': dpnb.Dates(first, last)}; or python -m dpnb draft" in str(told.value)
    )


def test_the_lines_to_copy_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"person": [1], "age": [41.0], "plan": ["free"]})
    for call in (lambda: dpnb.Session(table), lambda: dpnb.Budget(epsilon=1)):  # type: ignore[call-arg]
        with pytest.raises(MissingArgument) as told:
            call()
        line = str(told.value).partition("write for example ")[2]
        assert eval(line, {"dpnb": dpnb, "table": table})


@pytest.mark.parametrize(("arguments", "name"), [({"epsilon": 1}, "delta"), ({"delta": 1e-6}, "epsilon")])
def test_a_budget_explains_each_missing_argument(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(MissingArgument, match=f"^Budget: {name} is missing: "):
        dpnb.Budget(**arguments)


def test_signatures_are_those_of_the_constructors() -> None:
    assert list(inspect.signature(dpnb.Budget).parameters) == ["epsilon", "delta", "discovery_delta", "pure_epsilon"]
    assert "schema" in inspect.signature(dpnb.Session).parameters


def test_no_traceback_has_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ({**GIVEN, "name": "no name"}, {"table": TABLE}):
        with pytest.raises(InvalidValueError) as refused:
            dpnb.Session(**given)
        shown = traceback.TracebackException.from_exception(refused.value, capture_locals=True)
        ours = [str(frame.locals) for frame in shown.stack if "test_missing" not in frame.filename]
        assert ours
        assert "41.0" not in "".join(ours)


def test_a_missing_declaration_names_draft() -> None:
    with pytest.raises(InvalidValueError, match=r"python -m dpnb draft table\.csv") as told:
        dpnb.Session.from_toml("nowhere.toml")
    assert explanation_for(told.value).title == "Argument not valid"
