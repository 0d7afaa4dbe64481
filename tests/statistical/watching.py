"""Everything that a hostile analyst can watch while working with a table, apart from the noisy numbers themselves."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import pickle
import pickletools
import re
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpnb.errors import RefinementWarning
from dpnb.results.answer import Answer

__all__ = ["Call", "ledger_rows", "outcome", "watched"]

Call = Callable[[], Any]

NUMBER = re.compile(r"[+-]?\d[\d,.]*(e[+-]?\d+)?|NaN|Infinity|-Infinity")
"""A number in the words of an answer."""

MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC")
"""When it was asked, as faces say it."""


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextlib.contextmanager
def _everything_said(into: dict[str, Any]) -> Iterator[None]:
    """Warnings, log lines, what is printed."""
    lines, out, errors = _Lines(), io.StringIO(), io.StringIO()
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(lines)
    root.setLevel(logging.NOTSET)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            warnings.simplefilter("always")
            yield
    finally:
        root.removeHandler(lines)
        root.setLevel(level)
    into |= {"warnings": [_without_forecast(one.message) for one in warned], "log": lines.lines}
    into |= {"out": out.getvalue(), "errors": errors.getvalue()}


def _without_forecast(message: Warning | str) -> str:
    """A warning; the numbers of a forecast from released answers are noisy as these are."""
    return NUMBER.sub("#", str(message)) if isinstance(message, RefinementWarning) else str(message)


def watched(call: Call) -> dict[str, Any]:
    """What a call shows: its result without the noisy numbers, or its error, and all that is said meanwhile."""
    seen: dict[str, Any] = {}
    with _everything_said(seen):
        try:
            seen["result"] = outcome(call())
        except Exception as error:  # noqa: BLE001  (which one it is, is what is watched)
            seen["raised"] = _error(error)
    return seen


def _error(error: BaseException | None) -> Any:
    """An error with all that it drags along."""
    if error is None:
        return None
    notes = getattr(error, "__notes__", [])
    return type(error).__name__, str(error), repr(error.args), notes, _error(error.__cause__), _error(error.__context__)


def outcome(result: Any) -> Any:
    """A result without its noisy numbers: of an answer all else, of a number its type, of anything else its text."""
    if isinstance(result, Answer):
        kept = {
            name: getattr(result, name) for name in ("description", "names", "keys", "outputs", "confidence", "notice")
        }
        kept |= {
            name: repr(getattr(result, name))
            for name in ("plan", "view", "cost", "cost_fraction", "total_loss", "n_observations")
        }
        kept["fields"] = sorted(vars(result))
        kept["cells"] = {name: np.shape(part) for name, part in vars(result.arrays).items()}
        return kept | {"estimate": outcome(result.estimate), "pickle": _pickled_types(result)}
    if isinstance(result, pd.Series | pd.DataFrame):
        types = [str(kind) for kind in np.atleast_1d(np.asarray(result.dtypes, object))]
        return type(result).__name__, result.shape, types, result.index.tolist(), str(result.index.dtype)
    if isinstance(result, float):
        return "float"
    html = getattr(result, "_repr_html_", lambda: None)()
    faces = [MOMENT.sub("then", face) for face in (repr(result), str(result), html or "")]
    return type(result).__name__, faces, _serialised(result)


def _pickled_types(answer: Answer) -> list[str]:
    """The types in a pickled answer, whose other bytes are of noisy numbers."""
    return [str(what) for code, what, _ in pickletools.genops(pickle.dumps(answer, 2)) if code.name == "GLOBAL"]


def _serialised(value: Any) -> list[Any]:
    """What pickling and copying make of it."""
    made = []
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        try:
            result = make(value)
            made.append(result if isinstance(result, bytes) else repr(type(result)))
        except Exception as error:  # noqa: BLE001  (as above)
            made.append(_error(error)[:2])
    return made


def ledger_rows(path: Path) -> list[dict[str, Any]]:
    """All that a ledger holds but times, random values, hashes, the noisy numbers, and the numbers in words."""
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        rows = [dict(row) for row in file.execute("SELECT * FROM events ORDER BY id")]
    for row in rows:
        for name in ("time", "hash", "salt", "answer_digest", "result_hash"):
            del row[name]
        if row["kind"] == "close":
            del row["request_key"]
        if row["result"] is not None:
            told = json.loads(row["result"])
            row["result"] = {**told, "values": len(told["values"])}
        if row["words"] is not None:
            row["words"] = NUMBER.sub("#", row["words"])
    return rows
