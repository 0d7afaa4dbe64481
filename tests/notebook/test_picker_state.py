"""What the picker is told: for every budget on its slider the figures of the preview at that budget."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._browser.messages import PickerState
from dpnb.notebook import picker_state
from dpnb.notebook.picker_state import DECADES, PRESETS, make_state
from dpnb.query.query import Query
from dpnb.render.numbers import format_percent_down, format_percent_up

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 200, "g": ["a", "b", "c"] * 200})
SCHEMA = {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b", "c"])}
FILTERS = ["gdp", "zcdp", "rdp", "approx-dp", "rogers", "basic"]


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return made(tmp_path)


def made(folder: Path, table: pd.DataFrame = TABLE, **arguments: object) -> dpnb.Session:
    given = {
        "public_size": len(table),
        "ledger": folder / "s.dpnb",
        "budget": dpnb.Budget(epsilon=2, delta=1e-6),
        **arguments,
    }
    return dpnb.Session(table, name="s", schema=SCHEMA, **given)


def state_of(query: Query) -> dict:
    """What the picker shows, as JSON, and that it is as the protocol says."""
    state = make_state(query)
    built = json.loads(json.dumps(msgspec.to_builtins(state), allow_nan=False))
    assert msgspec.convert(built, PickerState) == state
    return built


def questions(session: dpnb.Session) -> list[Query]:
    frame = session.frame
    return [
        frame.count(),
        frame["x"].mean(),
        frame.groupby("g")["x"].mean(),
        frame["x"].median(),
        frame["x"].quantile([0.25, 0.75]),
        frame["x"].describe(),
        frame.groupby("g").agg(n="count", mean=("x", "mean")),
        frame["x"].std(),
        frame["g"].value_counts(normalize=True),
    ]


@pytest.mark.parametrize("number", range(9))
def test_every_place_of_the_slider_says_what_its_preview_says(session: dpnb.Session, number: int) -> None:
    query = questions(session)[number]
    told = state_of(query)
    assert len(told["options"]) > 20
    for option in told["options"][:-1:7]:
        preview = query.preview(mu=float(option["target"]["mu"]))
        assert preview.fits
        assert option["remaining"] == preview.headroom_after
        assert option["after"] == f"{format_percent_down(preview.headroom_after)} left"
        more = preview.max_repetitions - 1
        assert option["max_repetitions"] == f"{more:,} more quer{'y' if more == 1 else 'ies'} at this cost"
        assert option["error_value"] == (None if preview.expected_error == math.inf else preview.expected_error)
        assert option["cost"] == f"{format_percent_up(preview.cost_fraction)} of the budget"
        assert f"{preview.total_loss.mu:.3g}"[:4] in option["loss"]
        assert repr(preview).partition("expected error:")[2].strip().startswith(option["error"].split(":")[0])


@pytest.mark.parametrize("filter_", FILTERS)
def test_every_place_of_the_slider_can_be_released(tmp_path: Path, filter_: str) -> None:
    session = made(tmp_path, filter=filter_)
    told = state_of(session.frame.count())
    assert [float(option["target"]["mu"]) for option in told["options"][:-1]] == sorted(
        {float(option["target"]["mu"]) for option in told["options"][:-1]}
    )
    assert all(session.frame.count().preview(mu=float(option["target"]["mu"])).fits for option in told["options"][:-1])
    last = told["options"][-1]["target"]
    assert last["share"] == "1"
    answer = session.frame.count().release(share=1)
    assert answer.cost.mu_squared == Fraction(last["at_most"])
    assert session.frame["x"].sum().preview(mu=0.05).fits is False


def test_slider_goes_from_little_to_all_evenly_on_a_log_scale(session: dpnb.Session) -> None:
    mus = [float(option["target"]["mu"]) for option in state_of(session.frame.count())["options"][:-1]]
    most = session.frame.count().preview(share=1).cost.mu
    assert mus[0] == pytest.approx(most / 10**DECADES, rel=0.1)
    assert mus[-1] > 0.8 * most
    steps = [math.log(b / a) for a, b in pairwise(mus)]
    assert max(steps) < 3 * math.log(10**DECADES) / len(mus)


def test_presets_take_at_most_what_their_meaning_says(session: dpnb.Session) -> None:
    query = session.frame["x"].mean()
    session.frame.count().release(mu=0.2)
    told = state_of(query)
    for (name, label, share), preset in zip(PRESETS, told["presets"], strict=True):
        assert (preset["id"], preset["label"]) == (name, label)
        assert preset["meaning"] == f"at most {100 * share:g}% of what is left"
        mu = float(told["options"][preset["option"]]["target"]["mu"])
        taken = query.preview(mu=mu).cost_fraction / session.headroom
        assert 0.5 * share < taken <= share * (1 + 1e-6)


def test_known_answer_is_shown_and_every_budget_refines_it(session: dpnb.Session) -> None:
    query = session.frame["x"].mean()
    answer = query.release(mu=0.1)
    told = state_of(query)
    cost = format_percent_up(answer.cost_fraction)
    assert told["current"] == f"{cost} of the budget (mu 0.1)"
    assert f"{answer.estimate:.2f}" in told["answer"]["html"]
    assert all(float(option["target"]["mu"]) > 0.1 for option in told["options"][:-1])
    for option in told["options"][:-1:9]:
        preview = query.preview(mu=float(option["target"]["mu"]))
        share = preview.expected_error / abs(answer.estimate)
        assert option["relative_error"] == f"{float(f'{100 * share:.2g}'):,g}% of the current answer"


def test_large_relative_error_is_written_without_an_exponent() -> None:
    preview = SimpleNamespace(half_widths=np.array([8.71, 0.5]), error_unit="x")
    best = SimpleNamespace(arrays=SimpleNamespace(value=np.array([1.0, 2.0])))
    assert picker_state._relative(preview, best) == "at most 870% of the current answer"  # type: ignore[arg-type]


def test_error_that_nobody_knows_is_said_to_be_unknown(tmp_path: Path) -> None:
    told = state_of(made(tmp_path, public_size=None).frame["x"].mean())
    assert "depends on the number of rows" in told["count_step"]["text"]
    assert (told["options"], told["refusal"]) == ([], None)
    x = made(tmp_path, public_size=None).frame["x"]
    told = state_of(x.ratio(x))  # no count makes that known
    assert told["count_step"] is None
    assert {option["error"] for option in told["options"]} == {"unknown"}
    assert {option["error_value"] for option in told["options"]} == {None}


def test_spent_budget_leaves_the_reason_and_the_answer(session: dpnb.Session) -> None:
    query = session.frame.count()
    query.release(share=1)
    told = state_of(query)
    assert told["options"] == []
    assert told["refusal"]["explanation"] == "budget-exceeded"
    assert "nothing is left" in told["refusal"]["message"]
    assert told["answer"] is not None


def test_looking_at_a_picker_spends_nothing_and_reads_no_rows(
    session: dpnb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session._core.tables.opened, "rows", lambda *_: pytest.fail("rows were read"))
    for query in questions(session):
        state_of(query)
    assert session.headroom == 1
    assert len(session.log) == 0


def test_a_refinement_that_does_not_narrow_is_not_offered(tmp_path: Path) -> None:
    # A larger table: noise that makes a variance negative leaves an interval that no release would narrow.
    for query in questions(made(tmp_path, pd.concat([TABLE] * 40))):
        query.release(mu=0.02)
        known = query.best
        assert known is not None
        told = state_of(query)
        assert len(told["options"]) > 5
        *mus, whole = [option["target"] for option in told["options"]]
        assert all(preview.narrows_interval for preview in query.preview(mu=[float(target["mu"]) for target in mus]))
        assert query.preview(share=float(whole["share"])).narrows_interval
        assert not any("no narrower" in option["error"] for option in told["options"])
        # A little more than is known costs, and narrows nothing: the control, which the slider would begin with.
        small = query.preview(mu=0.0205)
        assert small.cost.mu_squared
        if query.description in ("count of rows", "median of x"):  # whose error depends on the noise alone
            assert not small.narrows_interval
            assert "no narrower than the current noise interval" in repr(small)
            assert "no narrower" in small._repr_html_()


def test_refinements_of_which_none_narrows_are_not_offered_at_all(session: dpnb.Session) -> None:
    query = session.frame["x"].sum()
    query.release(share="0.97")
    told = state_of(query)
    assert told["options"] == []
    assert "would not narrow" in told["refusal"]["message"]
