"""Identities from JupyterHub: which tokens it accepts, for how long, and what a Hub that fails or lies can do."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpnb.errors import AccessDenied, ServiceUnavailable
from dpnb.service.access import identities as module
from dpnb.service.access.identities import CACHE_SECONDS, MAX_WAITING, PAUSE_SECONDS, HubIdentities, Identities
from dpnb.service.access.tokens import Identity, TokenStore, new_token, revoke_tokens
from dpnb.service.configuration.settings import HubSettings
from service.served import Served, content, run_in_loop, run_served
from waiting import LIMIT

SETTINGS = HubSettings("http://127.0.0.1:8081/hub/api")
ACCESS, CURATE = SETTINGS.access_scope, SETTINGS.curator_scope
TOKEN = "bdc0288e00254fdfb7a6e31b89cb957a"
IDENTIFYING = ["read:users:name!user=ana", "read:users:groups!user=ana"]


def streamed(reply: httpx.Response) -> httpx.Response:
    """A reply whose content arrives in parts, as from a network, and can be read as a stream."""
    return httpx.Response(reply.status_code, content=iter([reply.content[:100], reply.content[100:]]))


class FakeHub:
    """The one address of the Hub's API that the service uses, without a network."""

    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.time = 1000.0
        self.reply: Callable[[httpx.Request], httpx.Response] | None = None
        self.grant(TOKEN, "ana")

    def grant(self, token: str, name: str, *scopes: str, kind: str = "user") -> None:
        given = [*(scopes or (ACCESS,)), *IDENTIFYING]
        self.users[token] = {"kind": kind, "name": name, "scopes": given, "admin": False, "groups": ["analysts"]}

    def handle(self, request: httpx.Request) -> httpx.Response:
        assert str(request.url) == f"{SETTINGS.api_url}/user"
        scheme, _, token = request.headers["Authorization"].partition(" ")
        assert scheme == "Bearer"
        self.asked.append(token)
        if self.reply is not None:
            reply = self.reply(request)
        else:
            reply = httpx.Response(200, json=self.users[token]) if token in self.users else httpx.Response(403, json={})
        return streamed(reply) if reply.is_closed else reply

    @contextmanager
    def identities(self) -> Iterator[HubIdentities]:
        found = HubIdentities(SETTINGS, httpx.MockTransport(self.handle), lambda: self.time)
        try:
            yield found
        finally:
            found.close()


@pytest.fixture
def fake() -> FakeHub:
    return FakeHub()


def ask(fake: FakeHub, token: str = TOKEN) -> Identity | None:
    with fake.identities() as hub:
        return hub.ask(token)


def test_a_token_with_the_scope_is_the_users(fake: FakeHub) -> None:
    assert ask(fake) == Identity("ana", "analyst")
    assert ask(fake, "0" * 32) is None


@pytest.mark.parametrize(
    "scopes",
    [
        ("access:services!service=other",),
        ("access:services!service=dpnb2",),
        ("access:services!server=dpnb",),
        ("ACCESS:SERVICES!SERVICE=DPNB",),
        ("access:services",),  # of an administrator: the token can do more than a service should be able to
        ("self", "inherit", "admin:users"),
        (CURATE,),
    ],
)
def test_other_scopes_give_no_access(fake: FakeHub, scopes: tuple[str, ...]) -> None:
    fake.grant(TOKEN, "ana", *scopes)
    with pytest.raises(AccessDenied, match=f"must have the scope '{ACCESS}'"):
        ask(fake)


def test_the_token_of_another_service_is_refused(fake: FakeHub) -> None:
    fake.grant(TOKEN, "ana", ACCESS, kind="service")
    with pytest.raises(AccessDenied, match="it is a service's"):
        ask(fake)


@pytest.mark.parametrize(
    "name", ["", "(settings)", "ana b", "ana\n", "ána", "аna", "ana/../bob", "-ana", "a" * 500, "<b>ana</b>"]
)
def test_a_name_that_could_be_taken_for_another_is_refused(fake: FakeHub, name: str) -> None:
    fake.grant(TOKEN, name)
    with pytest.raises(AccessDenied, match="name: that of the user of JupyterHub must be") as refused:
        ask(fake)
    assert not name or name not in str(refused.value)


def test_the_curators_scope_makes_a_curator_with_the_other_only(fake: FakeHub) -> None:
    fake.grant(TOKEN, "cora", ACCESS, CURATE)
    assert ask(fake) == Identity("cora", "curator")
    for almost in ("custom:dpnb:curat", "custom:dpnb:curate:more", "custom:other:curate", "custom:*"):
        fake.grant(TOKEN, "ana", ACCESS, almost)
        assert ask(fake) == Identity("ana", "analyst")


