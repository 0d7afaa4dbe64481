"""Nothing that gives access to rows can be copied or pickled, and no traceback shows a row."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pandas as pd
import pytest
from IPython.utils.capture import capture_output

import dpnb
from dpnb.copying import NotCopyable
from shells import terminal_shell

SECRET = "SECRET-Alice"
NUMBER = 8.12345678


def table() -> pd.DataFrame:
    """A function, since a verbose traceback prints the variables of its caller's line."""
    columns = {
        "u": [SECRET, "bob", "bob"],
        "x": [NUMBER, 2.5, 3.5],
        "kind": ["a", "b", SECRET],
        "word": [f"{SECRET} was here", "b", "c"],
        "when": pd.to_datetime(["2024-05-06", "2024-05-07", "2024-05-08"]),
    }
    return pd.DataFrame(columns)


SCHEMA = {
    "x": dpnb.Bounded(0, 10),
    "kind": dpnb.Categories(["a", "b"]),
    "word": dpnb.Text(),
    "when": dpnb.Dates("2024-01-01", "2024-12-31"),
}


def opened(path: Path, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "clinic",
        "privacy_unit": "u",
        "max_rows_per_unit": 2,
        "budget": dpnb.Budget(1, 1e-6, discovery_delta=1e-7),
        "schema": SCHEMA,
        "public_size": 3,
        "ledger": path,
    }
    return dpnb.Session(table(), **{**arguments, **changes})


WAYS: dict[str, Callable[[Any], object]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy in a list": lambda it: copy.deepcopy([it]),
    **{f"pickle {number}": lambda it, number=number: pickle.dumps(it, number) for number in range(6)},
    "reduce": lambda it: it.__reduce__(),
    "reduce_ex": lambda it: it.__reduce_ex__(4),
    "getstate": lambda it: it.__getstate__(),
}

REACHES_ROWS: dict[str, Callable[[dpnb.Session], object]] = {
    "session": lambda s: s,
    "sub-session": lambda s: s.delegate(name="part of it", mu="0.01"),
    "partition": lambda s: s.partition("kind", max_parts_per_unit=2),
    "part": lambda s: s.partition("kind", max_parts_per_unit=2)["a"],
    "frame": lambda s: s.frame,
    "filtered frame": lambda s: s.frame[s.frame["x"] > 1],
    "column": lambda s: s.frame["x"],
    "condition": lambda s: s.frame["x"] > 1,
    "dates": lambda s: s.frame["when"].dt,
    "groups": lambda s: s.frame.groupby("kind"),
    "grouped column": lambda s: s.frame.groupby("kind")["x"],
    "question": lambda s: s.frame["x"].mean(),
    "way back from an answer": lambda s: s.frame.count().release(mu="0.01").origin,
    "noise reduction": lambda s: s.noise_reduction(s.frame.count(), name="looks"),
    "scan": lambda s: s.above_threshold(2, name="scan", epsilon="0.01"),
    "tables": lambda s: s._core.tables,
    "rows": lambda s: s._core.tables.opened,
    "releases": lambda s: s._core.releases,
    "ledger": lambda s: s.ledger,
}


@pytest.mark.parametrize("name", REACHES_ROWS)
def test_what_reaches_rows_is_neither_copied_nor_pickled(name: str, tmp_path: Path) -> None:
    it = REACHES_ROWS[name](opened(tmp_path / "clinic.dpnb"))
    for way, attempt in WAYS.items():
        with pytest.raises(TypeError, match=r"cannot be copied or pickled: it (gives|is the)") as raised:
            attempt(it)
        assert not shown_by(raised.value.__traceback__), way
        assert raised.value.__context__ is raised.value.__cause__ is None


def test_individual_budgets_are_neither_copied_nor_pickled(tmp_path: Path) -> None:
    session = opened(tmp_path / "each.dpnb", accounting="individual", budget=dpnb.Budget(1, 1e-6))
    session.frame.count().release(mu="0.1")
    for attempt in WAYS.values():
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            attempt(session._core.individuals)


def test_arithmetic_between_answers_can_be_copied(tmp_path: Path) -> None:
    session = opened(tmp_path / "clinic.dpnb")
    difference = session.frame.count().release(mu="0.1") - session.frame.count_units().release(mu="0.1")
    assert pickle.loads(pickle.dumps(difference)) == difference == copy.deepcopy(difference)


