"""The snapshot rounds against us and stays free of machine paths."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb.accounting.exact import exact
from dpnb.accounting.losses import GDP
from dpnb.render.numbers import format_mu_up, format_percent_down, format_percent_up
from dpnb.session import snapshot


@pytest.mark.parametrize("mu_squared", ["0.1", "2", "1e-12", "0.123456789", "1/3", "9/100", "12345678"])
def test_shown_losses_are_never_smaller(mu_squared: str) -> None:
    loss = GDP.from_mu_squared(mu_squared)
    assert exact(format_mu_up(loss)) ** 2 >= loss.mu_squared
    assert format_mu_up(GDP("0.3")) == "0.3"


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.12345, 0.5, 0.99999, 1.0])
def test_shown_shares_are_rounded_against_us(share: float) -> None:
    assert Fraction(format_percent_down(share)[:-1]) <= exact(share) * 100 <= Fraction(format_percent_up(share)[:-1])


def test_a_snapshot_is_json_and_says_how_the_session_stands(tmp_path: Path) -> None:
    session = dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}),
        name="small",
        budget=dpnb.Budget.gdp(1),
        schema={"x": dpnb.Bounded(0, 5)},
        ledger=tmp_path / "small.dpnb",
    )
    session.frame.count().release(mu=0.6)
    taken = json.loads(json.dumps(msgspec.to_builtins(snapshot.snapshot(session)), allow_nan=False))
    headroom, odometer = taken["gauges"]
    assert (taken["headlines"][0]["text"], headroom["value"]) == ("64.0% left", session.headroom)
    assert 0 < odometer["value"] < 1
    assert odometer["description"].startswith(session.odometer.statement())
    assert [entry["query"] for entry in taken["log"]] == ["count of rows"]
    assert str(tmp_path) not in json.dumps(taken)


def test_names_are_escaped_in_html(tmp_path: Path) -> None:
    session = dpnb.Session(
        pd.DataFrame({"<b>": [1.0]}),
        name="small",
        budget=dpnb.Budget.gdp(1),
        schema={"<b>": dpnb.Bounded(0, 5)},
        ledger=tmp_path / "small.dpnb",
    )
    answer = session.frame["<b>"].sum().release(mu=0.1)
    assert "<b>" not in answer._repr_html_().replace("<b>sum of", "")
