"""The operations that differ between engines, and what a plan tells: whether its rows are stable, and from which files.

All other operations are written once, in narwhals.  No value of a row may make an operation fail: the engine's error
message would quote it.

A query may read a table more than once, and under individual accounting the charges of units are computed again from
the table.  So a plan that is random, or depends on an undefined order of rows, is refused when the session is made.
What a plan does not show cannot be refused: functions written in Python, ties in an order, the first value of a group
in polars and Spark, columns that number rows, and rows that are modified.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import LIMB_BITS, MULTIPLIER, PRIME
from dpnb._backends.worker_thread import BackgroundRunner, isolated_numeric_settings, refuse_stopped
from dpnb._plan.expressions.letters import Case
from dpnb._plan.expressions.nodes import Node
from dpnb.errors import SchemaError
from dpnb.schema import Schema

# Why the rows of a plan may differ between reads, in words.
RANDOM = "a random or volatile operation"
LIMITED = "a limit without an order"
ONE_OF_SEVERAL = "one row kept of several, without an order"
NUMBERED = "numbers of rows without an order"
TIME = "the current time"
QUERY_IN_TEXT = "a query or the name of a table as a text"

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
PlanLine = tuple[int, str]
"""Indentation and text of a line of a plan."""


def lines_of(text: str) -> list[PlanLine]:
    """The lines of a plan without quoted text: one operation per line, its inputs below it, indented further."""
    return [line_of(line) for line in _QUOTED.sub('""', text).splitlines()]


def line_of(line: str) -> PlanLine:
    """One line of a plan."""
    text = line.lstrip(" :+-")
    return len(line) - len(text), text.rstrip()


def inputs_of(lines: list[PlanLine], index: int) -> list[str]:
    """The lines of an operation's inputs."""
    own_indent = lines[index][0]
    return [text for _, text in takewhile(lambda line: line[0] > own_indent, lines[index + 1 :])]


# --- the operations that differ between engines -----------------------------------------------------------------------


LazyFrame = nw.LazyFrame[Any]
T = TypeVar("T")

Paths = Callable[[], Iterable[str]]
"""Returns the files of a table at the time of the call, since a pattern may match more files later."""

LIMB = 2**LIMB_BITS

ROWS_AT_ONCE = 2**24
"""Sorting this many rows of a few columns takes between one and two gigabytes."""

HEX_DIGITS = 15
"""Leading digits of an MD5 that are used, as in `dpnb._backends.contribution.label_hash`."""


