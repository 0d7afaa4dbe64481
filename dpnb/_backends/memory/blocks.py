"""Work on a table block by block, on all cores: what the blocks share, and how many rows are computed at a time.

Rows are in the order of their units, and a query is a sum over units; so a table divides into independent blocks of
whole units.  A block's intermediate arrays fit a processor's cache, and whatever the table's size, few of them exist at
a time.

The memory of a query is bounded whatever its plan and its rows: besides the table and the answer, each core uses about
`BLOCK_BYTES`, half of it for results that several features share, half for the one expression that is being computed.
Only arrays with a few bytes for each row of a block, such as a mask, exist for all of its rows at once, since a block
has whole units and a unit may have any number of rows.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from itertools import count, pairwise
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb._compile.sensitivity import LinearQuery
from dpnb._compile.work import NUMBER_BYTES
from dpnb._plan.expressions.nodes import Expression, Node, nodes_of
from dpnb.threads import Helpers, ThreadTask, end_if_asked

N = TypeVar("N", bound=Node)
T = TypeVar("T")

MOST_BYTES = 2**26
"""Size of the results that are kept, besides the last one.  A result may have a value for each text of a column."""

MAPPING_BYTES = 200
"""Memory for an entry of a mapping, besides the characters of a text."""


class SubexpressionCache:
    """Expressions by number, so that a long one is processed once, not in every block; and their cached properties.

    All properties are forgotten once they are large together, and then computed again when they are needed.  Several
    threads may use it: two threads that compute the same entry get the same result.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._by_digest: dict[bytes, int] = {}
        self._by_identity: dict[int, tuple[Node, int]] = {}  # with the expression, so that its id is not reused
        self._results: dict[tuple[str, int], Any] = {}
        self._bytes = 0

    def number(self, node: Node) -> int:
        """A number for an expression; equal for equal JSON (1, 1.0 and True, equal in Python, are different)."""
        entry = self._by_identity.get(id(node))
        if entry is None:
            digest = blake2b(msgspec.json.encode(node)).digest()  # the texts of products of long sums take much memory
            entry = node, self._by_digest.setdefault(digest, next(self._numbers))
            self._by_identity[id(node)] = entry
        return entry[1]

    def once(self, what: str, node: N, compute: Callable[[N], T]) -> T:
        """The result of `compute` for an expression, computed once."""
        key, results = (what, self.number(node)), self._results
        result: T
        if key in results:
            result = results[key]
        else:
            result = results[key] = compute(node)
            self._bytes += bytes_of(result)
            if self._bytes > MOST_BYTES:
                self._results, self._bytes = {}, 0  # another thread may read the old ones
        return result


def bytes_of(result: object) -> int:
    """About how much memory a result takes."""
    size, waiting = 0, [result]
    while waiting:
        match waiting.pop():
            case np.ndarray() as array:
                size += array.nbytes
            case dict() as mapping:
                size += sum([MAPPING_BYTES + (len(key) if isinstance(key, str) else 0) for key in mapping])
            case tuple() | list() as parts:
                waiting += parts
            case part if hasattr(part, "__dataclass_fields__"):
                waiting += vars(part).values()
    return size


def bytes_without_views(result: Any) -> int:
    """Memory of a result of one block; none for a part of a column of the table."""
    parts = result if isinstance(result, tuple) else (result,)
    return sum([part.nbytes for part in parts if isinstance(part, np.ndarray) and part.base is None])


# --- work on a table block by block -----------------------------------------------------------------------------------


B = TypeVar("B")
D = TypeVar("D", bound=np.generic)

ROWS_AT_ONCE = 2**18
"""Rows of a block, unless a unit has more."""

FREED_BYTES = 2**25 - 2**16
"""Size of the array that `_keep_freed_memory` allocates and frees."""


_here = threading.local()
_helpers = Helpers()


def blocks_of(units: NDArray[np.signedinteger[Any]], rows: int) -> list[slice]:
    """Blocks of about `rows` rows, each of whole units, at least one; `units` ascending."""
    first = np.searchsorted(units, units[::rows], "left").tolist()
    ends = [*dict.fromkeys(first or [0]), len(units)]
    return [slice(start, end) for start, end in pairwise(ends)]


