"""Gradients of regressions: what they are, that a unit changes them by the clip at most, and that they are its own."""

from __future__ import annotations

import math
import warnings
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest

from compile.neighbours import FAMILY, WITH_NORM, WITHOUT_NORM, changes
from compile.neighbours import SCHEMA as SMALL
from dpnb._backends.memory import gradient
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._backends.memory.unit_contributions import per_unit_vectors
from dpnb._compile import linear_query
from dpnb._compile.features import CLIP_STEPS
from dpnb._compile.query_explanation import contribution, explanation
from dpnb._plan.checks import check_plan
from dpnb._plan.expressions.nodes import Column, Compare, Literal
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import CoefficientsView, Family, Gradient, ModelLoss, PlainView, RegressionModel
from dpnb._plan.plan import GroupLevel, Plan, describe_plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._plan.regression import LARGEST, design
from dpnb.errors import PlanError
from dpnb.results.estimates.outputs import outputs_of
from dpnb.schema import Bounded, Categories, Schema, Text
from pairwise import product

SCHEMA: Schema = {"a": Bounded(-3, 5), "b": Bounded(0, 1e6), "c": Categories(["p", "q", "r"]), "y": Bounded(0, 20)}
A, B, C, Y = (Column(name) for name in "abcy")
MODELS = {
    "linear": RegressionModel("linear", Y, (A, B), (C,)),
    "logistic": RegressionModel("logistic", Compare(">", Y, Literal(10)), (A, B), (C,)),
    "poisson": RegressionModel("poisson", Y, (A, B), (C,)),
    "multinomial": RegressionModel("multinomial", C, (A, Y), (Compare(">", B, Literal(5e5)),)),
}
families = pytest.mark.parametrize("family", list(MODELS))


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "u": chance.integers(0, max(rows // 3, 1), rows),
            "a": chance.uniform(-4, 6, rows),
            "b": chance.uniform(0, 1e6, rows),
            "c": chance.choice(["p", "q", "r", "other"], rows),
            "y": chance.integers(0, 21, rows).astype(float),
        }
    )
    return frame.mask(chance.random(frame.shape) < 0.05)


def coefficients(model: RegressionModel, chains: int = 1, seed: int = 1) -> tuple[tuple[float, ...], ...]:
    width = design(model, SCHEMA).width
    return tuple(map(tuple, np.random.default_rng(seed).normal(0, 0.7, (chains, width)).tolist()))


def gradients(model: RegressionModel, at: Any, frame: pd.DataFrame, unit: PrivacyUnit, clip: float = 1e3) -> Any:
    """Gradient sums as numbers, shape (chains, width)."""
    query = linear_query(Plan(Gradient(model, at, clip)), SCHEMA, unit)
    sums = execute(query, prepare(frame, SCHEMA, unit), SCHEMA)
    return sums.reshape(len(at), -1) * float(query.features[0].unit)


def loss(model: RegressionModel, at: Any, frame: pd.DataFrame) -> float:
    """The loss over complete rows, written out."""
    used = frame[["a", "b", "c", "y"]].dropna()
    used = used[used["c"].isin(["p", "q", "r"])]
    if model.family == "multinomial":
        columns = [np.ones(len(used)), (used["a"].clip(-3, 5) - 1) / 4, used["y"] / 10 - 1, used["b"] > 5e5]
    else:
        columns = [np.ones(len(used)), (used["a"].clip(-3, 5) - 1) / 4, used["b"] / 5e5 - 1]
        columns += [used["c"] == "q", used["c"] == "r"]
    x = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
    beta = np.asarray(at).reshape(-1, x.shape[1])
    e, y = x @ beta.T, used["y"].to_numpy()
    match model.family:
        case "linear":
            return float((((e[:, 0]) - (y / 10 - 1)) ** 2 / 2).sum())
        case "logistic":
            return float((np.logaddexp(0, e[:, 0]) - (y > 10) * e[:, 0]).sum())
        case "poisson":
            return float((np.exp(e[:, 0]) - y * e[:, 0]).sum())
    place = used["c"].map({"p": 0, "q": 1, "r": 2}).to_numpy()
    return float((np.log(np.exp(e).sum(axis=1)) - e[np.arange(len(e)), place]).sum())


