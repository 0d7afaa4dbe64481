"""Data frames of Dask, on a cluster of two processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from contracts.engines import EngineContract

dask = pytest.importorskip("dask")
frames = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    """Two workers, each a process of its own."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as made, distributed.Client(made) as client:
        yield client


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
class TestDask(EngineContract):
    refuses = False
    every_unit = False

    def native(self, table: pd.DataFrame) -> Any:
        return frames.from_pandas(table, npartitions=3, sort=False)

    def watched(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        sizes: list[int] = []
        compute = dask.compute

        def watching(*given: Any, **options: Any) -> Any:
            found = compute(*given, **options)
            sizes.extend(len(part) for part in found if part is not None)
            return found

        monkeypatch.setattr(dask, "compute", watching)
        return sizes
