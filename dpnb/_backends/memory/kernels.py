"""Exact sums of rows by cell, in compiled code if numba is installed, and otherwise in numpy, with the same integers.

numba compiles in a background thread, which the first session with a table in memory starts, however many rows it has:
a process shows its threads and modules, and the number of rows is private.  Until the thread has ended, and wherever
numba is missing, fails or is switched off by its ``NUMBA_DISABLE_JIT``, numpy computes the sums.  So which of the two
computes a query depends on time alone, and no answer depends on it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb._backends.contribution import Integers
from dpnb._backends.quiet import silence_thread

THREAD = "dpnb-kernels"
"""Name of the thread that compiles."""

WAIT_SECONDS = 20.0
"""The longest time for which a fork waits for the compilation."""

CELLS = np.int8, np.int16, np.int32, np.int64
"""Types of the cells of rows."""


COMPARED = 256
"""Rows of which all values are compared if the code of one does not decide."""


@dataclass(frozen=True)
class Kernels:
    """Compiled functions of a block's rows, called without the interpreter's lock.

    All arrays are contiguous.  A row's cell may have any value where the row does not count.
    """

    total: Callable[..., int]  # ``total(counts, values)``: the sum of int32 values over the rows that count
    # ``add(counts, cells, values, sums)``: add these sums by cell to ``sums[:, 0]``, and the numbers of rows that count
    # to ``sums[:, 1]``
    add: Callable[..., None]
    count: Callable[..., None]  # ``count(counts, cells, ones)``: add the numbers of rows that count by cell to ``ones``
    # ``at_least(values, codes, least, code, wanted, out)``: whether each value is at least ``least``, if ``wanted`` is
    # true, otherwise whether it is less; see `dpnb._backends.memory.codes` for the codes
    at_least: Callable[..., None]


class _Compilation:
    """The compilation in this process.

    `thread` is None before `start`; `kernels` is None until the thread has ended, and after a failure.
    """

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.kernels: Kernels | None = None

    def start(self) -> None:
        """Start the thread; do nothing the second time."""
        is_on = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
        if self.thread is None and is_on and find_spec("numba") is not None:
            # Not a daemon: the interpreter must not exit while LLVM runs.
            self.thread = threading.Thread(target=self._compile, name=THREAD, daemon=False)
            with suppress(RuntimeError):  # the system has no more threads
                self.thread.start()

    def finish(self) -> None:
        """Wait until the thread has ended, for at most `WAIT_SECONDS`."""
        if self.thread is not None and self.thread.is_alive():
            self.thread.join(WAIT_SECONDS)

    def _compile(self) -> None:
        with suppress(Exception):  # a numba that does not work is as good as none
            self.kernels = _compiled()


_compilation = _Compilation()

if hasattr(os, "register_at_fork"):
    # A child would inherit the compiler's lock from a thread that it does not have, and wait for it forever.
    os.register_at_fork(before=_compilation.finish)


def start_compiling() -> None:
    """Compile the kernels in the background."""
    _compilation.start()


def kernels_for(*arrays: NDArray[Any]) -> Kernels | None:
    """The kernels if they are compiled and can take the arrays; otherwise None."""
    kernels = _compilation.kernels
    return kernels if kernels is not None and all(map(_is_plain, arrays)) else None


def _is_plain(array: NDArray[Any]) -> bool:
    return array.flags.c_contiguous and array.flags.aligned


def _compiled() -> Kernels | None:
    """Compile everything; None if the interpreter exits meanwhile."""
    import numba

    silence_thread(THREAD, "numba")

    def rows(kind: Any) -> Any:
        return numba.types.Array(numba.from_dtype(np.dtype(kind)), 1, "C", readonly=True)

    mask, values = rows(np.bool_), rows(np.int32)
    signatures: dict[Any, list[Any]] = {
        _total: [numba.int64(mask, values)],
        _add: [numba.void(mask, rows(kind), values, numba.int64[:, ::1]) for kind in CELLS],
        _count: [numba.void(mask, rows(kind), numba.int64[::1]) for kind in CELLS],
        _at_least: [
            numba.void(rows(np.float64), rows(np.int16), numba.float64, numba.int16, numba.boolean, numba.boolean[::1])
        ],
    }
    functions = []
    for function, types in signatures.items():
        compiled: Any = numba.njit(nogil=True)(function)
        for signature in types:
            if not threading.main_thread().is_alive():
                return None
            compiled.compile(signature)
        compiled.disable_compile()
        functions.append(compiled)
    return Kernels(*functions)


# Rows that do not count add zero, since a branch that is often mispredicted takes longer.


def _total(counts: Any, values: Any) -> Any:
    total = np.int64(0)
    for row in range(counts.size):
        total += values[row] if counts[row] else 0
    return total


def _add(counts: Any, cells: Any, values: Any, sums: Any) -> None:
    last = np.int64(len(sums) - 1)
    for row in range(counts.size):
        cell = min(max(np.int64(cells[row]), 0), last)
        one = np.int64(counts[row])
        sums[cell, 0] += values[row] * one
        sums[cell, 1] += one


def _count(counts: Any, cells: Any, ones: Any) -> None:
    last = np.int64(len(ones) - 1)
    for row in range(counts.size):
        ones[min(max(np.int64(cells[row]), 0), last)] += np.int64(counts[row])


def _at_least(values: Any, codes: Any, least: Any, code: Any, wanted: Any, out: Any) -> None:
    for start in range(0, codes.size, COMPARED):
        own, result = codes[start : start + COMPARED], out[start : start + COMPARED]
        equal = 0
        for row in range(own.size):  # over slices, which LLVM turns into instructions for several rows
            result[row] = (own[row] > code) == wanted
            equal += own[row] == code
        if equal:
            full = values[start : start + COMPARED]
            for row in range(own.size):
                result[row] = (full[row] >= least) == wanted


# --- exact sums of rows by cell ---------------------------------------------------------------------------------------


Mask = NDArray[np.bool_]

CHUNK = 2**21
"""Rows summed at a time.  A row's value is at most 2**32 in size, so a chunk's sums are at most 2**53: exact in float64
(which `numpy.bincount` uses).  Sums over chunks are exact in int64 for up to 2**31 rows."""


def sums_and_counts(
    values: NDArray[Any], cells: NDArray[Any] | None, counts: Mask, count: int
) -> tuple[Integers, Integers | None]:
    """The sums of `cell_sums`, and the numbers of rows that count by cell if the same pass yields them, else None."""
    usable = cells is not None and count > 0 and values.dtype == np.int32
    kernels = kernels_for(counts, cells, values) if usable and cells is not None else None
    if kernels is None:
        return cell_sums(values, cells, counts, count), None
    sums = np.zeros((count, 2), np.int64)
    kernels.add(counts, cells, values, sums)
    return sums[:, 0], sums[:, 1]


def cell_sums(values: NDArray[Any] | None, cells: NDArray[Any] | None, counts: Mask, count: int) -> Integers:
    """Exact sums of `values` (of ones for None) by cell over the rows that count, for up to 2**31 rows.

    Where rows count, values are less than 2**31 in size, and cells from 0 to ``count - 1``, of a type that holds
    ``count``; without `cells`, all are 0.
    """
    totals = np.zeros(count, np.int64)
    chunks = [slice(start, start + CHUNK) for start in range(0, len(counts), CHUNK)]
    if cells is None:
        if values is None:
            totals += np.count_nonzero(counts)
        elif values.dtype == np.int32 and (kernels := kernels_for(counts, values)) is not None:
            totals += kernels.total(counts, values)
        else:
            for part in chunks:
                totals += (values[part] * counts[part]).sum(dtype=np.int64)
    elif values is None and count and (kernels := kernels_for(counts, cells)) is not None:
        kernels.count(counts, cells, totals)
    else:
        for part in chunks:
            cell = (cells[part] + 1) * counts[part]  # 0 for rows that do not count
            weights = None if values is None else values[part]
            totals += np.bincount(cell, weights, minlength=count + 1)[1:].astype(np.int64)
    return totals
