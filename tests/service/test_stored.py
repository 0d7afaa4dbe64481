"""What an analyst adds to the ledger and to the memory of the service is limited; a full disk is a typed refusal."""

from __future__ import annotations

from contextlib import ExitStack, closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

import dpnb
from dpnb._request import Release
from dpnb._target import Target
from dpnb.interactive.sub_session import level_by, partition_request
from dpnb.service.configuration.settings import Limits
from dpnb.service.quotas import CHARGED, MB, NOT_CHARGED, StoredRows
from dpnb.service.served import Rules
from forked import ran
from service.served import Served, content, open_people, run_served
from service.test_connections import Service
from waiting import wait_until

PARTS = 5000
ROWS = pd.DataFrame({"age": [20 + i % 60 for i in range(300)], "k": [i % 7 for i in range(300)]})


def opened(folder: Path) -> dpnb.Session:
    schema = {"age": dpnb.Bounded(0, 100, integer=True), "k": dpnb.Bounded(0, PARTS - 1, integer=True)}
    return dpnb.Session(ROWS, name="people", budget=dpnb.Budget.gdp(1), schema=schema, ledger=folder / "people.dpnb")


def launch(served: Served, number: int) -> bytes:
    """A free partition of many parts."""
    request = partition_request(served.session._core, level_by("k"), f"n{number}", "", 1)
    return served.body(f"l{number}", request.stored)


def rules(**limits: Any) -> Rules:
    return Rules(Limits(**limits))


def test_an_analyst_stores_no_more_than_the_limit(tmp_path: Path) -> None:
    limits = Limits()

    async def scenario(served: Served) -> None:
        frame, target = served.session.frame, Target("mu", Fraction(1, 1000000))
        large = frame.groupby("k").size()
        refused = await served.post(served.body("a", Release(large.plan, large.view, target)))
        assert (refused.status_code, content(refused)["error"]) == (422, "StorageExceeded")
        assert "nothing was charged" in content(refused)["message"]
        assert served.charges == 0
        for number in range(100):  # the bound of one small answer is small
            reply = await served.post(served.count(f"c{number}", f"1/{1000 + number}", cell_id="c" * 100))
            if reply.status_code != 200:
                break
        assert content(reply)["error"] == "StorageExceeded"
        count = served.charges
        assert number == count
        assert (await served.post(served.count("c0", "1/1000", cell_id="c" * 100))).status_code == 200  # a repetition
        bob = served.of("bob")
        assert (await bob.post(served.count("b", "1/500"))).status_code == 200
        assert served.charges == count + 1
        again = StoredRows(served.session.ledger, limits)  # as after a restart
        assert again.room("ana", "release") < 2000 < again.room("bob", "release")

    object.__setattr__(limits, "stored_mb", 0.05)
    run_served(tmp_path, scenario, opened(tmp_path), rules=Rules(limits))


