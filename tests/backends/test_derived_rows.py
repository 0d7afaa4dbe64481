"""Joins and parts that are kept for the next query, while threads of a session use them."""

from __future__ import annotations

from functools import partial

import pytest

from dpnb._backends import protocol
from dpnb._backends.protocol import ChosenRows, SourceResolver, Windows
from dpnb._plan.plan import Join, PartSource, column
from threads import at_once


class Rows(SourceResolver[int]):
    """Tables, joins and parts that are numbers."""

    def _joined(self, left: int, right: int, source: Join) -> int:
        return left + right

    def _part(self, whole: int, source: PartSource) -> int:
        assert isinstance(source.key, int)
        return whole + source.key

    def _windowed(self, table: int, windows: Windows) -> int:
        raise NotImplementedError

    def _chosen(self, table: int, chosen: ChosenRows) -> int:
        raise NotImplementedError


@pytest.mark.usefixtures("many_switches")
def test_threads_that_use_and_forget_joins_and_parts_never_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked for after the charge, and a failure would show what other threads do."""
    monkeypatch.setattr(protocol, "MAX_DERIVED", 50)
    rows, pairs = Rows({"visits": 1, "drugs": 2}, {}, {}), Join("visits", "drugs")

    def use_all(first: int) -> None:
        for number in range(first, first + 1000):
            assert rows.rows(PartSource(pairs, column("x"), number)) == 3 + number

    assert at_once(*(partial(use_all, first) for first in (0, 50, 100, 150))) == []
