"""The faults of other systems: what they do is the control of each test, and the service does not do it.

A charge after the query; a preview computed from rows, uncharged; a user who is locked out when a request dies.  The
text of exceptions is in `test_app`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._backends.memory.memory_backend import MemoryBackend
from dpnb._core.execution import releases
from dpnb._core.execution.executor import LocalExecutor
from dpnb._request import Conditions, Release, SelectGroups
from dpnb._target import Target
from dpnb.ledger import Ledger
from dpnb.service.requests import RequestRunner
from service.served import Served, content, people, run_served

# --- charge, then read ------------------------------------------------------------------------------------------------


def uncharged_reads(folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """The reads of rows for which no charge without an answer is on disk, while requests of three kinds run."""
    found: list[str] = []
    sums = MemoryBackend.sums

    def watched(backend: MemoryBackend, query: Any) -> Any:
        copy = Ledger.read_only_copy(folder / "people.dpnb")  # what is found after a kill
        if not any(charge.status == "reserved" for charge in copy.charges()):
            found.append(query.plan.words)
        copy.close()
        return sums(backend, query)

    patch.setattr(MemoryBackend, "sums", watched)

    async def scenario(served: Served) -> None:
        frame = served.session.frame
        mean, sizes = frame["age"].mean(), frame.groupby(frame["age"] > 50).size()
        for body in (
            served.count("a"),
            served.body("b", Release(mean.plan, mean.view, Target("mu", Fraction(1, 20)))),
            served.body("c", SelectGroups(sizes.plan, 1, Fraction(1, 100))),
        ):
            assert (await served.post(body)).status_code == 200

    run_served(folder, scenario)
    return found


def test_a_charge_is_on_disk_before_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uncharged_reads(tmp_path, monkeypatch) == []


def test_a_service_that_charges_after_the_query_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = LocalExecutor.run

    def read_first(self: LocalExecutor, request: Any, *conditions: Any) -> Any:
        if isinstance(request, Release):
            self._tables.opened.sums(self._tables.compile(request.plan))
        return run(self, request, *conditions)

    monkeypatch.setattr(LocalExecutor, "run", read_first)
    assert uncharged_reads(tmp_path, monkeypatch) == ["count of rows", "mean of age"]


# --- previews without rows --------------------------------------------------------------------------------------------


def uncharged_bytes(folder: Path, n_rows: int) -> bytes:
    """Everything that an analyst receives without a charge, of a table with that many rows."""
    received: list[bytes] = []
    folder.mkdir()
    session = dpnb.Session(
        people()[:n_rows],
        name="people",
        budget=dpnb.Budget.gdp(1),
        schema={"age": dpnb.Bounded(0, 100, integer=True)},
        ledger=folder / "people.dpnb",
    )

    async def scenario(served: Served) -> None:
        for path in ("/v3/tables", "/v3/tables/people", "/v3/tables/people/rows?after=0"):
            received.append((await served.get(path)).content)
        query = served.session.frame.count()
        for number, (mu, conditions) in enumerate(
            (("3", None), ("1/10", Conditions(at_most=Fraction(1, 1000))), ("0", None))
        ):
            call = Release(query.plan, query.view, Target("mu", Fraction(mu)))
            reply = await served.post(served.body(str(number), call, conditions=conditions))
            assert reply.status_code in (400, 422)
            received.append(reply.content)
        assert served.charges == 0

    run_served(folder, scenario, session)
    return b"\n".join(received)


def test_what_is_free_is_the_same_without_one_row(tmp_path: Path) -> None:
    assert uncharged_bytes(tmp_path / "a", 300) == uncharged_bytes(tmp_path / "b", 299)


def test_an_uncharged_preview_on_the_data_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = RequestRunner._executed

    def with_fit(self: RequestRunner, *arguments: Any) -> Any:
        """As a system that computes the expected error from the rows."""
        done = failed(self, *arguments)
        session = self._table.session
        query = session._core.tables.compile(session.frame.count().plan)
        text = f"{done.refused.message}; {session._core.tables.opened.sums(query)[0]} rows"
        return type(done)(done.status, refused=type(done.refused)(done.refused.error, text))

    monkeypatch.setattr(RequestRunner, "_executed", with_fit)
    assert uncharged_bytes(tmp_path / "a", 300) != uncharged_bytes(tmp_path / "b", 299)


# --- nobody is locked out ---------------------------------------------------------------------------------------------


@contextmanager
def dying_once(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The next release dies after its charge."""
    with patch.context() as inside:

        def dying(*_: object, **__: object) -> None:
            raise SystemExit

        inside.setattr(releases, "measure", dying)
        yield


def statuses_after_a_death(folder: Path, patch: pytest.MonkeyPatch) -> list[int]:
    """The status of a request that dies, of another one, and of the first one sent again."""
    statuses: list[int] = []

    async def scenario(served: Served) -> None:
        with dying_once(patch):
            statuses.append((await served.post(served.count("a"))).status_code)
        statuses.append((await served.post(served.count("b", "1/5"))).status_code)
        again = await served.post(served.count("a"))
        statuses.append(again.status_code)
        if again.status_code == 200:
            assert content(again)["ids"] == [1]
            assert served.charges == 2

    run_served(folder, scenario)
    return statuses


def test_a_request_that_died_locks_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert statuses_after_a_death(tmp_path, monkeypatch) == [500, 200, 200]


def test_a_flag_that_stays_set_locks_the_analyst_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executed = RequestRunner._executed
    busy: list[str] = []

    def flagged(self: RequestRunner, request: Any, *others: Any) -> Any:
        if busy:
            return self._failed(RuntimeError("busy"), {})
        busy.append(request.id)
        done = executed(self, request, *others)
        if done.status == 200:  # it is cleared at the end of a request, which a dead one does not reach
            busy.clear()
        return done

    monkeypatch.setattr(RequestRunner, "_executed", flagged)
    assert statuses_after_a_death(tmp_path, monkeypatch) == [500, 500, 500]