@families
def test_a_gradient_is_the_slope_of_the_loss(family: str) -> None:
    model, frame = MODELS[family], table(200)
    (at,) = coefficients(model)
    (found,) = gradients(model, (at,), frame, PrivacyUnit())
    for place in range(len(at)):
        step = 1e-6 * np.eye(len(at))[place]
        slope = (loss(model, at + step, frame) - loss(model, at - step, frame)) / 2e-6
        assert found[place] == pytest.approx(slope, abs=1e-4, rel=1e-6)


@families
def test_chains_are_gradients_side_by_side(family: str) -> None:
    model, frame, unit = MODELS[family], table(50), PrivacyUnit("u", 3)
    at = coefficients(model, 3)
    each = [gradients(model, (one,), frame, unit, 0.5)[0] for one in at]
    assert (gradients(model, at, frame, unit, 0.5) == each).all()


@families
def test_a_units_gradient_is_its_rows_together_scaled_down(family: str) -> None:
    model, frame, unit = MODELS[family], table(60), PrivacyUnit("u", 100)
    at = coefficients(model, 2)
    wanted = np.zeros((2, design(model, SCHEMA).width))
    for _, rows in frame.groupby("u"):
        own = gradients(model, at, rows, unit)
        wanted += own * np.minimum(1, 0.8 / np.maximum(np.linalg.norm(own, axis=1), 1e-300))[:, None]
    assert gradients(model, at, frame, unit, 0.8) == pytest.approx(wanted, abs=1e-4)