def even_blocks(rows: int, at_most: int | None = None, size: int = ROWS_AT_ONCE) -> list[slice]:
    """Blocks of `size` rows regardless of units; of more rows if there would be more than `at_most` blocks."""
    size = size if at_most is None else max(size, rows // at_most + 1)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def by_blocks(work: Callable[[B], T], blocks: Sequence[B], at_once: int | None = None) -> list[T]:
    """The results of `work` for each block, in order.

    The number of threads does not depend on that of blocks, which is private: as many as cores, at most `at_once`, with
    the calling one.  The others stay, and are woken however many blocks there are.  Work on a block has no helpers.
    After an exception, an interrupt or a request to end the work no further block is begun.
    """
    results: dict[int, T] = {}
    pending = deque(enumerate(blocks))

    def work_on_pending() -> None:
        outer, _here.is_at_work = getattr(_here, "is_at_work", False), True
        try:
            with np.errstate(all="ignore"):  # this setting belongs to the thread
                while pending:
                    end_if_asked()
                    try:
                        index, block = pending.popleft()
                    except IndexError:  # another thread has begun the last block
                        return
                    results[index] = work(block)
        except BaseException:
            pending.clear()
            raise
        finally:
            _here.is_at_work = outer

    _keep_freed_memory()
    helpers: list[ThreadTask[None]] = []
    try:
        if not getattr(_here, "is_at_work", False):
            wanted = min(cores(), at_once or cores()) - 1
            with suppress(RuntimeError):  # the system has no more threads: whether this fails must not depend on rows
                _helpers.grow(wanted)
            helpers += [ThreadTask(work_on_pending) for _ in range(min(wanted, _helpers.number))]
            for helper in helpers:
                _helpers.help_with(helper)
        work_on_pending()
        for helper in helpers:
            if helper.has_begun:  # otherwise it will find no block
                helper.result()
    except BaseException:
        pending.clear()
        raise
    return [results[index] for index in range(len(blocks))]


def sum_of_blocks(
    work: Callable[[B], T], blocks: Sequence[B], add: Callable[[T, T], T], at_once: int | None = None
) -> T:
    """The sum of the results of `work` for each block, of which few exist at a time; there is at least one block.

    `add` adds two results; the order in which blocks are added is arbitrary.  There are `at_once` threads, by default
    as many as cores.
    """
    lock, total = threading.Lock(), list[T]()

    def work_on(block: B) -> None:
        part = work(block)
        with lock:
            total[:] = [add(total[0], part) if total else part]

    by_blocks(work_on, blocks, at_once)
    return total[0]


def gathered(values: NDArray[D], indices: NDArray[np.signedinteger[Any]]) -> NDArray[D]:
    """An array's values at some indices."""
    result = np.empty(len(indices), values.dtype)

    def fill(part: slice) -> None:
        result[part] = values.take(indices[part])  # twice as fast as indexing

    by_blocks(fill, even_blocks(len(indices)))
    return result


def where_true(values: NDArray[D], mask: NDArray[np.bool_]) -> NDArray[D]:
    """An array's values where a mask is true."""
    parts = even_blocks(len(mask))
    counts = by_blocks(lambda part: int(np.count_nonzero(mask[part])), parts)
    ends = np.cumsum([0, *counts]).tolist()
    result = np.empty(ends[-1], values.dtype)

    def fill(number: int) -> None:
        result[ends[number] : ends[number + 1]] = values[parts[number]][mask[parts[number]]]

    by_blocks(fill, range(len(parts)))
    return result


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _keep_freed_memory() -> None:
    # The C library of Linux returns freed memory above some size to the system, which clears every page of it before it
    # is used again: several times the work of a block.  It raises that size to the largest piece ever freed.
    np.empty(FREED_BYTES, np.uint8)


# --- how many rows are computed at a time, whatever the plan and the rows ---------------------------------------------


BLOCK_BYTES = 2**26
"""Memory for the rows of a block, for each core."""

KEPT_BYTES = BLOCK_BYTES // 2
"""Results that are kept between two expressions."""

NODE_BYTES, ROW_BYTES = 16, 64
"""Memory for each row: for each node of an expression, and besides."""

ENTRY_BYTES = 128
"""Memory for each entry of the vectors of units, while they are made."""

SUM_BYTES, ANSWER_BYTES = 24, NUMBER_BYTES // 2
"""Memory for each sum of a block while it is computed, and what the answer will need more than its sums."""

LEAST_ROWS = 64


def rows_at_once(query: LinearQuery) -> int:
    """The number of rows for which the expressions of a query are computed at a time.

    If the sums of a feature are many, as many rows, so that the sums of a few rows are not added to all of them again
    and again: that takes less memory than the answer will.
    """
    wanted = max(ROWS_AT_ONCE, query.cells * max([feature.slots for feature in query.features]))
    size = max(BLOCK_BYTES // 2, query.cells * query.slots * ANSWER_BYTES // cores())
    return max(min(wanted, size // (NODE_BYTES * query.most_nodes + ROW_BYTES)), LEAST_ROWS)


def rows_for(node: Expression) -> int:
    """The number of rows for which one expression is computed at a time."""
    rows = BLOCK_BYTES // 2 // (NODE_BYTES * len(nodes_of(node)) + ROW_BYTES)
    return max(min(ROWS_AT_ONCE, rows), LEAST_ROWS)


def blocks_at_once(query: LinearQuery) -> int:
    """The number of blocks whose sums exist at a time."""
    return max(2, 4 * BLOCK_BYTES // (SUM_BYTES * query.cells * query.slots))


def entries_at_once() -> int:
    """The number of entries of vectors of units that are made at a time."""
    return BLOCK_BYTES // ENTRY_BYTES


def numbers_at_once() -> int:
    """The number of integers that rows add to features, kept at a time."""
    return BLOCK_BYTES // 8