def test_free_launches_of_an_analyst_are_limited_by_their_bytes(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        codes = [(await served.post(launch(served, number))).status_code for number in range(40)]
        first = codes.index(422)
        assert codes == [200] * first + [422] * (40 - first)
        assert served.charges == first
        sizes = served.session.ledger.sizes(range(1, first + 1))
        assert 0.9 * MB < sum(sizes.values()) <= MB
        assert (await served.post(launch(served, 0))).status_code == 200  # the same launch again
        assert (await served.post(served.count("a"))).status_code == 200  # and other calls have their own limit
        assert (await served.of("bob").post(launch(served, 99))).status_code == 200

    run_served(tmp_path, scenario, opened(tmp_path), rules=rules(launches_mb=1))


# --- a full disk ----------------------------------------------------------------------------------------------------


def test_a_full_disk_says_that_nothing_was_charged_and_repeating_is_safe(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        file = served.session.ledger._file
        assert (await served.post(served.count("first"))).status_code == 200
        file.run(f"PRAGMA max_page_count = {file._pragma('page_count')}")
        texts, failed = [], []
        for number in range(60):
            before = served.charges
            reply = await served.post(served.count(f"r{number}", f"1/{1000 + number}"))
            if reply.status_code != 200:
                text = content(reply)["message"]
                assert content(reply)["error"] == "StorageFull"
                assert text == (NOT_CHARGED if served.charges == before else CHARGED)
                texts.append(text)
                failed.append(number)
        assert NOT_CHARGED in texts
        assert str(tmp_path) not in str(texts)
        file.run("PRAGMA max_page_count = 1000000")
        for number in failed:
            assert (await served.post(served.count(f"r{number}", f"1/{1000 + number}"))).status_code == 200
        assert served.charges == 61

    run_served(tmp_path, scenario, open_people(tmp_path / "people.dpnb"))


def test_an_answer_that_cannot_be_written_stays_charged_and_is_answered_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(served: Served) -> None:
        ledger = served.session.ledger
        with monkeypatch.context() as patched:

            def fill(*arguments: Any) -> bool:
                raise dpnb.errors.StorageFull("ledger: cannot be written")

            patched.setattr(ledger._file, "change", fill)
            reply = await served.post(served.count("a"))
            assert (reply.status_code, content(reply)["error"], content(reply)["message"]) == (
                *(500, "StorageFull"),
                CHARGED,
            )
            assert served.charges == 1
        assert (await served.post(served.count("a"))).status_code == 200
        assert served.charges == 1

    run_served(tmp_path, scenario)


def test_nothing_is_charged_below_the_reserve_of_the_disk(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        reply = await served.post(served.count("a"))
        assert (content(reply)["error"], content(reply)["message"]) == ("StorageFull", NOT_CHARGED)
        assert served.charges == 0

    run_served(tmp_path, scenario, rules=rules(disk_reserve_mb=10**9))


FILLED = """
import resource, sys
import pandas as pd
import dpnb

session = dpnb.Session(
    pd.DataFrame({"age": [40, 50]}), name="people", budget=dpnb.Budget.gdp(1),
    schema={"age": dpnb.Bounded(0, 100)}, ledger=sys.argv[1],
)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
for number in range(1000):
    before = session.ledger.count
    try:
        session.frame.count().release(mu=f"1/{1000 + number}")
    except dpnb.errors.StorageFull as error:
        print("nothing" if session.ledger.count == before else "charged", error)
        break
"""


def test_a_file_that_may_not_grow_is_a_typed_error_in_a_local_session(tmp_path: Path) -> None:
    exit_code, printed = ran(tmp_path, FILLED, str(tmp_path / "people.dpnb"))
    assert exit_code == 0
    assert printed.startswith(("nothing ledger", "charged ledger")), (tmp_path / "errors").read_text("utf-8")
    assert "cannot be written" in printed
    assert ("the charge stands" in printed) == printed.startswith("charged")


# --- replies that nobody reads --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.waits
def test_unread_replies_take_little_memory(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sixteen megabytes of rows, which 25 connections request and do not read."""
    folder = tmp_path_factory.mktemp("u")
    service = Service(folder)
    declaration = (folder / "people.toml").read_text()
    (folder / "people.toml").write_text(
        declaration + 'k = { type = "bounded", low = 0, high = 19999, integer = true }\n', "utf-8"
    )
    (folder / "people.csv").write_text("age,k\n3,1\n", "utf-8")
    session = dpnb.Session.from_toml(folder / "people.toml", pd.read_csv(folder / "people.csv"))
    for number in range(60):
        session.partition("k", max_parts_per_unit=1, name=f"n{number}")
    session.ledger.close()
    authorization = f"Authorization: Bearer {service.token}\r\n\r\n"
    request = "GET /v3/tables/people/rows?after=0 HTTP/1.1\r\nHost: localhost\r\n" + authorization
    with service.served("--restored", "WRITE_SECONDS=5") as process, ExitStack() as stack:
        with service.client() as client:
            rows = client.get("/v3/tables/people/rows?after=0").json()["rows"]
            assert 0 < len(rows) < 60  # as many as fit
        memory = psutil.Process(process.pid).memory_info
        before = memory().rss
        for _ in range(25):
            stack.enter_context(closing(service.connection())).sendall(request.encode())
        peak = 0

        def seen() -> bool:
            nonlocal peak
            peak = max(peak, memory().rss)
            return service.metric('dpnb_closed_connections_total{limit="write"') >= 2

        wait_until(seen, "unread replies to be closed")
        assert peak - before < 60 * MB
