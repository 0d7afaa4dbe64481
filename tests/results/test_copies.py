"""Results can be copied and pickled: a copy shows the same, holds released values alone, and has no session."""

from __future__ import annotations

import copy
import io
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, RequestError
from dpnb.results.answer import Answer
from dpnb.results.estimates import IntervalArrays
from dpnb.results.regression import FitResult
from dpnb.results.tables.table import Estimates

SECRET = "SECRET-Alice"
ROWS = 8.12345678

PICKLED_FROM = {
    "answers": (
        "dpnb.results.answer",
        "dpnb.results.estimates.noisy",
        "dpnb._core.group_sources",
        "dpnb._core.releases",
        "dpnb.accounting.losses.",
    ),
    "questions": ("dpnb._plan.",),
    "numbers": ("numpy", "fractions", "builtins", "copyreg", "_codecs"),
}
"""Modules whose types a pickled answer may hold."""


def table() -> pd.DataFrame:
    count = 60
    columns = {
        "u": [f"{SECRET} {row}" for row in range(count)],
        "x": [ROWS] * count,
        "kind": ["a", "b"] * (count // 2),
        "word": ["common"] * count,
    }
    return pd.DataFrame(columns)


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return dpnb.Session(
        table(),
        name="clinic",
        privacy_unit="u",
        max_rows_per_unit=1,
        budget=dpnb.Budget(5, 1e-2, discovery_delta=1e-3),
        schema={"x": dpnb.Bounded(0, 10), "kind": dpnb.Categories(["a", "b"]), "word": dpnb.Text()},
        public_size=60,
        ledger=tmp_path / "clinic.dpnb",
    )


def refined(session: dpnb.Session) -> Answer:
    return session.frame.count().release(mu="0.1").refine(mu="0.2").refine(mu="0.3")


ANSWERS: dict[str, Callable[[dpnb.Session], Answer]] = {
    "count": lambda s: s.frame.count().release(mu="0.1"),
    "refined": refined,
    "groups": lambda s: s.frame.groupby("kind")["x"].mean().release(mu="0.3"),
    "some groups": lambda s: s.frame.groupby("kind").count().release(mu="0.1").refine(mu="0.2", groups=["a"]),
    "shares": lambda s: s.frame.groupby("kind").count().release(mu="0.1").proportions(),
    "several": lambda s: s.frame.groupby("kind").agg(n="count", s=("x", "sum")).release(mu="0.2"),
    "filtered": lambda s: s.frame[s.frame["x"] > 1]["x"].median().release(mu="0.2"),
    "discovery": lambda s: s.frame.discover("word", discovery_delta="1e-5").release(mu="0.3"),
}

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle {number}": lambda it, number=number: pickle.loads(pickle.dumps(it, number)) for number in range(6)},
}


def faces(value: Any) -> list[str]:
    return [repr(value), value._repr_html_(), value.to_pandas().to_csv()]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_copied_answer_shows_the_same_and_has_no_session(name: str, session: dpnb.Session) -> None:
    answer = ANSWERS[name](session)
    for make in WAYS.values():
        copied = make(make(answer))
        assert type(copied) is Answer
        assert copied == answer
        assert faces(copied) == faces(answer)
        assert copied.measurement_ids == answer.measurement_ids
        if name == "discovery":
            for of in (answer, copied):
                with pytest.raises(RequestError, match="release a new discovery"):
                    of.refine(mu=1)
                with pytest.raises(RequestError, match="each discovery is a separate query"):
                    _ = of.history
            continue
        assert faces(copied.history) == faces(answer.history)
        assert [one._repr_html_() for one in copied.history] == [one._repr_html_() for one in answer.history]
        with pytest.raises(RequestError, match="refine: a copied answer has no session; release it again in the sess"):
            copied.refine(mu=1)


def test_a_copied_answer_has_no_shares_but_those_of_what_it_is(session: dpnb.Session) -> None:
    copied = copy.copy(session.frame.groupby("kind").count().release(mu="0.1"))
    with pytest.raises(RequestError, match="proportions: a copied answer has no session"):
        copied.proportions()
    assert copied["a"] == session.frame.groupby("kind").count().best["a"]
    with pytest.raises(DpnbError, match="needs counts or sums by group"):
        copy.copy(session.frame.count().release(mu="0.1")).proportions()