def huge(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"kind": "user", "name": "ana", "scopes": [ACCESS], "more": "x" * module.MAX_REPLY})


def refuses(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("Connection refused")


def slow(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("timed out")


def status(code: int, **more: Any) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(code, **more)


FAILURES = {
    "down": refuses,
    "slow": slow,
    "too large": huge,
    "failing": status(500),
    "starting": status(503),
    "too many requests": status(429),
    "elsewhere": status(302, headers={"Location": "http://127.0.0.1:9/"}),
    "a page": status(200, text="<html>"),
    "nested": status(200, content=b"[" * 100_000),
    "no name": status(200, json={"kind": "user", "scopes": [ACCESS]}),
    "scopes as a text": status(200, json={"kind": "user", "name": "ana", "scopes": ACCESS}),
    "no scopes": status(200, json={"kind": "user", "name": "ana"}),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_hub_that_fails_identifies_nobody_and_is_left_alone_for_a_while(fake: FakeHub, case: str) -> None:
    fake.reply = FAILURES[case]
    with fake.identities() as hub:
        for _ in range(3):
            with pytest.raises(ServiceUnavailable, match="nothing was charged"):
                hub.ask(TOKEN)
        assert len(fake.asked) == 1
        fake.reply = None
        fake.time += PAUSE_SECONDS
        assert hub.ask(TOKEN) == Identity("ana", "analyst")


def test_a_reply_that_arrives_in_drops_ends_at_the_limit(fake: FakeHub) -> None:
    def drops() -> Iterator[bytes]:
        while True:
            fake.time += 1
            yield b" "

    fake.reply = status(200, content=drops())
    before = fake.time
    with pytest.raises(ServiceUnavailable):
        ask(fake)
    assert fake.time - before <= module.REPLY_SECONDS + 2


def test_a_reply_is_used_for_a_limited_time_and_never_for_a_charge(fake: FakeHub) -> None:
    async def scenario() -> None:
        with fake.identities() as hub:
            for _ in range(3):
                assert await hub.find(TOKEN) == Identity("ana", "analyst")
            assert len(fake.asked) == 1
            del fake.users[TOKEN]  # revoked, or expired
            assert await hub.find(TOKEN) == Identity("ana", "analyst")
            fake.time += CACHE_SECONDS + 1
            assert await hub.find(TOKEN) is None
            fake.grant(TOKEN, "ana")
            fake.time += CACHE_SECONDS + 1
            assert await hub.find(TOKEN) is not None
            del fake.users[TOKEN]
            assert hub.ask(TOKEN) is None  # just before the charge
            assert await hub.find(TOKEN) is None

    run_in_loop(scenario())


def test_a_stream_ends_when_the_hub_has_not_confirmed_its_token(fake: FakeHub) -> None:
    with fake.identities() as hub:
        assert hub.last_known(TOKEN) is None
        assert hub.ask(TOKEN) is not None
        fake.reply = refuses
        fake.time += CACHE_SECONDS + 1
        assert hub.last_known(TOKEN) == Identity("ana", "analyst")  # meanwhile the Hub is asked in a thread
        hub._threads.shutdown(wait=True)
        assert len(fake.asked) == 2
        fake.time += CACHE_SECONDS
        assert hub.last_known(TOKEN) is None


def test_invented_tokens_do_not_flood_the_hub(fake: FakeHub) -> None:
    """Attack: many tokens at once, while the Hub is slow."""
    may_reply = threading.Event()

    def waits(request: httpx.Request) -> httpx.Response:
        may_reply.wait(LIMIT)
        return httpx.Response(403)

    async def scenario() -> None:
        fake.reply = waits
        with fake.identities() as hub:
            first = [asyncio.create_task(hub.find(f"invented-{number}")) for number in range(MAX_WAITING)]
            await asyncio.sleep(0)
            with pytest.raises(ServiceUnavailable):
                await hub.find("one-more-token")
            for text in ("", "short", "a b c d e f g h", "x" * 300, "töken-token"):
                assert await hub.find(text) is None  # such a token cannot be one of the Hub's
            assert len(fake.asked) <= module.THREADS
            may_reply.set()
            assert await asyncio.gather(*first) == [None] * MAX_WAITING

    run_in_loop(scenario())


def test_a_token_that_was_valid_before_does_not_wait_for_invented_ones(fake: FakeHub) -> None:
    may_reply = threading.Event()

    def waits(request: httpx.Request) -> httpx.Response:
        if request.headers["Authorization"].endswith(TOKEN):
            return httpx.Response(200, json=fake.users[TOKEN])
        may_reply.wait(LIMIT)
        return httpx.Response(403)

    async def scenario() -> None:
        with fake.identities() as hub:
            assert await hub.find(TOKEN) == Identity("ana", "analyst")
            fake.reply, fake.time = waits, fake.time + CACHE_SECONDS + 1
            first = [asyncio.create_task(hub.find(f"invented-{number}")) for number in range(MAX_WAITING)]
            await asyncio.sleep(0)
            assert await asyncio.wait_for(hub.find(TOKEN), LIMIT) == Identity("ana", "analyst")
            assert fake.asked.count(TOKEN) == 2
            may_reply.set()
            await asyncio.gather(*first)

    run_in_loop(scenario())


def test_the_hub_never_sees_a_token_of_the_service(fake: FakeHub, tmp_path: Path) -> None:
    token = new_token(tmp_path / "tokens.json", "ana")
    revoke_tokens(tmp_path / "tokens.json", "ana")
    with fake.identities() as hub:
        identities = Identities(TokenStore(tmp_path / "tokens.json"), hub)
        assert run_in_loop(identities.find(token)) is None
        assert not identities.confirm(token, Identity("ana", "analyst"))
        assert not identities.last_known(token, Identity("ana", "analyst"))
    assert fake.asked == []


def test_without_a_hub_only_tokens_of_the_service_are_valid(tmp_path: Path) -> None:
    token = new_token(tmp_path / "tokens.json", "ana")
    identities = Identities(TokenStore(tmp_path / "tokens.json"))
    assert run_in_loop(identities.find(token)) == Identity("ana", "analyst")
    assert run_in_loop(identities.find(TOKEN)) is None


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_user_of_the_hub_does_not_get_another_role_than_the_curator_has_given(
    is_broken: bool, fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: an administrator of the Hub makes a curator of an analyst, or takes the name of an auditor."""
    if is_broken:  # control
        monkeypatch.setattr(TokenStore, "role_of", lambda self, name: None)
    file = tmp_path / "tokens.json"
    new_token(file, "ana")
    new_token(file, "aud", role="auditor")
    fake.grant(TOKEN, "ana", ACCESS, CURATE)
    fake.grant("1" * 32, "aud")
    with fake.identities() as hub:
        identities = Identities(TokenStore(file), hub)
        for token in (TOKEN, "1" * 32):
            if is_broken:
                assert run_in_loop(identities.find(token)) is not None
                continue
            with pytest.raises(AccessDenied, match="a person has one role"):
                run_in_loop(identities.find(token))
        fake.grant("2" * 32, "ana")
        assert run_in_loop(identities.find("2" * 32)) == Identity("ana", "analyst")  # the same person, the same role
        revoke_tokens(file, "aud")
        assert run_in_loop(identities.find("1" * 32)) == Identity("aud", "analyst")


# --- in the service -----------------------------------------------------------------------------------------------


def served(fake: FakeHub, folder: Path, scenario: Any, **options: Any) -> None:
    with fake.identities() as hub:
        run_served(folder, scenario, hub=hub, **options)


class AsUser(Served):
    """The service, with a token of the Hub."""

    def __init__(self, other: Served, token: str = TOKEN) -> None:
        self.tokens, self.client, self.service, self.token = other.tokens, other.client, other.service, token


def test_a_user_of_the_hub_is_charged_under_their_name(fake: FakeHub, tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        user = AsUser(served)
        assert content(await user.get("/v3/tables")) == ["people"]
        assert content(await user.post(user.count("a")))["ids"] == [1]
        (charge,) = user.session.ledger.charges()
        assert charge.origin is not None
        assert charge.origin.actor == "ana"
        assert (await user.get("/v3/tables/people/audit")).status_code == 403

    served(fake, tmp_path, scenario)


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_token_that_the_hub_revokes_stops_before_the_next_charge(
    is_broken: bool, fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_broken:  # control: the reply of the login is used for the charge
        monkeypatch.setattr(Identities, "confirm", Identities.last_known)

    async def scenario(served: Served) -> None:
        user = AsUser(served)
        assert content(await user.post(user.count("a")))["ids"] == [1]
        del fake.users[TOKEN]
        refused = await user.post(user.count("b", "1/7"))
        assert refused.status_code == (200 if is_broken else 401)
        assert user.charges == (2 if is_broken else 1)

    served(fake, tmp_path, scenario)


@pytest.mark.parametrize("change", ["scope", "role", "name", "down"])
def test_what_changes_between_login_and_charge_refuses_uncharged(change: str, fake: FakeHub, tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        user = AsUser(served)
        assert content(await user.get("/v3/tables")) == ["people"]
        match change:
            case "scope":
                fake.grant(TOKEN, "ana", "access:services!service=other")
            case "role":
                fake.grant(TOKEN, "ana", ACCESS, CURATE)
            case "name":
                fake.grant(TOKEN, "bob")
            case "down":
                fake.reply = refuses
        refused = await user.post(user.count("a"))
        assert refused.status_code == (503 if change == "down" else 401)
        assert content(refused)["error"] == ("ServiceUnavailable" if change == "down" else "AccessDenied")
        assert user.charges == 0
        fake.reply = None
        fake.time += CACHE_SECONDS + 1
        fake.grant(TOKEN, "ana")
        assert content(await user.post(user.count("a")))["ids"] == [1]  # the id of what was refused is free

    served(fake, tmp_path, scenario)


def test_every_route_refuses_other_tokens_by_type(fake: FakeHub, tmp_path: Path) -> None:
    fake.grant("1" * 32, "eve", "access:services!service=other")
    paths = ["", "/people", "/people/rows", "/people/events", "/people/audit"]

    async def scenario(served: Served) -> None:
        for path in paths:
            wrong = await AsUser(served, "1" * 32).get(f"/v3/tables{path}")
            assert (wrong.status_code, content(wrong)["error"]) == (403, "AccessDenied")
            unknown = await AsUser(served, "2" * 32).get(f"/v3/tables{path}")
            assert unknown.status_code == 401
        for method in ("requests", "acts"):
            reply = await served.client.post(
                f"/v3/tables/people/{method}", content=b"{}", headers={"Authorization": "Bearer " + "1" * 32}
            )
            assert reply.status_code == 403
        fake.time += CACHE_SECONDS + 1
        fake.reply = refuses
        for path in paths:
            down = await AsUser(served).get(f"/v3/tables{path}")
            assert (down.status_code, content(down)["error"]) == (503, "ServiceUnavailable")
        assert content(await served.get("/v3/tables")) == ["people"]  # tokens of the service do not need the Hub

    served(fake, tmp_path, scenario)


def test_a_curator_of_the_hub_freezes_and_an_analyst_does_not(fake: FakeHub, tmp_path: Path) -> None:
    fake.grant("1" * 32, "cora", ACCESS, CURATE)

    async def freeze(user: Served) -> httpx.Response:
        body = json.dumps({"act": "freeze", "why": "a look"}).encode()
        headers = {**user.headers, "Content-Type": "application/json"}
        return await user.client.post("/v3/tables/people/acts", content=body, headers=headers)

    async def scenario(served: Served) -> None:
        assert (await freeze(AsUser(served))).status_code == 403
        assert served.session._core.account.tree.frozen is None
        reply = await freeze(AsUser(served, "1" * 32))
        assert reply.status_code == 200, reply.text
        assert served.session._core.account.tree.frozen is not None

    served(fake, tmp_path, scenario)


@pytest.mark.parametrize("change", ["revoked", "scope", "down", "broken"])
def test_a_curator_whom_the_hub_no_longer_confirms_decides_nothing(
    change: str, fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An act is decided by what the Hub says then, as a charge is, and not by its reply of half a minute before."""
    fake.grant("1" * 32, "cora", ACCESS, CURATE)
    if change == "broken":  # control: the earlier reply is used
        monkeypatch.setattr(Identities, "confirm", Identities.last_known)

    async def scenario(served: Served) -> None:
        cora = AsUser(served, "1" * 32)
        assert (await cora.get("/v3/tables/people/state")).status_code == 200
        match change:
            case "scope":
                fake.grant("1" * 32, "cora", ACCESS)
            case "down":
                fake.reply = refuses
            case _:
                del fake.users["1" * 32]
        headers = {**cora.headers, "Content-Type": "application/json"}
        body = json.dumps({"act": "freeze", "why": "a look"}).encode()
        reply = await cora.client.post("/v3/tables/people/acts", content=body, headers=headers)
        assert reply.status_code == {"broken": 200, "down": 503}.get(change, 401)
        assert (served.session._core.account.tree.frozen is not None) == (change == "broken")

    served(fake, tmp_path, scenario)


def test_behind_a_prefix_there_are_no_other_routes(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        assert content(await served.get("/services/dpnb/v3/tables")) == ["people"]
        for path in ("/v3/tables", "/services/dpnb/tables", "/services/dpnb2/v3/tables", "/services/dpnb//v3/tables"):
            assert (await served.get(path)).status_code == 404

    run_served(tmp_path, scenario, prefix="/services/dpnb")


def test_a_limited_number_of_replies_is_kept_and_no_token(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED", 3)
    with fake.identities() as hub:
        for number in range(10):
            assert hub.ask(f"invented-{number}") is None
        assert hub.ask(TOKEN) is not None
        assert len(hub._known) == 3
        assert TOKEN not in repr(vars(hub))
        assert TOKEN.encode() not in b"".join(hub._known)
