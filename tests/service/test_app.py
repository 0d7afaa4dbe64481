"""The routes of the service: who gets in, what is charged once, and what a reply may say."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.errors import DpnbError, RequestError, ServiceError
from dpnb.interactive import calls
from dpnb.ledger.shared_rows import SharedRows
from dpnb.remote.channel import failure
from dpnb.service import requests as service_requests
from dpnb.service.access.tokens import revoke_tokens
from dpnb.service.monitoring import set_up_log
from dpnb.service.network import reply_times
from dpnb.service.network.reply_times import ChangeFeed
from dpnb.wire.limits import MAX_BODY
from service.served import REQUESTS, SECRET, Served, content, open_people, run_served
from waiting import LIMIT

ROUTES = [
    "/v3/tables",
    *(f"/v3/tables/people{path}" for path in ("", "/rows", "/events", "/audit", "/plan", "/state")),
]

POSTED = [REQUESTS, "/v3/tables/people/acts", "/v3/tables/people/people"]


def test_every_route_but_health_needs_a_token(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        assert content(await served.client.get("/v3/health")) == {"status": "ok", "version": 3}
        for given in ({}, {"Authorization": "Bearer dpnb_wrong"}, {"Authorization": f"Basic {served.token}"}):
            for path in ROUTES:
                assert (await served.client.get(path, headers=given)).status_code == 401
            for path in POSTED:
                reply = await served.client.post(path, content=served.count("a"), headers=given)
                assert reply.status_code == 401
        assert served.charges == 0
        assert (await served.post(served.count("a"))).status_code == 200
        assert content(await served.get("/v3/tables")) == ["people"]
        assert (await served.get("/v3/tables/others")).status_code == 404

    run_served(tmp_path, scenario)


def test_another_version_is_told_from_a_table_that_is_not_there(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        for path, kind in (("/v2/tables", ServiceError), ("/v3/tables/others", RequestError)):
            reply = await served.get(path)
            error = failure("service", reply.status_code, reply.content)
            assert type(error) is kind
            assert ("another version" in str(error)) == (kind is ServiceError)

    run_served(tmp_path, scenario)


def test_every_route_of_the_application_is_tested_for_a_token(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        paths = {route.path.replace("{table}", "people") for route in served.service.app().routes}  # type: ignore[attr-defined]
        assert paths == {*ROUTES, *POSTED, "/v3/health"}

    run_served(tmp_path, scenario)


def test_a_request_is_charged_and_answered_once(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        body = served.count("a")
        first, again = content(await served.post(body)), content(await served.post(body))
        assert first == again
        assert first["ids"] == [1]
        (row,) = first["rows"]["rows"]
        assert row["values"]["status"] == "released"
        assert not {"hash", "result_hash", "request_id", "request_digest"} & row["values"].keys()
        assert served.charges == 1
        origin = served.session.ledger.by_id((1,))[0].origin
        assert origin is not None
        assert (origin.actor, origin.id) == ("ana", "a")
        other_rows = await served.post(served.count("a", after=1))  # the client has received the row meanwhile
        assert content(other_rows) == {"reply": "done", "ids": [1], "rows": {}}

    run_served(tmp_path, scenario)


def test_requests_that_are_sent_at_once_are_one_charge(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        replies = await asyncio.gather(*(served.post(served.count("a")) for _ in range(8)))
        assert len({reply.content for reply in replies}) == 1
        assert served.charges == 1

    run_served(tmp_path, scenario)


def test_an_id_belongs_to_one_call_also_after_a_restart(tmp_path: Path) -> None:
    async def first(served: Served) -> None:
        assert (await served.post(served.count("a"))).status_code == 200
        assert (await served.post(served.count("a", mu="1/5"))).status_code == 409
        assert served.charges == 1

    async def second(served: Served) -> None:
        assert (await served.post(served.count("a", mu="1/5"))).status_code == 409
        assert content(await served.post(served.count("a")))["ids"] == [1]
        assert served.charges == 1
        assert (await served.post(served.count("b", mu="1/5"))).status_code == 200  # control: another id is charged
        assert served.charges == 2

    run_served(tmp_path, first)
    (tmp_path / "tokens.json").unlink()
    run_served(tmp_path, second)


def test_a_revoked_token_stops_before_the_next_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a request that waits behind another one."""
    entered, leave = threading.Event(), threading.Event()
    execute = calls.execute

    def slow(*arguments: Any) -> tuple[int, ...]:
        entered.set()
        assert leave.wait(LIMIT)
        return execute(*arguments)

    async def scenario(served: Served) -> None:
        monkeypatch.setattr(service_requests, "execute", slow)
        first = asyncio.create_task(served.post(served.count("a")))
        await asyncio.to_thread(entered.wait, LIMIT)
        waiting = asyncio.create_task(served.post(served.count("b", mu="1/5")))
        assert (await served.get("/v3/tables")).status_code == 200  # other routes answer meanwhile
        while len(served.service.tables["people"].analyst("ana").runner._running) < 2:
            await asyncio.sleep(0)
        revoke_tokens(served.tokens, "ana")
        leave.set()
        assert (await first).status_code == 200  # it was running
        assert (await waiting).status_code == 401
        assert served.charges == 1
        assert (await served.post(served.count("c"))).status_code == 401

    run_served(tmp_path, scenario)