class Engine(ABC):
    """An engine; methods that are not abstract use narwhals alone and can be overridden."""

    name = label = ""
    """The name in messages, and the one that its makers write."""
    rows_at_once: int | None = None
    """A longer table with a privacy unit is queried in shares of the units, since the engine sorts all rows on one
    machine; None for an engine that distributes them."""
    summed_as: type[nw.Int64 | nw.Int128] | None = None
    """The type of integers whose sums have more than 64 bits, so that they cannot overflow; None if there is none."""
    most_columns = math.inf
    """Declared columns of a table: a query of more is not known to be planned in time, or at all."""
    has_settings = False
    """Whether the user can change settings or functions of the engine so that a query means something else."""
    keeps = True
    """Whether it has `kept`."""
    shares_subexpressions = True
    """Whether an expression that occurs several times in a plan is analysed and evaluated once.  Otherwise plans grow
    with each occurrence, and the logarithm of a power of 2 or 10 is not made exact, which takes four of them."""

    def __init__(self) -> None:
        self._background = BackgroundRunner()

    def run(self, work: Callable[[], T], natives: Iterable[Any], within: float | None = None) -> T:
        """Run work on some frames; an interrupt cancels the work and is raised as `KeyboardInterrupt`.

        All work of an engine goes through this method: see `BackgroundRunner.run`.
        """
        del natives
        return self._background.run(work, within=within)

    def settle(self) -> None:
        """Wait until interrupted work has ended."""
        self._background.settle()

    def opened(self, native: Any) -> LazyFrame:
        """The native frame as a lazy frame of narwhals."""
        with isolated_numeric_settings():  # narwhals warns of plugins that could be installed
            return opened(native)

    def rows(self, native: Any) -> int:
        """Number of rows of a frame."""
        return int(self.collected(self.opened(native).select(rows=nw.len()))["rows"][0])

    def exact(self, frame: LazyFrame) -> LazyFrame:
        """The frame with texts of which only those of the same bytes are equal, if the engine has other texts."""
        return frame

    def well_formed(self, frame: LazyFrame, columns: Sequence[str]) -> LazyFrame:
        """The frame with a null in place of each text that is not valid UTF-8, if the engine can hold such texts."""
        del columns
        return frame

    def by_unit(self, frame: LazyFrame) -> LazyFrame:
        """The same rows, with those of a unit on one machine, so that no later step moves them again."""
        return frame

    def distinct(self, frame: LazyFrame) -> LazyFrame:
        """The rows without repetition."""
        return frame.unique()

    @abstractmethod
    def hashed(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        """The frame with the hash of each text by `label_hash`, for every ``from: to`` of `columns`."""

    def microseconds(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        """The frame with times in microseconds since 1970, in UTC, for every ``from: to`` of `columns`."""
        return frame.with_columns(**{to: nw.col(column).dt.timestamp("us") for column, to in columns.items()})

    @abstractmethod
    def dated(self, frame: LazyFrame, column: str, to: str) -> LazyFrame:
        """The frame with dates, from 32-bit numbers of days since 1970."""

    @abstractmethod
    def row_hash(self, frame: LazyFrame, columns: Sequence[str], to: str) -> LazyFrame:
        """The frame with the hash of non-negative integer columns by `dpnb._backends.contribution.row_hash`."""

    @abstractmethod
    def with_case(self, frame: LazyFrame, column: str, to: str, case: Case) -> LazyFrame:
        """The frame with the texts of a column in another case, by `dpnb._plan.expressions.letters`."""

    def divided(self, column: nw.Expr, by: float) -> nw.Expr:
        """A column of finite doubles divided by a constant, correctly rounded."""
        return column / by

    @abstractmethod
    def public_table(self, frame: LazyFrame, columns: Mapping[str, Sequence[Any]]) -> LazyFrame:
        """A small table of public values, texts, doubles or 64-bit integers, which can be joined with a frame."""

    def with_matches(self, frame: LazyFrame, column: str, table: LazyFrame, to: str) -> LazyFrame:
        """The frame with `to`: the ``value`` of a public table for the ``key`` that a column equals; null without one.

        A null matches no key.  The keys are distinct, so no row is repeated.
        """
        found = table.select("key", nw.col("value").alias(to))
        return frame.join(found, left_on=column, right_on="key", how="left")

    def truncated(self, frame: LazyFrame, column: str, to: str, low: float) -> LazyFrame:
        """The frame with doubles, none below `low`, as 64-bit integers, which they fit, rounded toward zero."""
        return frame.with_columns(toward_zero(nw.col(column), low).alias(to))

    def collected(self, frame: LazyFrame) -> dict[str, NDArray[Any]]:
        """The columns of a small result: integers without nulls, or texts."""
        refuse_stopped()
        with isolated_numeric_settings():
            return {column.name: column.to_numpy() for column in frame.collect().iter_columns()}

    def planned(self, frame: LazyFrame) -> LazyFrame:
        """The same rows, with which many queries begin: an engine can plan them once."""
        return frame

    @abstractmethod
    def kept(self, frame: LazyFrame) -> LazyFrame:
        """The same rows, computed once and kept in the engine."""

    def refuse(self, node: Node, schema: Schema) -> None:  # noqa: B027  (most engines compute all)
        """Refuse an expression that the engine cannot compute for every row."""

    def refuse_settings(self, natives: Iterable[Any]) -> None:  # noqa: B027  (not every engine has such settings)
        """Refuse frames of a connection whose settings or functions change what a query means."""

    def refuse_unstable(self, name: str, native: Any) -> None:
        """Refuse a table whose plan shows that its rows may differ between reads; its error does not quote the plan."""
        try:
            cause = self.unstable(native)
        except Exception:  # noqa: BLE001  (a plan that cannot be inspected shows nothing)
            return
        if cause is not None:
            which = f"table {name!r}" if name else "table"
            raise SchemaError(
                f"{which}: must have the same rows whenever it is read; its plan has {cause}; write its result into a "
                "file or table once and pass that, or order every row"
            )

    @abstractmethod
    def unstable(self, native: Any) -> str | None:
        """The reason why a frame's rows may differ between reads, or None; see `refuse_unstable`."""

    def paths_of(self, native: Any) -> Paths:
        """A function that returns the files of a table; none if it does not list them, or none is on this machine."""
        try:
            return self.files(native)
        except Exception:  # noqa: BLE001  (a plan that cannot be inspected shows nothing)
            return list

    @abstractmethod
    def files(self, native: Any) -> Paths:
        """A function that returns the files from which a frame is read; see `paths_of`."""


class InProcessEngine(Engine):
    """An engine through whose process, which is this one, rows pass when they are read."""

    @abstractmethod
    def arrays(self, frame: LazyFrame) -> dict[str, NDArray[Any]]:
        """The columns of integers without nulls as arrays."""

    @abstractmethod
    def private_table(self, frame: LazyFrame, columns: Mapping[str, NDArray[np.int64]]) -> LazyFrame:
        """A table of arrays, which can be joined with a frame."""


def opened(native: Any) -> LazyFrame:
    """A native frame as a lazy frame of narwhals."""
    frame: LazyFrame = nw.from_native(native)
    return frame


def toward_zero(column: nw.Expr, low: float) -> nw.Expr:
    """Doubles, none below `low`, as 64-bit integers, rounded toward zero."""
    below = column.floor()
    return (below if low >= 0 else nw.when(column < 0).then(-((-column).floor())).otherwise(below)).cast(nw.Int64)


def folded(limbs: Sequence[Any], before: Any = None) -> Any:
    """The state of the hash after some limbs, in native expressions: narwhals' remainder repeats its operand.

    `before` is the state after earlier limbs.
    """
    state = before
    for limb in limbs:
        state = (MULTIPLIER if state is None else state % PRIME * MULTIPLIER) + limb % PRIME + 1
    return state % PRIME


def squared(state: Any) -> Any:
    """The final step of the hash; without a square the hash would be linear."""
    return (state * state % PRIME * MULTIPLIER + state) % PRIME


def digest_of(files: Mapping[str, Paths]) -> str | None:
    """A digest that identifies the unchanged files of some tables; None if there are no files.

    It is of device, inode and time of change; never of the size, which depends on the rows.
    """
    identities = {name: _identities(paths) for name, paths in files.items()}
    if not any(identities.values()):
        return None
    return hashlib.sha256(json.dumps(identities, sort_keys=True).encode()).hexdigest()


def _identities(paths: Paths) -> list[tuple[int, ...]]:
    try:
        return sorted(_identity(path) for path in set(_expanded(paths())))
    except Exception:  # noqa: BLE001  (for example a deleted file; an engine's message may quote what replaced it)
        return [()]


def _identity(path: str) -> tuple[int, ...]:
    """Device, inode and both times, since on Windows the first is the time of creation."""
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns


def _expanded(paths: Iterable[str]) -> list[str]:
    """The files on this machine that match some paths and patterns."""
    files = []
    for path in paths:
        local = os.path.expanduser(unquote(urlsplit(path).path) if path.startswith("file:") else path)
        matches = [local] if os.path.exists(local) else glob.glob(local, recursive=True)
        files += [os.path.realpath(match) for match in matches if os.path.isfile(match)]
    return files