@families
@pytest.mark.parametrize("rows", [1, 7, 300])
def test_a_units_vector_depends_on_its_own_rows_alone_to_the_last_bit(
    family: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, frame, unit = MODELS[family], table(rows, 5), PrivacyUnit("u", 100)
    query = linear_query(Plan(Gradient(model, coefficients(model, 2), 0.3)), SCHEMA, unit)

    def by_unit(part: pd.DataFrame) -> dict[int, list[int]]:
        prepared = prepare(part, SCHEMA, unit)
        found = per_unit_vectors(query, prepared, SCHEMA)
        return {
            int(prepared.names[owner]): found.values[start : start + found.width].tolist()
            for owner, start in zip(found.owners, found.starts, strict=True)
        }

    together = by_unit(frame)
    assert by_unit(frame.sample(frac=1, random_state=3)) == together
    monkeypatch.setattr(gradient, "NUMBERS_AT_ONCE", 1)  # blocks of 64 rows
    others = table(333, 9).assign(u=lambda other: other["u"] + 1000)
    for name, vector in list(together.items())[:40]:
        alone = frame[frame["u"] == name]
        assert by_unit(alone) == {name: vector}
        assert by_unit(pd.concat([others, alone]))[name] == vector


@families
def test_sums_are_those_of_the_units_vectors(family: str) -> None:
    model, frame = MODELS[family], table(500)
    for unit in (PrivacyUnit(), PrivacyUnit("u", 2), PrivacyUnit("u", None, ContributionBounds(max_norm=1.5))):
        query = linear_query(Plan(Gradient(model, coefficients(model, 2), 0.2)), SCHEMA, unit)
        prepared = prepare(frame, SCHEMA, unit)
        vectors = per_unit_vectors(query, prepared, SCHEMA)
        assert execute(query, prepared, SCHEMA).tolist() == vectors.sums().tolist()
        assert (vectors.squares() <= query.l2_sensitivity_squared).all()
        assert query.l2_sensitivity_squared == 2 * CLIP_STEPS**2


@pytest.mark.parametrize(("unit", "clip"), product([*WITHOUT_NORM, *WITH_NORM], [1e-3, 0.3, 100.0], together=1))
def test_one_unit_changes_the_sums_by_the_clip_at_most(unit: str, clip: float) -> None:
    bounds = {**WITHOUT_NORM, **WITH_NORM}[unit]
    x, y, g = (Column(name) for name in "xyg")
    worst = 0.0
    for model in (
        RegressionModel("linear", x, (y,), (g,)),
        RegressionModel("poisson", y, (x,)),
        RegressionModel("multinomial", g, (x, y)),
    ):
        width = design(model, SMALL).width
        at = ((0.5,) * width, (-3.0,) * width)
        query = linear_query(Plan(Gradient(model, at, clip)), SMALL, bounds)
        worst = max(worst, max(changes(query, FAMILY, bounds)) / query.l2_sensitivity_squared)
    assert worst <= 1
    assert worst > 0.999 or clip == 100.0


def test_a_unit_of_very_many_rows_is_added_up_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    model, unit = MODELS["poisson"], PrivacyUnit("u", 2**31)
    frame = table(4000).assign(u=1)
    at = coefficients(model)
    whole = gradients(model, at, frame, unit, 1e9)
    small = gradients(model, at, frame, unit, 0.25)
    monkeypatch.setattr(gradient, "NUMBERS_AT_ONCE", 64)
    assert (gradients(model, at, frame, unit, 1e9) == whole).all()
    assert (gradients(model, at, frame, unit, 0.25) == small).all()
    assert math.sqrt((small**2).sum()) == pytest.approx(0.25, rel=1e-6)


@families
def test_whatever_is_in_the_table_there_is_no_error_and_no_warning(family: str) -> None:
    model = MODELS[family]
    odd: list[Any] = [None, "x", math.nan, math.inf, -1e308, 1e308, 10**400, object(), "p", 3, True]
    frame = pd.DataFrame(dict.fromkeys("uabcy", odd), dtype=object)
    width = design(model, SCHEMA).width
    at = tuple((size,) * width for size in (0.0, LARGEST, -LARGEST))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (frame, frame.iloc[:0], table(30)):
            for unit in (PrivacyUnit(), PrivacyUnit("u", 4)):
                for clip in (2.0**-100, 1.0, 2.0**100):
                    assert np.isfinite(gradients(model, at, rows, unit, clip)).all()
                query = linear_query(Plan(ModelLoss(model, at[1])), SCHEMA, unit)
                execute(query, prepare(rows, SCHEMA, unit), SCHEMA)


def test_the_exponential_is_good_to_the_last_digits() -> None:
    x = np.r_[np.linspace(-40, 40, 999), 0.0, 1e-300]
    found = gradient.exponential(x)
    assert max(abs(mpmath.mpf(y) / mpmath.exp(mpmath.mpf(z)) - 1) for y, z in zip(found, x, strict=True)) < 1e-15
    assert gradient.exponential(np.array([-1e9, 1e9, -np.inf])).tolist() == pytest.approx(
        [math.exp(-40), math.exp(40), math.exp(-40)], rel=1e-14
    )


@families
def test_a_misfit_is_how_badly_rows_are_predicted(family: str) -> None:
    model, frame, unit = MODELS[family], table(200), PrivacyUnit()
    (at,) = coefficients(model)
    query = linear_query(Plan(ModelLoss(model, at)), SCHEMA, unit)
    count, centred = execute(query, prepare(frame, SCHEMA, unit), SCHEMA).tolist()
    units = [float(feature.unit) for feature in query.features]
    rows, total = count * units[0], centred * units[1] + count * units[0] / 2
    used = frame[["a", "b", "c", "y"]].dropna()
    used = used[used["c"].isin(["p", "q", "r"])]
    wrong = [badly(model, at, row) for _, row in used.iterrows()]
    assert rows == len(used)
    assert total == pytest.approx(sum(wrong), abs=1e-5)


def badly(model: RegressionModel, at: tuple[float, ...], row: Any) -> float:
    """How badly one row is predicted, written out."""
    x = [1, (min(max(row["a"], -3), 5) - 1) / 4, row["b"] / 5e5 - 1, row["c"] == "q", row["c"] == "r"]
    if model.family == "multinomial":
        x = [1, x[1], row["y"] / 10 - 1, row["b"] > 5e5]
    e, y = np.reshape(at, (-1, len(x))) @ np.array(x, np.float64), row["y"]
    match model.family:
        case "linear":
            return min(abs(10 + 10 * e[0] - y) / 20, 1)
        case "logistic":
            return float((e[0] > 0) != (y > 10))
        case "poisson":
            return min(abs(math.exp(e[0]) - y) / 20, 1)
    return float("pqr"[int(e.argmax())] != row["c"])


def test_plans_go_through_json_and_have_an_identity_and_words() -> None:
    for family, model in MODELS.items():
        (at,) = coefficients(model)
        for aggregation in (Gradient(model, (at, at), 0.5), ModelLoss(model, at)):
            plan = Plan(aggregation, Compare(">", A, Literal(0)))
            assert Plan.from_json(plan.to_json()) == plan
            assert query_key(plan) == query_key(Plan.from_json(plan.to_json()))
            assert f"{family} regression of" in plan.words
            assert plan.words.endswith("where a > 0")
            query, unit = linear_query(plan, SCHEMA, PrivacyUnit("u", 2)), PrivacyUnit("u", 2)
            assert contribution(query, unit)
            assert all(text for _, text in explanation(query, unit, {"": unit}, SCHEMA))
        assert query_key(Plan(Gradient(model, (at,), 0.5))) != query_key(Plan(Gradient(model, (at,), 0.25)))
    assert "norm at most 0.5 to each of 2" in contribution(
        linear_query(Plan(Gradient(model, (at, at), 0.5)), SCHEMA, PrivacyUnit()), PrivacyUnit()
    )
    many = RegressionModel("linear", Y, tuple(Compare(">", A, Literal(number)) for number in range(9)))
    assert describe_plan(Plan(ModelLoss(many, (0.0,))), PlainView()).endswith("a > 6, a > 7, a > 8")  # all of them


def test_the_numbers_of_a_gradient_have_names() -> None:
    assert outputs_of(CoefficientsView(("intercept", "x"))) == ("term", ("intercept", "x"))
    named = outputs_of(CoefficientsView(("intercept",), ("p", 1), 2))
    assert named == (
        "term",
        ("chain 1: p: intercept", "chain 1: 1: intercept", "chain 2: p: intercept", "chain 2: 1: intercept"),
    )


GOOD = Gradient(RegressionModel("linear", Y, (A,)), ((0.0, 0.0),), 1.0)
BAD: list[tuple[Any, str]] = [
    (Gradient(RegressionModel("linear", Y, (A,)), ((0.0,),), 1.0), "has 2 coefficients; got 1"),
    (Gradient(RegressionModel("linear", Y, (A,)), (), 1.0), "needs the coefficients"),
    (Gradient(RegressionModel("linear", Y, (A,)), ((0.0, math.nan),), 1.0), "at most"),
    (Gradient(RegressionModel("linear", Y, (A,)), ((0.0, 2e6),), 1.0), "at most"),
    (Gradient(RegressionModel("linear", Y, (A,)), ((0.0, 0.0),), 0.0), "clip_norm must be"),
    (Gradient(RegressionModel("linear", Y, (A, A)), ((0.0,) * 3,), 1.0), "only once.*twice"),
    (Gradient(RegressionModel("linear", Y, (Y,)), ((0.0,) * 2,), 1.0), "only once.*twice"),
    (Gradient(RegressionModel("linear", C, (A,)), ((0.0,) * 2,), 1.0), "needs a number"),
    (Gradient(RegressionModel("linear", Y, (C,)), ((0.0,) * 2,), 1.0), "needs a number"),
    (Gradient(RegressionModel("linear", Y, (), (A,)), ((0.0,) * 2,), 1.0), "two public values"),
    (Gradient(RegressionModel("poisson", A), ((0.0,),), 1.0), "at least 0"),
    (Gradient(RegressionModel("logistic", C), ((0.0,),), 1.0), "has 3"),
    (Gradient(RegressionModel("multinomial", Y), ((0.0,),), 1.0), "must be public"),
    (Gradient(RegressionModel("multinomial", Column("t")), ((0.0,),), 1.0), "are texts"),
    (ModelLoss(RegressionModel("linear", Y, (A,)), (0.0,)), "has 2 coefficients"),
]


@pytest.mark.parametrize(("aggregation", "said"), BAD)
def test_what_the_schema_gives_no_meaning_is_refused(aggregation: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        check_plan(Plan(aggregation), {**SCHEMA, "t": Text()})


@pytest.mark.parametrize(
    "more", [{"group_by": (GroupLevel("c", C),)}, {"contribution_bounds": ContributionBounds(max_norm=1.0)}]
)
def test_a_gradient_is_of_all_rows_together(more: Any) -> None:
    check_plan(Plan(GOOD), SCHEMA)
    with pytest.raises(PlanError, match="cannot be grouped"):
        check_plan(Plan(GOOD, **more), SCHEMA)


def test_an_unknown_family_is_no_plan() -> None:
    text = Plan(GOOD).to_json().replace('"linear"', '"cubic"')
    with pytest.raises(PlanError):
        Plan.from_json(text)
    assert "cubic" not in Family.__args__  # type: ignore[attr-defined]