BODIES = {
    "nothing": (b"", 400),
    "no JSON": (b"{", 400),
    "unknown fields": (b'{"id": "a", "request": {"request": "close", "name": "a"}, "sql": 1}', 400),
    "a pickle": (b"\x80\x04K\x01.", 400),
    "too large": (b" " * (MAX_BODY + 1), 413),
    "too deep": (b"[" * 100_000, 400),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_is_no_request_is_refused_by_type(tmp_path: Path, case: str) -> None:
    body, status = BODIES[case]

    async def scenario(served: Served) -> None:
        reply = await served.post(body)
        assert reply.status_code == status
        assert content(reply)["error"] == "RequestError"
        assert served.charges == 0

    run_served(tmp_path, scenario)


def test_other_types_and_compression_are_refused(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        body = served.count("a")
        assert (await served.post(body, **{"Content-Type": "text/plain"})).status_code == 415
        assert (await served.post(body, **{"Content-Encoding": "gzip"})).status_code == 415
        for query in ("after=-1", "after=1,2", "pending=x", f"after={'9' * 50}"):
            assert (await served.get(f"/v3/tables/people/rows?{query}")).status_code == 400
        assert served.charges == 0

    run_served(tmp_path, scenario)


def test_a_client_that_leaves_while_it_sends_a_body_is_no_error(tmp_path: Path) -> None:
    """Otherwise every one of them would be a traceback in the log."""
    sent: list[Any] = []

    async def leave() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def keep(message: Any) -> None:
        sent.append(message)

    async def scenario(served: Served) -> None:
        headers = {"Host": "localhost", "Content-Type": "application/json", **served.headers}
        scope = {
            **{"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "root_path": ""},
            **{"path": REQUESTS, "raw_path": REQUESTS.encode(), "query_string": b"", "state": {}},
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
        }
        await served.service.app()(scope, leave, keep)
        assert (sent[0]["status"], served.charges) == (400, 0)

    run_served(tmp_path, scenario)


def test_a_page_of_another_name_is_refused(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        assert (await served.get("/v3/tables", Host="evil.example:8443")).status_code == 400
        assert (await served.get("/v3/tables", Host="dp.local:8443")).status_code == 200

    run_served(tmp_path, scenario, hosts=("dp.local", "localhost"))


def test_refusals_have_the_type_and_the_text_of_a_local_session(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        refused = await served.post(served.count("a", mu="50"))
        assert refused.status_code == 422
        local = open_people(":memory:")
        with pytest.raises(dpnb.errors.BudgetExceeded) as error:
            local.frame.count().release(mu=50)
        assert content(refused)["error"] == "BudgetExceeded"
        assert content(refused)["message"] == str(error.value)
        assert served.charges == 0

    run_served(tmp_path, scenario)


def failing_reply(folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> tuple[int, bytes, str]:
    """Status, reply and log of a request whose execution raises."""
    replies: list[tuple[int, bytes]] = []
    folder.mkdir()
    set_up_log(folder / "service.log")

    def fail(*_: object) -> tuple[int, ...]:
        raise error

    async def scenario(served: Served) -> None:
        monkeypatch.setattr(service_requests, "execute", fail)
        reply = await served.post(served.count("a"))
        replies.append((reply.status_code, reply.content))

    try:
        run_served(folder, scenario)
    finally:
        set_up_log(None)
    return *replies[0], (folder / "service.log").read_text("utf-8")


@pytest.mark.parametrize("error", [ValueError(SECRET), KeyError(SECRET), SystemExit(SECRET), MemoryError(SECRET)])
def test_an_unforeseen_error_shows_a_number_and_its_details_have_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    status, reply, log = failing_reply(tmp_path / "a", monkeypatch, error)
    assert status == 500
    text = b"failed, number 1; the curator's log has the details"
    assert reply == b'{"reply":"refused","error":"ServiceError","message":"' + text + b'","rows":{}}'
    assert SECRET not in log
    failed = [line for line in map(json.loads, log.splitlines()) if line["event"] == "failed"]
    assert [line["number"] for line in failed] == [1]
    assert failed[0]["error"]["type"] == type(error).__name__
    assert any("test_app.py" in place for place in failed[0]["error"]["where"])


def test_errors_that_name_the_curators_files_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = dpnb.errors.LedgerError("ledger '/srv/secret/people.dpnb': cannot be used (disk full)")
    status, reply, log = failing_reply(tmp_path / "a", monkeypatch, error)
    assert status == 500
    assert b"/srv" not in reply
    assert "disk full" in log


def test_a_service_that_shows_exceptions_would_fail_these_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_requests, "TYPED", (Exception,))
    _, reply, _ = failing_reply(tmp_path / "a", monkeypatch, ValueError(SECRET))
    assert SECRET.encode() in reply


def test_the_log_has_who_what_and_the_cost_but_no_value(tmp_path: Path) -> None:
    set_up_log(tmp_path / "service.log")
    seen: list[str] = []

    async def scenario(served: Served) -> None:
        (row,) = content(await served.post(served.count("a", cell_id="c7")))["rows"]["rows"]
        seen.extend([served.token, str(row["values"]["result"])])
        await served.post(b"{")
        await served.client.get("/v3/tables", headers={"Authorization": "Bearer dpnb_wrong"})

    try:
        run_served(tmp_path, scenario)
    finally:
        set_up_log(None)
    text = (tmp_path / "service.log").read_text("utf-8")
    done, refused = map(json.loads, text.splitlines())
    assert (done["event"], done["actor"], done["table"], done["call"], done["rows"]) == (
        *("done", "ana", "people", "release"),
        [1],
    )
    assert done["cost"][0]["mu_squared"] == "1/100"
    assert refused["event"] == "refused"
    logins = (tmp_path / "service-refused.log").read_text("utf-8")
    assert "login_refused" in logins
    for secret in (*seen, "dpnb_wrong", SECRET):
        assert secret not in text + logins
    assert not json.loads(seen[1])["values"] or str(json.loads(seen[1])["values"][0]) not in text


def test_a_failed_read_says_the_same_for_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the charge the reply is constant, and the charge can be taken up."""

    async def scenario(served: Served) -> None:
        backend = served.session._core.tables.opened
        with monkeypatch.context() as patched:

            def fail(query: object) -> object:
                raise ValueError(SECRET)

            patched.setattr(type(backend), "sums", lambda self, query: fail(query))
            reply = await served.post(served.count("a"))
        assert reply.status_code == 500
        assert SECRET.encode() not in reply.content
        assert content(reply)["error"] == "ExecutionError"
        assert content(reply)["rows"]["rows"][0]["values"]["status"] == "failed"
        assert served.charges == 1
        again = content(await served.post(served.count("a")))
        assert again["rows"]["rows"][0]["values"]["status"] == "released"
        assert served.charges == 1

    run_served(tmp_path, scenario)


def test_a_feed_sends_the_state_and_each_change_and_ends(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        feed: ChangeFeed = served.service.tables["people"].analyst("ana").feed
        streams = [feed.stream(lambda: True) for _ in range(3)]
        for stream in streams:
            assert await anext(stream) == b'data: {"rows":0,"answered":0}\n\n'
        await served.post(served.count("a"))
        for stream in streams:
            async for event in stream:
                if event == b'data: {"rows":1,"answered":1}\n\n':
                    break
        await streams[0].aclose()  # type: ignore[attr-defined]
        assert feed.streams == 2
        feed.end()
        for stream in streams[1:]:
            assert [event async for event in stream] == []
        assert feed.streams == 0

    run_served(tmp_path, scenario)


def test_a_feed_ends_when_the_token_is_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_times, "POLL_SECONDS", 0.02)

    async def scenario(served: Served) -> None:
        feed = served.service.tables["people"].analyst("ana").feed
        stream = feed.stream(lambda: served.service.tables["people"].table.name == "people" and not revoked)
        await anext(stream)
        revoked.append(True)
        assert [event async for event in stream] == []

    revoked: list[bool] = []
    run_served(tmp_path, scenario)


def test_a_charge_of_another_process_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_times, "POLL_SECONDS", 0.02)

    async def scenario(served: Served) -> None:
        stream = served.service.tables["people"].analyst("ana").feed.stream(lambda: True)
        await anext(stream)
        other = open_people(tmp_path / "people.dpnb")
        other.frame.count().release(mu=0.1)
        other.ledger.close()
        assert await anext(stream) == b'data: {"rows":1,"answered":1}\n\n'
        await stream.aclose()  # type: ignore[attr-defined]

    run_served(tmp_path, scenario)


def test_a_ledger_has_one_service(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        (tmp_path / "link.dpnb").symlink_to(tmp_path / "people.dpnb")
        for name in ("people.dpnb", "link.dpnb"):
            with pytest.raises(DpnbError, match="used by another service"):
                run_in_thread(tmp_path / name)

    def run_in_thread(path: Path) -> None:
        from dpnb.service.configuration.settings import TableSettings
        from dpnb.service.opening import OpenTable

        session = open_people(path)
        try:
            OpenTable(TableSettings("people", "here"), session)
        finally:
            session.ledger.close()

    run_served(tmp_path, scenario)


def test_a_ledger_in_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpnbError, match="a restart of the service would forget the charges"):
        run_served(tmp_path, lambda served: asyncio.sleep(0), session=open_people(":memory:"))


@pytest.mark.parametrize("known", [0, 1])
def test_a_row_that_is_written_while_rows_are_read_is_not_announced_without_being_sent(
    known: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = SharedRows.after

    async def scenario(served: Served) -> None:
        served.session.frame.count().release(mu=0.1)

        def after(rows: SharedRows, number: int, limit: int) -> Any:
            found = read(rows, number, limit)
            served.session.frame.count().release(mu=0.2)  # another analyst's, in the meantime
            return found

        monkeypatch.setattr(SharedRows, "after", after)
        reply = (await served.get(f"/v3/tables/people/rows?after={known}&pending=")).json()
        assert (len(reply.get("rows", [])), reply.get("more", False)) == (1 - known, False)

    run_served(tmp_path, scenario)
