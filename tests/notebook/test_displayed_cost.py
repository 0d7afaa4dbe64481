"""A release by mouse never charges more than was displayed, although the budget changed meanwhile."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._request import Conditions, Release
from dpnb._target import target_from
from dpnb.errors import CostIncreased
from dpnb.notebook.picker import Picker

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 200, "g": ["a", "b", "c"] * 200, "p": range(600)})
SCHEMA = {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b", "c"])}


def opened(folder: Path, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {"name": "s", "schema": SCHEMA, "public_size": 600, "budget": dpnb.Budget.gdp(1)}
    return dpnb.Session(TABLE, **{**arguments, "ledger": folder / "s.dpnb", **changes})


def ask(picker: Picker, target: object) -> dict[str, Any]:
    picker._on_message(picker, {"method": "release", "target": target, "id": "1", "confirmed": True}, None)
    return picker.state


def test_what_costs_more_than_was_displayed_is_refused_and_charges_nothing(tmp_path: Path) -> None:
    """Once units may be excluded, an observation is charged in full: more than the refinement that was displayed."""
    arguments = {"accounting": "individual", "privacy_unit": "p", "max_rows_per_unit": 1}
    session = opened(tmp_path, **arguments)
    session.frame.count().release(mu=0.2)
    picker = Picker(session.frame.count())
    wanted = next(option["target"] for option in picker.state["options"] if float(option["target"]["mu"]) > 0.6)
    other = opened(tmp_path, **arguments)
    other.frame["x"].sum().release(share=1)
    spent = session.spent
    told = ask(picker, wanted)
    assert told["refusal"]["explanation"] == "cost-increased"
    assert "costs more than in the preview" in told["refusal"]["message"]
    assert session.spent == spent
    # The control: the same click without the displayed cost charges the full loss.
    mu = float(wanted["mu"])
    assert session.frame.count().preview(mu=mu).cost.mu_squared > Fraction(wanted["at_most"])
    assert session.frame.count().release(mu=mu).cost == dpnb.accounting.GDP(mu)


@pytest.mark.parametrize("place", [3, 20, -1])
def test_what_was_displayed_is_charged(tmp_path: Path, place: int) -> None:
    session = opened(tmp_path, budget=dpnb.Budget.gdp("1/3"))
    session.frame["x"].sum().release(mu="1/7")
    picker = Picker(session.frame.count())
    wanted = picker.state["options"][place]["target"]
    before = session.spent
    assert ask(picker, wanted)["phase"] == "answered"
    assert (session.spent - before).mu_squared == Fraction(wanted["at_most"])


@pytest.mark.parametrize("at_most", [None, "0", "1/1000000", 3, ["1"], "-1"])
def test_a_click_without_the_cost_that_was_displayed_charges_nothing(tmp_path: Path, at_most: object) -> None:
    session = opened(tmp_path)
    picker = Picker(session.frame.count())
    told = ask(picker, {"mu": "0.3"} if at_most is None else {"mu": "0.3", "at_most": at_most})
    assert told["refusal"] is not None
    assert not session.spent
    assert session.ledger.charges() == []


def test_a_limit_refuses_exactly_what_costs_more(tmp_path: Path) -> None:
    session = opened(tmp_path)
    query, releases = session.frame.count(), session._core.releases
    request = partial(Release, query.plan, query.view)
    cost = query.preview(mu=0.3).cost.mu_squared
    with pytest.raises(CostIncreased, match="preview again"):
        releases.release(request(target_from(0.3)), Conditions(at_most=cost - Fraction(1, 10**50)))
    assert not session.spent
    assert releases.release(request(target_from(0.3)), Conditions(at_most=cost)).cost.mu_squared == cost
    assert not releases.release(request(target_from(0.2)), Conditions(at_most=Fraction(0))).cost
    assert releases.release(request(target_from(0.3)), Conditions(at_most=Fraction(0))).cost.mu_squared == cost


def test_a_limit_of_a_batch_refuses_exactly_what_costs_more(tmp_path: Path) -> None:
    session = opened(tmp_path)
    batches = session._core.batches
    queries = [session.frame.groupby("g").size(), session.frame["x"].mean()]
    planned = batches.plan([(query.plan, query.view) for query in queries])
    targets = (target_from(mu=0.3),) * 2
    cost = batches.preview(planned, targets).cost.mu_squared
    with pytest.raises(CostIncreased, match="preview again"):
        session._core.executor.run(planned.request(targets), Conditions(at_most=cost - Fraction(1, 10**50)))
    assert session.ledger.charges() == []
    session._core.executor.run(planned.request(targets), Conditions(at_most=cost))
    assert batches.release(planned, targets).cost.mu_squared == cost
