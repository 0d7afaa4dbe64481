"""The expected error of standard deviations, correlations and regressions, before anything is known of the values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb

ROWS = 20_000
SCHEMA = {"x": dpnb.Bounded(0, 60), "y": dpnb.Bounded(-3, 3), "g": dpnb.Categories([1, 2, 3]), "w": dpnb.Bounded(0, 2)}
QUERIES: dict[str, Callable[[Any], Any]] = {
    "std": lambda df: df["x"].std(),
    "std by group": lambda df: df.groupby("g")["x"].std(),
    "corr": lambda df: df["x"].corr(df["y"]),
    "regress": lambda df: df.regress("y ~ x + g"),
    "regress with weights": lambda df: df.regress("y ~ x + g", weights="w"),
    "sem": lambda df: df["x"].sem(),
    "mean and std": lambda df: df["x"].agg(["mean", "std"]),
}


def opened(folder: Path, spread: float = 1 / 6, **options: Any) -> Any:
    """A table of values about the middle of their bounds, with this part of their distance as standard deviation."""
    rng = np.random.default_rng(50)
    x, y = rng.normal(size=(2, ROWS)) * spread
    rows = pd.DataFrame({"x": 30 + 60 * x, "y": 6 * y, "g": rng.integers(1, 4, ROWS), "w": rng.uniform(0, 2, ROWS)})
    budget = dpnb.Budget(epsilon=2, delta=1e-6)
    return dpnb.Session(rows, name="t", budget=budget, schema=SCHEMA, ledger=folder / "t", **options).frame


@pytest.mark.parametrize("name", QUERIES)
def test_the_error_for_typical_values_is_that_of_the_answer(name: str, tmp_path: Path) -> None:
    query = QUERIES[name](opened(tmp_path, public_size=ROWS))
    preview = query.preview(share=0.1)
    assert preview.assumed_description.endswith("the values are typical")
    assert "a sixth of the distance of the declared bounds" in preview.assumption
    answer = query.release(share=0.1).to_pandas()
    np.testing.assert_allclose(preview.half_widths.ravel(), (answer["high"] - answer["low"]) / 2, rtol=0.25)


def test_values_that_vary_less_have_larger_errors(tmp_path: Path) -> None:
    """The assertion above can fail; and the forecast is the same, since it does not depend on the rows."""
    found = []
    for spread in (1 / 6, 1 / 20):
        folder = tmp_path / f"{spread:.2f}"
        folder.mkdir()
        query = QUERIES["std"](opened(folder, spread, public_size=ROWS))
        expected, (low, high) = query.preview(share=0.1).expected_error, query.release(share=0.1).interval
        found.append((expected, (high - low) / 2))
    assert found[0][0] == found[1][0]
    assert found[1][1] > 2 * found[1][0]


def test_a_count_of_rows_is_enough(tmp_path: Path) -> None:
    frame = opened(tmp_path)
    query = QUERIES["regress"](frame)
    assert query.preview(share=0.1).half_widths is None
    assert "session.frame.count().release(share=0.01)" in repr(query.preview(share=0.1))
    query.count_needed.release(share=0.01)
    assert query.count_needed is None or query.preview(share=0.1).count_needed is None
    assert np.isfinite(query.preview(share=0.1).half_widths).all()


def test_where_even_typical_values_are_lost_in_the_noise_the_error_is_unknown(tmp_path: Path) -> None:
    query = QUERIES["regress"](opened(tmp_path, public_size=50))
    assert "expected error:  unknown" in repr(query.preview(share=0.1))
    assert query.preview(share=0.1).count_needed is None


def test_the_error_within_units_is_forecast_too(tmp_path: Path) -> None:
    """Half of the variance is within persons, who have all rows that count."""
    rng = np.random.default_rng(51)
    own, person = rng.normal(size=(2, ROWS)), np.repeat(np.arange(ROWS // 4), 4)
    x, y = (own + rng.normal(size=(2, ROWS // 4)).repeat(4, axis=1)) / 2**0.5 / 6
    rows = pd.DataFrame({"id": person, "x": 30 + 60 * x, "y": 6 * y})
    session = dpnb.Session(
        rows, name="t", budget=dpnb.Budget(epsilon=2, delta=1e-6), schema={"x": SCHEMA["x"], "y": SCHEMA["y"]},
        privacy_unit="id", max_rows_per_unit=4, public_size=ROWS // 4, public_rows=ROWS, ledger=tmp_path / "t",
        not_private_test_seed=1,
    )  # fmt: skip
    query = session.frame.regress("y ~ x | id")
    expected, (low, high) = query.preview(share=0.5).expected_error, query.release(share=0.5).interval.iloc[0]
    assert expected == pytest.approx((high - low) / 2, rel=0.25)


def test_a_regression_that_will_be_unknown_is_told_before_it_is_paid(tmp_path: Path) -> None:
    """Predictors that are related closely are known with the budget that is named, and not with a tenth of it."""
    rng = np.random.default_rng(52)
    x = rng.normal(size=ROWS) / 6
    rows = pd.DataFrame({"x": 30 + 60 * x, "y": rng.normal(size=ROWS), "z": x + rng.normal(size=ROWS) / 8})
    schema = {"x": SCHEMA["x"], "y": SCHEMA["y"], "z": dpnb.Bounded(-0.6, 0.6)}
    session = dpnb.Session(
        rows, name="t", budget=None, schema=schema, public_size=ROWS, ledger=tmp_path / "t", not_private_test_seed=1
    )
    query = session.frame.regress("y ~ x + z")
    few, some = query.preview(mu=0.004), query.preview(mu=0.02)
    assert few.doubt == "probable"
    assert some.doubt == "possible"
    for text in ("probably unknown", "or more budget, about mu=0.03", ".clip(low, high)"):
        assert text in repr(few)
    assert "what helps: fewer predictors" in repr(query.preview(mu=[0.004, 0.06]))
    assert "helps" not in repr(query.preview(mu=0.06))
    assert np.isnan(query.release(mu=0.004).params).all()
    assert np.isfinite(session.frame.regress("y ~ x + z").release(mu=0.06).params).all()


def test_no_precision_is_requested_with_them(tmp_path: Path) -> None:
    query = QUERIES["corr"](opened(tmp_path, public_size=ROWS))
    with pytest.raises(dpnb.errors.ErrorEstimateUnavailable, match="depends on the answer itself"):
        query.release(within=0.1)
