"""Who may do what: analysts, auditors, curators and the owner."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dpnb.curator.audit import audit
from dpnb.errors import AccessDenied, InvalidValueError
from dpnb.remote.channel import failure
from dpnb.service.access import tokens
from dpnb.service.access.tokens import Role, TokenStore, new_token, revoke_tokens
from dpnb.service.curation import rows as log_rows
from dpnb.service.network import reply_times
from service.served import Served, content, run_served
from waiting import LIMIT

FREEZE = b'{"act":"freeze","why":"an audit"}'
JSON = {"Content-Type": "application/json"}
ROUTES: dict[str, tuple[str, bytes, set[Role]]] = {
    "/v3/tables": ("GET", b"", {"analyst", "auditor", "curator", "owner"}),
    "/v3/tables/people": ("GET", b"", {"analyst"}),
    "/v3/tables/people/rows": ("GET", b"", {"analyst"}),
    "/v3/tables/people/requests": ("POST", b"", {"analyst"}),
    "/v3/tables/people/audit": ("GET", b"", {"auditor", "curator", "owner"}),
    "/v3/tables/people/state": ("GET", b"", {"auditor", "curator", "owner"}),
    "/v3/tables/people/plan": ("GET", b"", {"auditor", "curator", "owner"}),
    "/v3/tables/people/acts": ("POST", b'{"act":"unfreeze"}', {"curator", "owner"}),
    "/v3/tables/people/people": ("POST", b'{"act":"remove_analyst","name":"ana"}', {"curator", "owner"}),
}


def test_each_route_serves_its_roles(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        people = {role: new_token(served.tokens, f"a-{role}", role=role) for role in tokens.ROLES}
        paths = {route.path for route in served.service.app().routes}  # type: ignore[attr-defined]
        assert {path.replace("{table}", "people") for path in paths} - {"/v3/health"} == {
            *ROUTES,
            "/v3/tables/people/events",
        }
        for path, (method, body, roles) in ROUTES.items():
            for role, token in people.items():
                sent = served.count(f"{role}") if path.endswith("requests") else body
                headers = {"Authorization": f"Bearer {token}", **JSON}
                address = f"{path}?row=1" if path.endswith("plan") else path
                reply = await served.client.request(method, address, content=sent, headers=headers)
                done = 422 if path.endswith("/people/people") else 200  # the table has no parts
                assert reply.status_code == (done if role in roles else 403), (path, role, reply.content)
                if role not in roles:
                    error = failure("service", 403, reply.content)
                    assert isinstance(error, AccessDenied)
                    assert f"it has {role}" in str(error)

    run_served(tmp_path, scenario)


def test_a_person_has_one_role(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = new_token(path, "ana")
    with pytest.raises(InvalidValueError, match="role: 'ana' has a valid token with the role 'analyst'"):
        new_token(path, "ana", role="owner")
    revoke_tokens(path, "ana")
    owner = new_token(path, "ana", role="owner")
    store = TokenStore(path)
    assert store.identity(token) is None
    assert store.identity(owner) == tokens.Identity("ana", "owner")


def test_a_file_of_an_earlier_version_has_analysts(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = new_token(path, "ana")
    stored = json.loads(path.read_text("utf-8"))
    del stored["tokens"][0]["role"]
    path.write_text(json.dumps(stored), "utf-8")
    assert TokenStore(path).identity(token) == tokens.Identity("ana", "analyst")


def test_a_stream_ends_when_its_token_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_times, "POLL_SECONDS", 0.02)

    async def scenario(served: Served) -> None:
        token = new_token(served.tokens, "bob", expires="1h")
        store = served.service.tokens
        person = store.identity(token)
        assert person is not None
        stream = served.service.tables["people"].analyst("bob").feed.stream(lambda: store.identity(token) == person)
        assert b"data" in await anext(stream)
        later: datetime = tokens.now() + timedelta(hours=2)
        monkeypatch.setattr(tokens, "now", lambda: later)
        async with asyncio.timeout(LIMIT):
            rest = [event async for event in stream]
        assert all(event.startswith(b":") for event in rest)
        monkeypatch.undo()

    run_served(tmp_path, scenario)


def test_an_auditor_sees_what_was_asked_and_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(served: Served) -> None:
        auditor = served.of("eve", "auditor")
        df = served.session.frame
        await served.post(served.count("a"))
        scan = served.session.above_threshold(50, epsilon=0.05, name="scan")
        scan.ask(df.count())
        df.groupby("age", keys=[20, 30]).size().idxmax().release(epsilon=0.05)
        values = [row["result"] for row in served.session.ledger.stored(range(1, served.charges + 1))]
        secrets = [json.loads(str(value)) for value in values if value is not None]
        assert len(secrets) == 3
        page = content(await auditor.get("/v3/tables/people/audit"))
        assert [row["kind"] for row in page["rows"]] == ["release", "launch", "comparison", "close", "selection"]
        assert page["rows"][0]["words"] == "count of rows"
        assert page["rows"][0]["actor"] == "ana"
        text = json.dumps(page)
        assert not shown(secrets, text), text
        described = log_rows.words_of
        monkeypatch.setattr(
            log_rows,
            "words_of",
            lambda account, charge: f"{described(account, charge)} {charge.measurement} {charge.result}",
        )
        assert shown(secrets, (await auditor.get("/v3/tables/people/audit")).text)  # the control

    run_served(tmp_path, scenario)


def shown(secrets: list[Any], text: str) -> bool:
    noisy = secrets[0]["values"][0]
    return noisy in text or "above" in text.replace("above-threshold", "") or "largest'" in text


def test_pages_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rows, "MAX_ROWS", 2)

    async def scenario(served: Served) -> None:
        auditor = served.of("eve", "auditor")
        for number in range(5):
            await served.post(served.count(str(number), mu=f"1/{20 - number}"))
        rows, after, more = [], 0, True
        while more:
            page = content(await auditor.get(f"/v3/tables/people/audit?after={after}"))
            rows, more = rows + page["rows"], page["more"]
            after = rows[-1]["id"]
        assert [row["id"] for row in rows] == [1, 2, 3, 4, 5]
        assert rows[-1]["hash"] == served.session.ledger.head

    run_served(tmp_path, scenario)


def test_a_frozen_table_charges_nothing_and_keeps_what_is_recorded(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        curator = served.of("eve", "curator")
        path = "/v3/tables/people/acts"
        assert (await served.post(served.count("a"))).status_code == 200

        async def act(body: bytes) -> Any:
            return await served.client.post(path, content=body, headers={**curator.headers, **JSON})

        assert content(await act(FREEZE))["frozen"] == "an audit"
        charges = served.charges
        refused = content(await served.post(served.count("b", mu="1/2")))
        assert refused["error"] == "ChargesStopped"
        assert "frozen it (an audit)" in refused["message"]
        assert content(await served.post(served.count("a2")))["ids"] == [1]  # recorded, and free
        assert served.charges == charges
        assert (await act(FREEZE)).status_code == 200  # again: no further row
        assert served.charges == charges
        for wrong in (b'{"act":"freeze"}', b'{"act":"melt"}', b"[]", b'{"act":"freeze","why":"a","who":"b"}'):
            assert (await act(wrong)).status_code == 400
        for wrong in (b'{"act":"freeze","why":""}', b'{"act":"freeze","why":"a\\u001b[2J"}'):
            assert (await act(wrong)).status_code == 422
        assert content(await act(b'{"act":"unfreeze"}'))["frozen"] is None
        assert (await served.post(served.count("c", mu="1/3"))).status_code == 200

    run_served(tmp_path, scenario)
    result = audit(str(tmp_path / "people.dpnb"))
    assert result.is_fine, result.problems
