"""Answers are sorted, rounded, selected, iterated and exported like pandas objects, with their intervals, and free."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb.errors import AnswerAttributeError, DpnbError, NotReleasedError, PlanError, RequestError
from dpnb.results.answer import Answer
from dpnb.results.estimates import IntervalArrays
from dpnb.results.regression import NO_INTERVALS, FitResult
from dpnb.results.tables.table import Estimates

PLANS, SIDES, EDGES = ["free", "25%", "a|b *c*"], ["south", "north"], [0, 5, 10, 20]
ENDS = ("estimate", "low", "high", "noise_scale")


@pytest.fixture(scope="module")
def session() -> dpnb.Session:
    chance = np.random.default_rng(4)
    table = pd.DataFrame(
        {"x": chance.gamma(2, 4, 900), "plan": chance.choice(PLANS, 900), "side": chance.choice(SIDES, 900)}
    )
    schema = {"x": dpnb.Bounded(0, 20), "plan": dpnb.Categories(PLANS), "side": dpnb.Categories(SIDES)}
    arguments: dict[str, Any] = {"name": "r", "schema": schema, "ledger": ":memory:", "not_private_test_seed": 5}
    return dpnb.Session(table, budget=dpnb.Budget.gdp(1000), **arguments)


QUERIES: dict[str, Callable[[Any], Any]] = {
    "number": lambda f: f["x"].mean(),
    "counts": lambda f: f.groupby("plan").size(),
    "means": lambda f: f.groupby("plan")["x"].mean(),
    "bins": lambda f: f.groupby(dpnb.cut(f["x"], EDGES)).size(),
    "pairs": lambda f: f.groupby(["plan", "side"]).size(),
    "two-way": lambda f: f.groupby(["plan", "side"]).size().unstack(),
    "statistics": lambda f: f["x"].describe(),
    "table": lambda f: f.groupby("plan").agg(n="count", mean=("x", "mean")),
}


@pytest.fixture(scope="module")
def answers(session: dpnb.Session) -> dict[str, Answer]:
    return {name: query(session.frame).release(mu=0.5) for name, query in QUERIES.items()}


SEVERAL = [name for name in QUERIES if name != "number"]
BY = {"two-way": "north", "table": "mean"}


def rows(estimates: Estimates) -> set[tuple[Any, ...]]:
    """Label, estimate, interval and noise scale of each number, in any order."""
    return {(label, *numbers) for label, *numbers in estimates.to_pandas()[list(ENDS)].itertuples()}


# --- order ---


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("name", SEVERAL)
def test_sorting_orders_rows_and_keeps_each_number_with_its_interval(
    answers: dict[str, Answer], name: str, ascending: bool
) -> None:
    answer = answers[name]
    ordered = answer.sort_values(BY.get(name), ascending=ascending)
    assert rows(ordered) == rows(answer)
    estimate: Any = ordered.estimate
    column = estimate[BY[name]] if name in BY else estimate
    assert column.tolist() == sorted(column.tolist(), reverse=not ascending)
    expected: Any = answer.estimate
    pd.testing.assert_frame_equal(
        pd.DataFrame(estimate), pd.DataFrame(expected).loc[estimate.index], check_names=False, check_column_type=False
    )


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0, 10)), min_size=1, max_size=12), st.booleans(), st.data())
def test_any_sorting_rounding_and_selection_keeps_pairs_of_estimate_and_interval(
    numbers: list[tuple[float, float]], ascending: bool, data: st.DataObject
) -> None:
    value, reach = np.array(numbers).T
    raw = tuple(array.reshape(-1, 1) for array in (value, value - reach, value + reach))
    arrays = IntervalArrays(raw[0], np.clip(raw[1], 0, 50), np.clip(raw[2], 0, 50), raw[0] * 0 + 1, raw)  # type: ignore[arg-type]
    keys = tuple((index,) for index in range(len(numbers)))
    ids = tuple(frozenset({(1, index)}) for index in range(len(numbers)))
    made = Estimates(
        description="w", names=("g",), keys=keys, outputs=None, arrays=arrays, confidence=0.95, measurement_ids=ids
    )
    decimals = data.draw(st.integers(-2, 4))
    kept = data.draw(st.integers(1, len(numbers)))
    new = made.sort_values(ascending=ascending).head(kept).round(decimals)
    for row, ((index,), origin) in enumerate(zip(new.keys, new.measurement_ids, strict=True)):
        assert origin == ids[index]
        assert new.arrays.value[row, 0] == pytest.approx(value[index], abs=0.5 * 10.0**-decimals * (1 + 1e-9))
        assert new.arrays.noise_scale[row, 0] == arrays.noise_scale[index, 0]
        for mine, old in zip((new.arrays.low, *new.arrays.unclipped[1:2]), (arrays.low, raw[1]), strict=True):
            assert old[index, 0] - 10.0**-decimals <= mine[row, 0] <= old[index, 0]
        for mine, old in zip((new.arrays.high, *new.arrays.unclipped[2:]), (arrays.high, raw[2]), strict=True):
            assert old[index, 0] <= mine[row, 0] <= old[index, 0] + 10.0**-decimals
    estimates = [float(value[index]) for (index,) in new.keys]
    assert estimates == sorted(value.tolist(), reverse=not ascending)[:kept]


def test_unknown_estimates_are_sorted_last() -> None:
    arrays = IntervalArrays.of(*(np.array(column) for column in ([np.nan, 2, 1], [0, 0, 0], [9, 9, 9], [1, 1, 1])))
    made = Estimates(
        description="w", names=("g",), keys=(("a",), ("b",), ("c",)), outputs=None, arrays=arrays, confidence=0.95
    )
    assert [key for (key,) in made.sort_values().keys] == ["c", "b", "a"]
    assert [key for (key,) in made.sort_values(ascending=False).keys] == ["b", "c", "a"]


def test_keys_are_sorted_and_ranges_in_their_order(answers: dict[str, Answer]) -> None:
    assert [key for (key,) in answers["counts"].sort_index().keys] == sorted(PLANS)
    bins = answers["bins"]
    assert bins.sort_values().sort_index().keys == bins.keys
    assert bins.sort_values().keys != bins.keys
    assert bins.sort_index(ascending=False).keys == bins.keys[::-1]
    pairs = answers["pairs"]
    assert pairs.sort_index().keys == tuple(sorted(pairs.keys))
    assert [key[1] for key in pairs.sort_index(level="side").keys] == sorted(key[1] for key in pairs.keys)
    assert pairs.sort_index(level=-1).keys == pairs.sort_index(level="side").keys


def test_rows_are_selected_as_in_pandas(answers: dict[str, Answer]) -> None:
    for name in SEVERAL:
        answer, estimate = answers[name], pd.DataFrame(answers[name].estimate)  # type: ignore[call-overload]
        for count in (1, 2, -1):
            for verb in ("head", "tail"):
                index = list(getattr(estimate, verb)(count).index)
                assert list(pd.DataFrame(getattr(answer, verb)(count).estimate).index) == index, (name, verb, count)
    counts = answers["counts"]
    for verb in ("head", "tail"):
        with pytest.raises(RequestError, match=f"{verb}: must keep at least one row; got n=0 of 3 rows"):
            getattr(counts, verb)(0)
    assert list(counts.nlargest(2).estimate.index) == list(counts.estimate.nlargest(2).index)  # type: ignore[union-attr]
    assert list(counts.nsmallest(1).estimate.index) == list(counts.estimate.nsmallest(1).index)  # type: ignore[union-attr]
    assert answers["table"].nlargest(1, "n").estimate.index[0] == answers["table"].estimate["n"].idxmax()  # type: ignore[union-attr, call-overload]


# --- shape ---


def test_a_two_way_table_has_the_numbers_of_the_list(answers: dict[str, Answer]) -> None:
    pairs, table = answers["pairs"], answers["two-way"]
    expected: Any = pairs.estimate
    assert table.shape == (3, 2)
    for plan, side in pairs.keys:
        assert table.estimate.loc[plan, side] == expected[plan, side]  # type: ignore[union-attr, index]
        assert table[plan, side].interval == pairs[plan, side].interval
        assert table[side][plan].interval == pairs[plan, side].interval
        assert pairs.unstack("plan").estimate.loc[side, plan] == expected[plan, side]  # type: ignore[union-attr, index]
    assert list(table) == [*dict.fromkeys(side for _, side in pairs.keys)]
    assert "side south (95% noise; population)" in repr(table)
    assert ">side south</th>" in table._repr_html_()
    assert "below each number are its 95% noise and population intervals" in table._repr_html_()
    assert table.refine(mu=0.6).is_two_way
    assert table.proportions().is_two_way
    assert table.round().is_two_way
    assert (table * 2 - 1).is_two_way
    assert not table["north"].is_two_way


def test_a_missing_pair_is_an_empty_cell() -> None:
    ones = IntervalArrays(*np.ones((4, 3, 1)))
    keys = (("a", "x"), ("a", "y"), ("b", "y"))
    made = Estimates(description="w", names=("g", "h"), keys=keys, outputs=None, arrays=ones, confidence=0.95).unstack()
    assert made.estimate.isna().to_numpy().tolist() == [[False, False], [True, False]]  # type: ignore[union-attr]
    assert repr(made).splitlines()[3].split() == ["b", "1", "(1", "to", "1)"]
    assert [row.count("1 (1 to 1)") for row in made.to_markdown().splitlines()] == [0, 0, 2, 1]


def test_only_a_query_of_several_levels_is_unstacked(session: dpnb.Session) -> None:
    for name in ("number", "counts", "table"):
        with pytest.raises(PlanError, match="unstack: needs groups of several levels"):
            QUERIES[name](session.frame).unstack()
    two_way, long = (QUERIES[name](session.frame).release(mu=0.5) for name in ("two-way", "pairs"))
    assert two_way == long  # the same request and observation


def test_length_iteration_and_membership_are_those_of_pandas(answers: dict[str, Answer]) -> None:
    for name in SEVERAL:
        answer, estimate = answers[name], answers[name].estimate
        assert len(answer) == len(estimate)  # type: ignore[arg-type]
        assert answer.shape == estimate.shape  # type: ignore[union-attr]
        if isinstance(estimate, pd.DataFrame):
            assert list(answer) == list(estimate)
            assert [label for label, _ in answer.items()] == list(estimate)
        else:
            assert [float(number) for number in answer] == estimate.tolist()  # type: ignore[union-attr]
            assert [(label, float(number)) for label, number in answer.items()] == list(estimate.items())  # type: ignore[union-attr]
            assert all(number.interval == answer[label].interval for label, number in answer.items())
        label = next(iter(dict(answer.items())))
        assert label in answer
        assert "of no group" not in answer
    assert (answers["number"].shape, answers["number"].item()) == ((), answers["number"].estimate)


# --- rounding ---


def test_rounding_shows_the_decimals_and_no_narrower_interval(answers: dict[str, Answer]) -> None:
    number = answers["number"]
    for rounded in (round(number, 2), number.round(2)):
        low, high = rounded.interval
        assert rounded.estimate == round(float(number), 2)
        assert low <= number.interval[0] < number.interval[1] <= high  # type: ignore[operator]
        assert f"{rounded.estimate:.2f}   95% noise interval {low:.2f} to {high:.2f}" in repr(rounded)
    table = answers["table"].round({"n": 0})
    assert (table.estimate["n"] % 1 == 0).all()  # type: ignore[index, call-overload]
    assert table.estimate["mean"].tolist() == answers["table"].estimate["mean"].tolist()  # type: ignore[index, call-overload]
    assert round(number, 400 - 100).estimate == number.estimate


@pytest.mark.parametrize("decimals", [-1, 0, 1, 3])
def test_a_rounded_interval_that_was_clipped_remembers_the_noise(decimals: int) -> None:
    """Otherwise a difference of rounded answers would have a narrower interval than that of the answers."""
    numbers = [np.array([x]) for x in (-30.0, -90.0, 30.0)]
    raw = tuple(array.reshape(1, 1) for array in numbers)
    arrays = IntervalArrays(raw[0], raw[1].clip(0), raw[2].clip(0), raw[0] * 0 + 30, raw)  # type: ignore[arg-type]
    made = Estimates(
        description="w", names=(), keys=((),), outputs=None, arrays=arrays, confidence=0.95,
        measurement_ids=(frozenset({(1, 0)}),),
    )  # fmt: skip
    shift = made.round(decimals) + 100
    assert shift.arrays.unclipped[1][0, 0] <= 10
    assert shift.arrays.unclipped[2][0, 0] >= 130


# --- what a rearrangement is ---


REARRANGED: dict[str, Callable[[Any], Estimates]] = {
    "sort_values": lambda a: a.sort_values(),
    "sort_index": lambda a: a.sort_index(),
    "round": lambda a: a.round(1),
    "head": lambda a: a.head(2),
    "nlargest": lambda a: a.nlargest(2),
    "twice": lambda a: a.sort_values().head(2),
}


@pytest.mark.parametrize("verb", REARRANGED)
def test_a_rearranged_answer_has_the_history_and_refers_to_the_answer_to_refine(
    session: dpnb.Session, verb: str
) -> None:
    answer = session.frame.groupby("plan").size().release(mu=0.5).refine(mu=0.7)
    new = REARRANGED[verb](answer)
    assert type(new) is Estimates
    assert new.history.answers == answer.history.answers
    assert len(new.plot(history=True).data) > 0
    assert "computed from an answer, at no further cost" in repr(new)
    with pytest.raises(AnswerAttributeError, match="use it on the answer"):
        new.refine(mu=1)  # type: ignore[attr-defined]
    refined = answer.refine(mu=0.8)
    assert refined.keys == answer.keys
    again = pickle.loads(pickle.dumps(new))
    assert again == new
    assert again.history.to_pandas().equals(new.history.to_pandas())
    with pytest.raises(RequestError, match="same noise"):
        _ = new - new
    with pytest.raises(RequestError, match="history"):
        _ = (new * 2).history


def test_sorted_coefficients_state_that_they_have_no_intervals() -> None:
    unknown = np.full((1, 2), np.nan)
    arrays = IntervalArrays(np.array([[3.0, 1.0]]), unknown, unknown, unknown)
    fitted = FitResult(
        description="fit", names=(), keys=((),), outputs=("term", ("b", "a")), arrays=arrays, confidence=0.95,
        notes=("20 steps",), is_moving=True,
    )  # fmt: skip
    ordered = fitted.sort_values()
    assert (ordered.outputs, ordered.arrays.value.tolist()) == (("term", ("a", "b")), [[1.0, 3.0]])
    for note in ("20 steps", NO_INTERVALS):
        assert note in repr(fitted)
        assert note in repr(ordered)


def test_nothing_of_it_is_charged_or_needs_a_session(session: dpnb.Session, answers: dict[str, Answer]) -> None:
    spent = session.spent
    for name in SEVERAL:
        copied = pickle.loads(pickle.dumps(answers[name]))  # it has no session
        for verb in (*REARRANGED.values(), repr, list, len, lambda a: a.to_csv(), lambda a: a.to_markdown()):
            if name not in BY or verb not in (REARRANGED["sort_values"], REARRANGED["nlargest"], REARRANGED["twice"]):
                verb(copied)
    assert session.spent == spent
    session.frame.count().release(mu=0.01)
    assert session.spent != spent  # the control


# --- exports ---


def test_exports_hold_every_number_with_its_interval(answers: dict[str, Answer], tmp_path: Path) -> None:
    for name, answer in answers.items():
        table = answer.to_pandas()
        path = tmp_path / f"{name}.csv"
        assert answer.to_csv(path) is None
        text = answer.to_csv()
        assert path.read_text() == text
        again = pd.read_csv(StringIO(text), dtype={"plan": str})
        assert np.array_equal(again[list(ENDS)].to_numpy(), table[list(ENDS)].to_numpy(), equal_nan=True)
        records = json.loads(answer.to_json(double_precision=15) or "")
        assert [record["estimate"] for record in records] == pytest.approx(table["estimate"].tolist())
        markdown = answer.to_markdown().splitlines()
        assert len({line.replace("\\|", "").count("|") for line in markdown}) == 1
    counts = answers["counts"]
    assert counts.to_dict()["free"] == counts.to_pandas().loc["free"].to_dict()
    assert answers["number"].to_dict()["estimate"] == answers["number"].estimate
    assert counts.to_dict("list") == counts.to_pandas().to_dict("list")
    assert "a\\|b \\*c\\*" in counts.to_markdown()


def test_a_group_level_with_the_name_of_a_column_is_not_lost_in_json() -> None:
    ones = IntervalArrays(*np.ones((4, 1, 1)))
    made = Estimates(description="w", names=("low",), keys=(("a",),), outputs=None, arrays=ones, confidence=0.95)
    with pytest.raises(RequestError, match="'low' has the name of a column"):
        made.to_json()
    assert json.loads(made.to_json(orient="index") or "") == {"a": dict.fromkeys(ENDS, 1.0)}


# --- numbers ---


def test_one_number_is_formatted_and_converted(answers: dict[str, Answer]) -> None:
    number = answers["number"]
    value = float(number)
    assert (f"{number:.2f}", f"{number:>9.1f}", "%.1f" % number) == (f"{value:.2f}", f"{value:>9.1f}", "%.1f" % value)  # noqa: UP031
    assert f"{number}" == repr(number)
    assert int(number) == int(value)
    assert math.floor(number) == math.floor(value)
    assert np.asarray(number).item() == value
    assert np.asarray(answers["counts"]).tolist() == answers["counts"].estimate.tolist()  # type: ignore[union-attr]
    assert (np.float64(2) * number).interval == (number * 2).interval
    with pytest.raises(RequestError, match="unknown"):
        int(number._mapped(lambda cells: cells.rescaled(math.nan)))


def test_a_released_number_is_a_constant_in_an_expression_and_a_query_is_not(
    session: dpnb.Session, answers: dict[str, Answer]
) -> None:
    x, mean = session.frame["x"], answers["number"]
    assert repr(x - mean) == f"<private column: x - {mean.estimate!r}>"
    assert repr(mean - x) == f"<private column: {mean.estimate!r} - x>"
    assert repr(x > mean) == f"<condition: x > {mean.estimate!r}>"
    assert repr(mean < x) == repr(x > mean)
    with pytest.raises(NotReleasedError):
        _ = x - session.frame["x"].mean()
    with pytest.raises(NotReleasedError):
        _ = mean - session.frame["x"].mean()
    with pytest.raises(DpnbError, match="constant"):
        _ = x - answers["counts"]


def test_an_unknown_method_names_what_to_use(answers: dict[str, Answer]) -> None:
    counts = answers["counts"]
    for name, said in {
        "cumsum": r"\.to_pandas\(\)\['estimate'\]\.cumsum\(\.\.\.\)",
        "T": r"\['estimate'\]\.T$",
        "xs": r"answer\['free'\] has one group with its interval; .*\['estimate'\]\.xs",
        "melt": r"\.to_pandas\(\) gives a pandas DataFrame",
        "value": r"did you mean \.estimate\?",
        "conf_int": r"did you mean \.interval\?",
        "sort_value": r"did you mean \.sort_values\?",
    }.items():
        with pytest.raises(AnswerAttributeError, match=said):
            getattr(counts, name)
        assert not hasattr(counts, name)
    unfinished = Estimates.__new__(Estimates)
    for name in ("description", "keys", "arrays"):
        with pytest.raises(AttributeError):
            getattr(unfinished, name)


def test_an_interval_of_one_value_is_explained() -> None:
    def made(low: float, raw_low: float, scale: float = 1.0) -> Estimates:
        raw = tuple(np.full((1, 1), x) for x in (-9.0, raw_low, low))
        arrays = IntervalArrays(raw[0], np.full((1, 1), low), np.full((1, 1), low), np.full((1, 1), scale), raw)  # type: ignore[arg-type]
        return Estimates(description="w", names=(), keys=((),), outputs=None, arrays=arrays, confidence=0.95)

    warned = dict(made(0, -20).warnings)
    assert warned["collapsed"].startswith("0 to 0: the noise moved the whole interval outside the possible values")
    assert warned["collapsed"] in repr(made(0, -20))
    assert [name for name, _ in made(3, 3).warnings if name != "outside"] == ["one-value"]
    assert [name for name, _ in made(1, 1, scale=0).warnings if name != "outside"] == []  # certain
