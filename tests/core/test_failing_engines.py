"""What an engine raises becomes one constant error, also where it is none of Python's ordinary exceptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._backends.lazy import lazy_backend
from dpnb._core.execution import executor
from dpnb.errors import ExecutionError

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

SECRET = "SECRET-Alice-HIV"
ROWS = 20_000


def opened(table: Any, folder: Path) -> dpnb.Session:
    return dpnb.Session(
        table,
        name="people",
        budget=dpnb.Budget(1, "1e-6", discovery_delta="1e-7"),
        schema={"num": dpnb.Bounded(0, 9), "key": dpnb.Categories([0, 1]), "town": dpnb.Text()},
        ledger=folder / "people.dpnb",
    )


def released(session: dpnb.Session, question: str) -> BaseException:
    frame = session.frame
    asked = {
        "sum": lambda: frame["num"].sum(),
        "groups": lambda: frame.groupby("key")["num"].mean(),
        "quantile": lambda: frame["num"].median(),
        "discovery": lambda: frame.discover("town"),
    }[question]()
    try:
        asked.release(mu="0.1")
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError


def rewritten(folder: Path, question: str) -> tuple[dpnb.Session, BaseException]:
    """Ask about a file of Parquet that is rewritten, much shorter, between the charge and the reading."""
    path = folder / "people.parquet"
    rows = {
        "num": [float(row % 9) for row in range(ROWS)],
        "key": [0, 1] * (ROWS // 2),
        "town": ["x", "y"] * (ROWS // 2),
    }
    pl.DataFrame(rows).write_parquet(path)
    session = opened(pl.scan_parquet(path), folder)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("added_up", "counted"):
            patch.setattr(
                lazy_backend, name, after(lambda: path.write_bytes(SECRET.encode()), getattr(lazy_backend, name))
            )
        return session, released(session, question)


def after(first: Callable[[], object], work: Callable[..., Any]) -> Callable[..., Any]:
    def both(*given: Any) -> Any:
        first()
        return work(*given)

    return both


def only_exceptions(work: Callable[[], Any], message: str, **options: Any) -> Any:
    """The control: what `guarded` was once."""
    try:
        return work()
    except Exception:  # noqa: BLE001
        pass
    raise ExecutionError(message)


@pytest.mark.parametrize("question", ["sum", "groups", "quantile", "discovery"])
def test_a_file_that_changes_under_a_session_is_one_constant_error(
    question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for folder in ("now", "then"):
        (tmp_path / folder).mkdir()
    session, error = rewritten(tmp_path / "now", question)
    assert type(error) is ExecutionError
    assert error.args == (executor.FAILED,)
    assert [charge.status for charge in session.ledger.charges()][-1] == "failed"
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(executor, "run_guarded", only_exceptions)
    session, error = rewritten(tmp_path / "then", question)
    assert type(error).__name__ == "PanicException"


def said(value: str) -> float:
    print(SECRET, value)
    raise SystemExit(value)


def calling(where: str) -> Any:
    """A table with a column for which the curator's plan calls a function."""
    if where == "polars":
        table = pl.LazyFrame({"num": [SECRET] * 3, "key": [0] * 3, "town": ["x"] * 3})
        return table.with_columns(pl.col("num").map_elements(said, return_dtype=pl.Float64))
    connection = duckdb.connect()
    connection.create_function("said", said, ["VARCHAR"], "DOUBLE")
    return connection.sql(f"select said('{SECRET}' || range) as num, 0 as key, 'x' as town from range(3)")


@pytest.mark.parametrize("where", ["polars", "duckdb"])
def test_a_function_of_the_plan_neither_prints_nor_ends_the_process(
    where: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    error = released(opened(calling(where), tmp_path), "sum")
    assert type(error) is ExecutionError
    assert error.args == (executor.FAILED,)
    assert capfd.readouterr() == ("", "")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_what_a_frame_raises_when_it_is_opened_is_one_constant_error(tmp_path: Path) -> None:
    """A plan of polars finds out its columns by calling a function of the curator's."""
    table = pl.LazyFrame({"num": [1.0]}).map_batches(said, schema=None).with_columns(key=pl.col("none of it"))
    with pytest.raises(ExecutionError, match="reading the table failed"):
        opened(table, tmp_path)
