"""Fixed numeric settings for work on rows: an analyst's warning settings must not decide whether it fails.

``numpy.seterr(all="raise")`` or ``warnings.simplefilter("error")`` would turn an overflow in one row into an error, and
``numpy.seterr(all="print")`` would print a line for it in the notebook.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_lock = threading.RLock()
_inside: list[object] = []
_filters: list[warnings.catch_warnings[None]] = []
"""Restores the filters that were set before the first of several blocks; empty outside of them."""


@contextmanager
def isolated_numeric_settings() -> Iterator[None]:
    """Ignore warnings and floating-point errors during the block; also a decorator.

    Warning filters belong to the whole process, and blocks in several threads need not end in the order in which they
    began: work that an interrupt left behind ends later than the query.  So the first block sets the filters, and
    the last one to end restores them.
    """
    block = object()
    try:
        with _lock:
            _inside.append(block)
            if not _filters:
                before = warnings.catch_warnings()
                before.__enter__()
                _filters.append(before)
            warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            yield
    finally:
        with _lock:
            if block in _inside:  # an interrupt may come before it was added
                _inside.remove(block)
            if _filters and not _inside:
                _filters.pop().__exit__(None, None, None)
