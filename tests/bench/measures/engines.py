"""A table that polars or DuckDB holds: dpnb asks through the engine, beside the same question without privacy.

One process for each engine and question, so that one that takes long keeps no other from being measured.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.measures.children import tell
from bench.measures.questions import of_duckdb, of_polars, released, session, used
from bench.measures.tables import SEED, TEXTS, WORDS, made, texts
from bench.measures.turns import took, turns

ENGINES = ("polars", "duckdb")


def held(rows: int, folder: str) -> dict[str, Any]:
    """Write the table's columns to Parquet, from which each process fills its engine."""
    import polars as pl

    columns = made(rows, ["x", "y", "word", "person"])
    frame = pl.DataFrame({**columns, "word": pl.Series(WORDS).gather(columns["word"])})
    chance = np.random.default_rng([SEED, 1])
    for number in TEXTS:
        keys = pl.Series(texts(number)).gather(chance.integers(0, number, rows, dtype=np.int32))
        frame = frame.with_columns(keys.alias(f"k{number}"))
    frame.write_parquet(Path(folder) / "held.parquet")
    return {"rows": rows}


def asked(folder: str, engine: str, person: bool, question: str, rounds: int) -> dict[str, Any]:
    """Seconds of dpnb and of the plain engine, taking turns."""
    names = used(question, person)
    table, plain = _opened(Path(folder) / "held.parquet", engine, names)

    def plainly(above: float) -> Any:
        return plain(question, table, above, person=person)

    with tempfile.TemporaryDirectory() as place:
        plainly(29.5)
        found: dict[str, Any] = {"plain": took(lambda: plainly(29.7))}
        tell(found)
        asker = session(table, Path(place) / "held", person=person, columns=names)
        answers: list[Any] = []
        first = took(lambda: answers.append(released(question, asker.frame, 50, mu=50)))  # hardly any noise
        tell({**found, "first": first})
        _agree(question, answers[0].estimate, plainly(50), person)
        contenders = {
            "dpnb": lambda above: took(lambda: released(question, asker.frame, above)),
            "plain": lambda above: took(lambda: plainly(above)),
        }
        found = {**turns(contenders, rounds), "first": first}
    print(f"{engine} {'persons' if person else 'rows'} {question}: {found}", file=sys.stderr)
    return found


def _opened(path: Path, engine: str, names: list[str]) -> tuple[Any, Any]:
    """The table in the engine's memory, and the function that asks it plainly."""
    if engine == "polars":
        import polars as pl

        return pl.read_parquet(path, columns=names).lazy(), of_polars
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE held AS SELECT {', '.join(names)} FROM read_parquet('{path}')")
    return connection.table("held"), of_duckdb


def _agree(question: str, answer: Any, plain: Any, person: bool) -> None:
    """Refuse to time different questions; about persons, whose rows dpnb chooses before it filters, only averages.

    Of very many keys each has too few rows in a small table.
    """
    if "100,000" in question or (person and "mean" not in question and "quantiles" not in question):
        return
    if question == "three quantiles":
        figures = float(answer.iloc[1]), _numbers(plain)[1]
    elif question == "discovered keys":
        figures = float(answer.sum()), float(np.sum(np.asarray(plain["len"])))
    elif "texts" in question:
        figures = float(answer.median()), float(np.median(np.asarray(plain["y"])))
    else:
        figures = float(answer), _numbers(plain)[0]
    if abs(figures[0] - figures[1]) > 0.03 * abs(figures[1]):
        raise AssertionError(f"{question}: dpnb and the engine answer {figures}")


def _numbers(plain: Any) -> list[float]:
    """The numbers of an answer of one row."""
    if not isinstance(plain, dict):
        return [float(value) for value in plain.row(0)]
    (values,) = plain.values()
    return [float(value) for value in np.ravel(values[0])]