def test_a_copy_outlives_the_ledger(session: dpnb.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = refined(session)

    def gone(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    shown = answer._repr_html_()
    for name in ("run", "each"):
        monkeypatch.setattr(type(session.ledger._file), name, gone)
    assert pickle.loads(pickle.dumps(answer))._repr_html_() == answer._repr_html_() == shown


class _Types(pickle.Unpickler):
    """Unpickles, and notes which types it was given."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.found: set[type] = set()
        self.modules: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        made = super().find_class(module, name)
        self.modules.add(module)
        if isinstance(made, type):
            self.found.add(made)
        return made


@pytest.mark.parametrize("name", ANSWERS)
def test_a_pickled_answer_holds_released_values_alone(name: str, session: dpnb.Session) -> None:
    text = pickle.dumps(ANSWERS[name](session))
    reader = _Types(io.BytesIO(text))
    reader.load()
    allowed = tuple(module for modules in PICKLED_FROM.values() for module in modules)
    assert [module for module in reader.modules if not module.startswith(allowed)] == []
    assert not any(issubclass(made, NotCopyable) for made in reader.found)
    for private in (SECRET.encode(), np.float64(ROWS).tobytes(), b"clinic.dpnb"):
        assert private not in text
    # Of a table of sixty rows no array has as many numbers as rows, and nothing says how many rows there are.
    assert all(array.size < 10 for array in _arrays(pickle.loads(text), set()))


DERIVED: dict[str, Callable[[dpnb.Session], Any]] = {
    "sorted": lambda s: s.frame.groupby("kind").count().release(mu="0.1").sort_values(),
    "rounded": lambda s: refined(s).round(1),
    "two-way": lambda s: s.frame.groupby(["kind", s.frame["x"] > 5]).size().unstack().release(mu="0.1").head(1),
    "compared": lambda s: s.frame.groupby("kind").count().release(mu="0.1") > 10,
    "discovered": lambda s: s.frame.discover("word", discovery_delta="1e-5").release(mu="0.3").nlargest(1),
}


@pytest.mark.parametrize("name", DERIVED)
def test_a_pickled_rearrangement_or_comparison_holds_released_values_alone(name: str, session: dpnb.Session) -> None:
    value = DERIVED[name](session)
    text = pickle.dumps(value)
    reader = _Types(io.BytesIO(text))
    again = reader.load()
    allowed = (*(module for modules in PICKLED_FROM.values() for module in modules), "dpnb.results.")
    assert [module for module in reader.modules if not module.startswith(allowed)] == []
    assert not any(issubclass(made, NotCopyable) for made in reader.found)
    for private in (SECRET.encode(), np.float64(ROWS).tobytes(), b"clinic.dpnb"):
        assert private not in text
    assert all(array.size < 10 for array in _arrays(again, set()))
    assert (repr(again), again._repr_html_()) == (repr(value), value._repr_html_())


def _arrays(value: Any, seen: set[int]) -> list[np.ndarray]:
    if id(value) in seen:
        return []
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    return [array for part in parts for array in _arrays(part, seen)]


def test_control_types_of_a_session_are_noticed() -> None:
    reader = _Types(io.BytesIO(pickle.dumps(table())))
    reader.load()
    assert any(module.startswith("pandas") for module in reader.modules)


def test_other_results_are_copied_too(session: dpnb.Session) -> None:
    query = session.frame["x"].mean()
    scan = session.above_threshold(30, name="scan", epsilon="0.1", max_positives=1)
    cells = IntervalArrays.of(*(np.array([x]) for x in (1.0, 0.0, 2.0, 1.0)))
    by_hand = Estimates(description="x", names=(), keys=((),), outputs=None, arrays=cells, confidence=0.95)
    values = [
        query.preview(mu="0.1"),
        query.preview(),
        query.explain(),
        session.explain(),
        scan.ask(session.frame.count(), 30),
        refined(session).history,
        FitResult(**vars(by_hand), notes=("of 8 chains",), is_moving=True),
    ]
    for value in values:
        for make in WAYS.values():
            copied = make(value)
            assert type(copied) is type(value)
            assert (repr(copied), copied._repr_html_()) == (repr(value), value._repr_html_())


def test_intervals_for_all_observations_are_computed_when_read_and_once(session: dpnb.Session) -> None:
    answer = session.frame["x"].mean().release(mu=0.5)
    assert callable(vars(answer)["anytime_arrays"])
    first = answer.anytime_arrays
    assert isinstance(first, IntervalArrays)
    assert answer.anytime_arrays is first
    assert (first.high - first.low > answer.arrays.high - answer.arrays.low).all()


def test_a_copy_has_the_intervals_for_all_observations(session: dpnb.Session) -> None:
    answer = session.frame["x"].mean().release(mu=0.5)
    copied = pickle.loads(pickle.dumps(answer))
    assert isinstance(vars(copied)["anytime_arrays"], IntervalArrays)
    assert answer.anytime_arrays is not None
    assert copied.anytime_arrays.low.tolist() == answer.anytime_arrays.low.tolist()