# --- tracebacks ----------------------------------------------------------------------------------------------------


def shown_by(traceback: TracebackType | None) -> list[str]:
    """Local variables of frames below this test's own that show a row, as ``%debug`` would print them."""
    shown = []
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_globals.get("__name__") != __name__:
            shown += [
                f"{frame.f_code.co_qualname}: {name}" for name, value in frame.f_locals.items() if secret(repr(value))
            ]
        traceback = traceback.tb_next
    return shown


def secret(text: str) -> bool:
    return SECRET in text or str(NUMBER)[:6] in text


@pytest.fixture(params=[False, True], ids=["without the extension", "with the extension"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    with terminal_shell() as shell:
        try:
            if request.param:
                dpnb.load_ipython_extension(shell)
            shell.user_ns |= {"open": lambda **changes: opened(tmp_path / "clinic.dpnb", **changes), "dpnb": dpnb}
            shell.user_ns |= {"copy": copy, "pickle": pickle, "schema": SCHEMA}
            yield shell
        finally:
            if request.param:
                dpnb.unload_ipython_extension(shell)


FAILURES = {
    "deep copy of a session": "copy.deepcopy(s)",
    "deep copy of a frame": "copy.deepcopy(s.frame)",
    "deep copy of a question": "copy.deepcopy(s.frame['x'].mean())",
    "deep copy of the rows": "copy.deepcopy(s._core.tables)",
    "pickled session": "pickle.dumps([s])",
    "missing column": "open(schema={**schema, 'missing': dpnb.Bounded(0, 1)})",
    "another promise": "s.frame.count().release(mu=0.01); open(budget=dpnb.Budget(2, 1e-6))",
    "wrong name": "open(name='a/b')",
    "wrong limit": "open(max_rows_per_unit=0)",
    "wrong tables": "open(schema={'a': schema, 'b': schema})",
    "unknown column": "s.frame['y']",
    "row access": "s.frame.iloc[0]",
    "refused budget": "s.frame.count().release(mu=5)",
    "no target": "s.frame['x'].mean().release()",
    "unknown error": "s.frame['x'].mean().release(within=0.1)",
    "failure after the charge": "s.frame['x'].sum().release(mu=0.01)",
}


# Verbose shows what Context shows, and the variables of each line.
@pytest.mark.parametrize("mode", ["Verbose", pytest.param("Plain", marks=pytest.mark.slow)])
def test_no_traceback_shows_a_row(mode: str, shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError(f"could not convert {SECRET}")

    for what, line in FAILURES.items():
        text, error = traceback_of(shell, mode, line, monkeypatch, fails if what.startswith("failure") else None)
        assert error is not None, what
        assert not secret(text), f"{what}\n{text}"
        assert not shown_by(error.__traceback__), what


def traceback_of(
    shell: Any, mode: str, line: str, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., None] | None = None
) -> tuple[str, BaseException | None]:
    with monkeypatch.context() as patched, capture_output() as captured:
        shell.run_cell("s = open()")
        shell.run_line_magic("xmode", mode)
        if fails is not None:
            patched.setattr("dpnb._backends.memory.memory_backend.execute", fails)
        result = shell.run_cell(line)
    return captured.stdout + captured.stderr, result.error_in_exec


def test_control_a_copy_that_fails_late_shows_rows(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__reduce_ex__", "__reduce__", "__copy__", "__deepcopy__", "__getstate__"):
        monkeypatch.delattr(NotCopyable, name)
    _, error = traceback_of(shell, "Verbose", "copy.deepcopy(s)", monkeypatch)
    assert isinstance(error, TypeError)  # what cannot be copied comes after the arrays that can
    assert shown_by(error.__traceback__)


def test_control_tables_that_are_passed_on_as_they_are_show_rows(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnb._core.tables.UnreadTables.__repr__", lambda unread: repr(unread.tables))
    _, error = traceback_of(shell, "Verbose", "open(name='a/b')", monkeypatch)
    assert error is not None
    assert shown_by(error.__traceback__)


def test_a_session_that_was_not_opened_has_a_repr() -> None:
    half_made = dpnb.Session.__new__(dpnb.Session)
    assert repr(half_made) == "<Session, not opened>"
    assert half_made._repr_html_() is None
