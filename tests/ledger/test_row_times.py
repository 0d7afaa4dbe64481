"""Time never goes behind the rows of a ledger, and in a reserved part behind those of this part alone."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dpnb.accounting.losses import GDP
from dpnb.ledger import Ledger, node_of, row_times
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.ledger.row_times import RowTimes
from ledger.rows import METADATA, opened, reserve

START = datetime(2026, 11, 24, 12, tzinfo=UTC)


class Clock(datetime):
    """A clock that a test moves."""

    moment = START

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return cls.moment


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    monkeypatch.setattr(row_times, "datetime", Clock)
    monkeypatch.setattr(Clock, "moment", START)
    return Clock


def free(ledger: Ledger, key: str, kind: str, **changes: Any) -> Any:
    nothing = {"request": "", "sigma": None, "tau": None, "loss": GDP(0), "total_loss": GDP(0)}
    return reserve(ledger, key, kind=kind, **{**nothing, **changes})


def grant(ledger: Ledger, name: str, mode: str = "reserved") -> str:
    return node_of(free(ledger, name, "grant", launch={"grant": "analyst", "name": name, "mode": mode}).id)


def test_a_row_is_not_older_than_the_row_before(path: Path, clock: type[Clock]) -> None:
    with opened(path) as ledger:
        first = reserve(ledger, "a")
        clock.moment -= timedelta(days=3)
        assert ledger.time_in() == first.time
        assert [reserve(ledger, key).time for key in "bc"] == [first.time] * 2
        received = RequestOrigin("ana", received=clock.moment)
        with requested_by(received):
            assert reserve(ledger, "d").time == first.time
    clock.moment += timedelta(days=1)
    with opened(path) as ledger:  # after a restart, still two days behind
        assert reserve(ledger, "e").time == first.time
        clock.moment += timedelta(days=2, seconds=1)
        assert reserve(ledger, "f").time > first.time


def test_another_kernel_counts_too(path: Path, clock: type[Clock]) -> None:
    with opened(path) as one, opened(path) as other:
        clock.moment += timedelta(hours=1)
        time = reserve(one, "a").time
        clock.moment -= timedelta(hours=1)
        assert reserve(other, "b").time == time


def test_a_request_has_the_time_at_which_it_was_received(clock: type[Clock]) -> None:
    """Not that of its charge, which would tell when the requests before it ended."""
    with closing(Ledger(":memory:", METADATA)) as ledger:
        reserve(ledger, "a")
        received = clock.moment + timedelta(seconds=1)
        clock.moment += timedelta(seconds=9)
        with requested_by(RequestOrigin("ana", received=received)):
            assert reserve(ledger, "b").time == "2026-11-24T12:00:01.000Z"


def test_the_time_in_a_reserved_part_does_not_depend_on_others(clock: type[Clock]) -> None:
    """The control: outside the parts, and in pooled mode, it does."""
    with closing(Ledger(":memory:", METADATA)) as ledger:
        ana, bob, carl = grant(ledger, "ana"), grant(ledger, "bob"), grant(ledger, "carl", "pooled")
        launch = free(ledger, "l", "launch", node=ana, launch={"mechanism": "partition", "name": "a"})
        part, own = node_of(launch.id, ("x",)), reserve(ledger, "own", node=ana).time
        clock.moment += timedelta(hours=2)
        late = reserve(ledger, "bob's", node=bob).time
        clock.moment -= timedelta(hours=3)
        assert ledger.time_in(ana) == ledger.time_in(part) == own
        assert [reserve(ledger, "mine", node=ana).time, reserve(ledger, "part", node=part).time] == [own, own]
        assert ledger.time_in(bob) == ledger.time_in("") == ledger.time_in(carl) == late
        assert reserve(ledger, "all", node="").time == late
        assert ledger.time_in(ana) == own
        clock.moment += timedelta(hours=2)  # later than ana's own rows, earlier than bob's
        assert own < ledger.time_in(ana) < late


def test_a_transaction_that_is_rolled_back_leaves_no_time(clock: type[Clock]) -> None:
    with closing(Ledger(":memory:", METADATA)) as ledger:
        reserve(ledger, "a")
        before = ledger.time_in()
        clock.moment += timedelta(hours=1)
        with suppress(ZeroDivisionError), ledger.transaction():
            late = ledger.reserve(request_key="b", table_version="1", query_key="q", loss=GDP(0))
            assert late.time > before
            raise ZeroDivisionError
        clock.moment -= timedelta(hours=1)
        assert ledger.time_in() == before


def test_the_latest_time_counts_where_earlier_versions_wrote_falling_ones() -> None:
    with closing(Ledger(":memory:", METADATA)) as ledger:
        for key in "abc":
            reserve(ledger, key)
        times = RowTimes()
        for one, time in zip(ledger.summaries(), ("2026-01-02", "2026-01-09", "2026-01-05"), strict=True):
            times.add(one, time)
        assert times.latest("") == "2026-01-09"
