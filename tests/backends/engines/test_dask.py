"""Data frames of Dask, on a cluster of two processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import clusters
import dpnb
from contracts.engines import SCHEMA, UNITS, Ask, EngineContract, compiled, same
from dpnb._backends import opened
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Gradient, RegressionModel
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import ExecutionError

pytestmark = pytest.mark.dask


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    """Two workers, each a process of its own."""
    made, client = clusters.dask()
    with made, client:
        yield client


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
class TestDask(EngineContract):
    every_unit = False
    every_window = 4
    modes = (None, "skip", "drop", "clip")

    def native(self, table: pd.DataFrame) -> Any:
        import dask.dataframe

        return dask.dataframe.from_pandas(table, npartitions=3, sort=False)

    @pytest.mark.parametrize(
        "ask", [lambda f: f.bound_contributions(max_norm_per_unit=1.5)["x"].sum(), lambda f: (f["x"] % 0.7).sum()]
    )
    def test_what_other_engines_refuse_is_as_in_memory(self, ask: Ask, at_hand: dict[str, tuple[Any, Any]]) -> None:
        (query,) = compiled(ask, UNITS["whole number"])
        same(query, *self.both(at_hand, "whole number"))

    def test_gradients_are_those_of_memory(self, at_hand: dict[str, tuple[Any, Any]]) -> None:
        model = RegressionModel("linear", Column("y"), (Column("x"),))
        plan = Plan(Gradient(model, ((0.25, -0.5),), 1.0))
        same(linear_query(plan, SCHEMA, UNITS["whole number"]), *self.both(at_hand, "whole number"))

    def watched(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        import dask

        sizes: list[int] = []
        compute = dask.compute

        def watching(*given: Any, **options: Any) -> Any:
            found = compute(*given, **options)
            sizes.extend(len(part) for part in found if part is not None)
            return found

        monkeypatch.setattr(dask, "compute", watching)
        return sizes


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_task_that_fails_says_and_logs_nothing_of_its_rows(caplog: pytest.LogCaptureFixture) -> None:
    """A worker would log what the task was given."""
    import dask.dataframe
    import distributed

    schema = {"": {"x": dpnb.Bounded(0, 9)}}
    frame = dask.dataframe.from_pandas(pd.DataFrame({"x": [7.125, 3.0]}), npartitions=2)
    tables = opened({"": frame}, schema, {"": PrivacyUnit()})
    with pytest.raises(ExecutionError) as failed:
        tables.sums("no question at all")  # type: ignore[arg-type]
    assert str(failed.value) == "a task on a worker failed"
    logs = distributed.default_client().get_worker_logs()
    assert "7.125" not in str(logs)
    assert "Compute Failed" not in str(logs)
    assert "7.125" not in caplog.text
