"""OpenDP beside dpnb: a process that answers a line for a line, in an environment that has ``opendp[polars]``.

Its noise scales are given by hand, through its measurement API, and its compositor counts them.  Its Context API would
search for them, which takes most of the time of a query and is measured once, as ``context``.
``python tests/bench/measures/opendp_peer.py ROWS PERSON``, then lines of ``{"question": ..., "above": ...}``.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.measures.tables import KEYS, in_polars, made

MOST = 3
LEVELS = [0.25, 0.5, 0.75]
KEPT = ["x", "y", "g50", "g1000", "word", "person"]


class Peer:
    """OpenDP's answers to the benchmark's questions about one table.

    Parameters
    ----------
    rows : int
    person : bool
        Whether persons are protected, or rows.
    """

    def __init__(self, rows: int, person: bool) -> None:
        import opendp.prelude as dp
        import polars as pl

        os.environ["RUST_BACKTRACE"] = "0"  # opendp turns it on, which makes its failing checks slow
        dp.enable_features("contrib")
        self.dp, self.pl, self.person = dp, pl, person
        frame = in_polars(made(rows), categories=False)  # it refuses to group by categories
        self._empty = frame.clear().lazy()
        self._keys = {name: pl.LazyFrame({name: keys}) for name, keys in KEYS.items()}
        margin = dp.polars.Margin
        margins = [margin(by=[], max_length=rows), *(margin(by=[name], max_length=rows) for name in (*KEYS, "word"))]
        start = time.perf_counter()
        unit = dp.unit_of(contributions=1, identifier="person") if person else dp.unit_of(contributions=1)
        self._made = {"data": frame.lazy(), "privacy_unit": unit, "margins": margins}
        self._context = dp.Context.compositor(privacy_loss=dp.loss_of(rho=1e6, delta=1e-5), **self._made)
        self.setup = time.perf_counter() - start

    def context(self, above: float) -> None:
        """A filtered count as the Context API asks it."""
        made = {**self._made, "split_evenly_over": 1}
        context = self.dp.Context.compositor(privacy_loss=self.dp.loss_of(rho=0.125), **made)
        self._start = time.perf_counter()
        query = context.query().filter(self.pl.col("x") > above)
        if self.person:
            query = query.truncate_per_group(MOST)
        query.select(self.dp.len(signed=True)).release().collect()

    def answer(self, question: str, above: float) -> Any:
        """One answer, with its loss counted."""
        accountant = self._context.accountant
        measurement = self.dp.m.make_private_lazyframe(
            accountant.input_domain,
            accountant.input_metric,
            self.dp.approximate(self.dp.zero_concentrated_divergence()),
            self._plan(question, above),
            global_scale=6.0,
            threshold=100 if question == "discovered keys" else None,
        )
        return self._context(measurement).collect()

    def _plan(self, question: str, above: float) -> Any:
        pl, count = self.pl, self.dp.len(signed=True)
        y = pl.col("y").dp
        kept = self._empty.filter(pl.col("x") > above)
        if self.person:
            most = 1 if question == "units" else MOST
            kept = kept.filter(pl.int_range(pl.len()).over("person") < most)
        if question in ("count", "units"):
            return kept.select(count)
        if question == "sum":
            return kept.select(y.sum((0.0, 200.0)))
        if question == "mean":
            return kept.select(y.sum((0.0, 200.0)), count)
        if question == "three quantiles":
            candidates = [float(value) for value in range(201)]
            return kept.select([y.quantile(level, candidates).alias(str(level)) for level in LEVELS])
        if question == "discovered keys":
            return kept.group_by("word").agg(count)
        by = {"mean by 50 keys": "g50", "mean by 1,000 keys": "g1000"}[question]
        return self._keys[by].join(kept.group_by(by).agg(count, y.sum((0.0, 200.0))), on=by, how="left")

    def took(self, question: str, above: float) -> float:
        """Seconds of one answer."""
        self._start = time.perf_counter()
        if question == "context":
            self.context(above)
        else:
            self.answer(question, above)
        return time.perf_counter() - self._start


def main() -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # its advice on budgets is no answer
    try:
        peer = Peer(int(sys.argv[1]), sys.argv[2] == "True")
        said: dict[str, Any] = {"setup": peer.setup, "version": version("opendp")}
    except Exception as error:  # noqa: BLE001  (whatever keeps it from starting is a dash in the table)
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}), file=out, flush=True)
        return
    print(json.dumps(said), file=out, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            said = {"seconds": peer.took(asked["question"], asked["above"])}
        except Exception as error:  # noqa: BLE001  (what it cannot answer is a dash in the table)
            said = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(said), file=out, flush=True)


if __name__ == "__main__":
    main()
