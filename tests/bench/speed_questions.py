"""The questions of the benchmark, in the words of each library: about the rows where x is above a threshold.

About persons pandas and polars keep the first three rows of each, which is what bounding costs without privacy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpnb
from bench.speed_tables import KEYS, in_pandas, made

MOST = 3
"""Rows of a person that count."""

LEVELS = [0.25, 0.5, 0.75]

# What each question reads, beside x and the person.
COLUMNS: dict[str, list[str]] = {
    "count": [],
    "units": [],
    "sum": ["y"],
    "mean": ["y"],
    "mean by 50 keys": ["y", "g50"],
    "mean by 1,000 keys": ["y", "g1000"],
    "three quantiles": ["y"],
    "discovered keys": ["word"],
}
ROWS = [name for name in COLUMNS if name != "units"]
PEOPLE = list(COLUMNS)

SCHEMA = {
    "x": dpnb.Bounded(0, 100),
    "y": dpnb.Bounded(0, 200),
    "g50": dpnb.Categories(KEYS["g50"]),
    "g1000": dpnb.Categories(KEYS["g1000"]),
    "word": dpnb.Text(),
}
# So large that nothing is refused, however often it is asked.
BUDGET = dpnb.Budget(epsilon=100_000, delta=1e-5, discovery_delta=5e-6)


def used(question: str, person: bool) -> list[str]:
    """Columns that a question reads."""
    return ["x", *COLUMNS[question], *(["person"] if person else [])]


def session(frame: Any, ledger: Path, *, person: bool, columns: list[str] | None = None, **how: Any) -> dpnb.Session:
    """One with real noise and a ledger on disk, of all columns or of some."""
    names = [name for name in columns or SCHEMA if name in SCHEMA]
    if person:
        how = {"privacy_unit": "person", "max_rows_per_unit": MOST, **how}
    return dpnb.Session(
        frame,
        name="bench",
        budget=BUDGET,
        schema={name: SCHEMA[name] for name in names},
        public_size=1_000_000,
        ledger=ledger,
        **how,
    )


def asked(question: str, frame: Any, above: float) -> Any:
    """A question of dpnb's; free."""
    view = frame[frame["x"] > above]
    if question in ("count", "units"):
        return view.count() if question == "count" else view.count_units()
    if question in ("sum", "mean"):
        return getattr(view["y"], question)()
    if question == "three quantiles":
        return view["y"].quantile(LEVELS)
    if question == "discovered keys":
        return view.discover("word")
    return view.groupby(COLUMNS[question][1])["y"].mean()


def released(question: str, frame: Any, above: float, mu: float = 0.5) -> Any:
    """A question of dpnb's, with its answer."""
    return asked(question, frame, above).release(mu=mu)


def of_pandas(question: str, frame: Any, above: float, *, person: bool) -> Any:
    """The same without privacy in pandas."""
    mask = frame["x"] > above
    if question == "units":
        return frame.loc[mask, "person"].nunique()
    if not person:
        if question == "count":
            return mask.sum()
        kept = frame.loc[mask, COLUMNS[question]]
    else:
        kept = frame.loc[mask, [*COLUMNS[question], "person"]].groupby("person", sort=False).head(MOST)
        if question == "count":
            return len(kept)
    if question in ("sum", "mean"):
        return getattr(kept["y"], question)()
    if question == "three quantiles":
        return kept["y"].quantile(LEVELS)
    if question == "discovered keys":
        return (kept.drop_duplicates() if person else kept)["word"].value_counts()
    return kept.groupby(COLUMNS[question][1], observed=False)["y"].mean()


def of_polars(question: str, frame: Any, above: float, *, person: bool, **how: Any) -> Any:
    """The same without privacy in polars, which may use all cores."""
    import polars as pl

    kept, y = frame.lazy().filter(pl.col("x") > above), pl.col("y")
    if question == "units":
        return kept.select(pl.col("person").n_unique()).collect(**how)
    if person:  # quicker than counting within each person by `over`
        kept = kept.select(*used(question, person)).group_by("person").head(MOST)
    if question == "count":
        asked = kept.select(pl.len())
    elif question in ("sum", "mean"):
        asked = kept.select(getattr(y, question)())
    elif question == "three quantiles":
        asked = kept.select([y.quantile(level, "linear").alias(str(level)) for level in LEVELS])
    elif question == "discovered keys":
        kept = kept.select("word", *(["person"] if person else []))
        asked = (kept.unique() if person else kept).group_by("word").len()
    else:
        asked = kept.group_by(COLUMNS[question][1]).agg(y.mean())
    return asked.collect(**how)


def warm(folder: Path, *, person: bool) -> None:
    """Everything once on a small table, so that no figure holds an import."""
    frame = in_pandas(made(2000))
    asker = session(frame, folder / f"warm-{person}", person=person)
    for question in PEOPLE if person else ROWS:
        released(question, asker.frame, 50)
