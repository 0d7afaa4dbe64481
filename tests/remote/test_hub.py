"""Tokens that JupyterHub makes for the service: the notebook's own goes to the Hub only, the other to the service."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import dpnb
from dpnb.errors import AccessDenied, InvalidValueError, ServiceError, ServiceUnavailable
from dpnb.remote import hub as module
from dpnb.remote import tokens
from dpnb.remote.channel import Channel
from dpnb.remote.connect import find_credential
from dpnb.remote.hub import RENEWED_SECONDS, VALID_SECONDS, HubToken, hub_address, hub_token
from dpnb.remote.tokens import Token, origin_of, token_file
from remote.people import people
from remote.small_service import TOKEN, SmallService, refused

OWN = "the-notebook's-own-token".replace("'", "-")
SERVICE = "https://hub.example/services/dpnb"
ACCESS = "access:services!service=dpnb"
ADDED = ("read:users:name!user=ana", "read:users:groups!user=ana")


class FakeHub:
    """The one address of the Hub's API that the client uses, without a network."""

    def __init__(self) -> None:
        self.time, self.asked = 1000.0, list[httpx.Request]()
        self.reply: Callable[[dict[str, Any]], httpx.Response] = self.made

    def made(self, asked: dict[str, Any]) -> httpx.Response:
        scopes = [*asked["scopes"], *ADDED]
        return httpx.Response(201, json={"token": f"made-{len(self.asked)}", "id": "a1", "scopes": scopes})

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        reply = self.reply(json.loads(request.content))
        return httpx.Response(reply.status_code, content=iter([reply.content]))

    def token(self, *scopes: str) -> HubToken:
        return HubToken(scopes or (ACCESS,), httpx.MockTransport(self.handle), lambda: self.time)


@pytest.fixture
def fake() -> FakeHub:
    return FakeHub()


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DPNB_TOKEN", "JUPYTERHUB_PUBLIC_HUB_URL", "JUPYTERHUB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("DPNB_SERVICE", SERVICE)
    monkeypatch.setenv("JUPYTERHUB_API_URL", "http://127.0.0.1:8081/hub/api")
    monkeypatch.setenv("JUPYTERHUB_USER", "ana")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", OWN)
    monkeypatch.setattr(tokens, "_used_at", [])


def test_the_hub_makes_a_token_of_one_scope_that_expires(fake: FakeHub) -> None:
    assert fake.token().header() == "Bearer made-1"
    (asked,) = fake.asked
    assert str(asked.url) == "http://127.0.0.1:8081/hub/api/users/ana/tokens"
    assert asked.headers["Authorization"] == f"Bearer {OWN}"
    assert json.loads(asked.content) == {"scopes": [ACCESS], "expires_in": VALID_SECONDS, "note": "dpnb.connect"}


def test_it_is_used_again_and_replaced_before_it_expires(fake: FakeHub) -> None:
    token = fake.token()
    assert {token.header() for _ in range(3)} == {"Bearer made-1"}
    fake.time += RENEWED_SECONDS + 1
    assert token.header() == "Bearer made-2"
    assert RENEWED_SECONDS < VALID_SECONDS - 60
    assert token.renew()
    assert token.header() == "Bearer made-3"


def test_it_is_neither_shown_nor_copied_nor_stored(fake: FakeHub, tmp_path: Path) -> None:
    token = fake.token()
    token.header()
    assert "made" not in repr(token) + str(token)
    with pytest.raises(TypeError):
        token.__reduce_ex__(4)
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(token, "keep")


def assert_not_shown(error: BaseException, secret: str) -> None:
    """That a traceback shows no secret, also one with the variables of dpnb's frames, as `%xmode Verbose` has."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if frame.f_code.co_filename == module.__file__]
    assert own
    assert error.__context__ is None
    assert secret not in str(error) + "".join(repr(frame.f_locals) for frame in own)


@pytest.mark.parametrize(
    "scopes", [(ACCESS, "tokens!user=ana"), ("inherit",), ("self",), (ACCESS, "access:servers!user=ana"), ADDED, ()]
)
def test_a_token_that_can_do_more_or_less_is_not_used(scopes: tuple[str, ...], fake: FakeHub) -> None:
    """Attack: the service could do in the Hub what the user may do there."""
    fake.reply = lambda asked: httpx.Response(201, json={"token": "made-wide", "scopes": scopes})
    with pytest.raises(ServiceError, match="not sent to the service") as refused:
        fake.token().header()
    assert_not_shown(refused.value, "made-wide")


def refuses(asked: dict[str, Any]) -> httpx.Response:
    raise httpx.ConnectError("Connection refused")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (lambda asked: httpx.Response(400, json={"message": "not held by User eve"}), AccessDenied),
        (lambda asked: httpx.Response(403), AccessDenied),
        (lambda asked: httpx.Response(502), ServiceUnavailable),
        (lambda asked: httpx.Response(302, headers={"Location": "http://127.0.0.1:9/"}), ServiceUnavailable),
        (refuses, ServiceUnavailable),
        (lambda asked: httpx.Response(201, content=b"x" * (module.MAX_REPLY + 1)), ServiceUnavailable),
        (lambda asked: httpx.Response(201, content=b"["), ServiceError),
        (lambda asked: httpx.Response(201, content=b"[" * 100_000), ServiceError),
        (lambda asked: httpx.Response(201, json={"token": "a\nb", "scopes": [ACCESS]}), ServiceError),
    ],
)
def test_a_hub_that_makes_none_is_a_typed_error(reply: Any, kind: type[Exception], fake: FakeHub) -> None:
    fake.reply = reply
    with pytest.raises(kind) as refused:
        fake.token().header()
    assert type(refused.value) is kind
    assert str(refused.value).startswith("JupyterHub: ")
    assert_not_shown(refused.value, OWN)


# --- to which address ---------------------------------------------------------------------------------------------


def test_a_token_is_made_for_the_address_of_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a notebook of somebody else's connects to their address, and uses the token at the service."""
    assert hub_token(origin_of(SERVICE)) is not None
    assert hub_token(origin_of("https://hub.example:443/services/dpnb/")) is not None  # the same address
    for other in (
        "https://elsewhere.example/services/dpnb",
        "https://hub.example/services/other",
        "http://localhost:9",
    ):
        assert hub_token(origin_of(other)) is None
    monkeypatch.delenv("DPNB_SERVICE")
    assert hub_token(origin_of(SERVICE)) is None


@pytest.mark.parametrize("name", ["JUPYTERHUB_API_URL", "JUPYTERHUB_USER", "JUPYTERHUB_API_TOKEN"])
def test_without_a_hub_there_is_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name)
    assert hub_token(origin_of(SERVICE)) is None


def test_the_scope_has_the_name_of_the_service_in_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for address, scopes in (
        ("https://hub.example/base/services/dp-2", ("access:services!service=dp-2", "custom:dp-2:curate")),
        ("https://dp.example:8443", (ACCESS, "custom:dpnb:curate")),
    ):
        monkeypatch.setenv("DPNB_SERVICE", address)
        found, curates = hub_token(origin_of(address)), hub_token(origin_of(address), curates=True)
        assert found is not None
        assert curates is not None
        assert (found._scopes, curates._scopes) == (scopes[:1], scopes)


def test_the_address_follows_from_the_public_one_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub_address() == SERVICE
    monkeypatch.delenv("DPNB_SERVICE")
    monkeypatch.setenv("JUPYTERHUB_BASE_URL", "/base/")
    assert hub_address() is None
    monkeypatch.setenv("JUPYTERHUB_PUBLIC_HUB_URL", "https://hub.example/base/hub/")
    assert hub_address() == "https://hub.example/base/services/dpnb"
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN")
    assert hub_address() is None


def test_an_address_is_required_where_the_environment_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPNB_SERVICE")
    with pytest.raises(InvalidValueError, match="DPNB_SERVICE"):
        dpnb.connect()
    with pytest.raises(InvalidValueError, match="DPNB_SERVICE"):
        dpnb.connect(table="people")


def test_a_token_of_the_environment_comes_first_and_a_kept_one_last(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = origin_of(SERVICE)
    Token("kept", "prompt").keep(origin)
    assert isinstance(find_credential(origin), HubToken)
    monkeypatch.setenv("DPNB_TOKEN", "given")
    found = find_credential(origin)
    assert found is not None
    assert found.header() == "Bearer given"
    monkeypatch.delenv("DPNB_TOKEN")
    monkeypatch.delenv("JUPYTERHUB_USER")
    found = find_credential(origin)
    assert found is not None
    assert found.header() == "Bearer kept"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("https://hub.example/services/dpnb/", SERVICE),
        ("https://HUB.example:443/services/dpnb", SERVICE),
        ("http://localhost:8000/services/dpnb", "http://localhost:8000/services/dpnb"),
        ("https://hub.example/", "https://hub.example"),
        ("https://hub.example/user/ana~1/v1", "https://hub.example/user/ana~1/v1"),
    ],
)
def test_an_address_may_have_the_path_of_a_proxy(address: str, text: str) -> None:
    assert (origin_of(address).text, origin_of(address).url) == (text, text)
    assert token_file(origin_of(address)) != token_file(origin_of("https://hub.example/services/other"))


@pytest.mark.parametrize(
    "path",
    ["/services/../hub", "/./dpnb", "//evil.example", "/a//b", "/a%2fb", "/a b", "/a;b", "/ä", "/a\\b", "/.dpnb"],
)
def test_a_path_that_could_mean_another_is_refused(path: str) -> None:
    with pytest.raises(InvalidValueError, match="address: must be"):
        origin_of(f"https://hub.example{path}")


# --- with a service -----------------------------------------------------------------------------------------------


class Replaced:
    """A token that the service refuses until it is replaced."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def header(self) -> str:
        return f"Bearer {self.texts[0]}"

    def renew(self) -> bool:
        del self.texts[: len(self.texts) - 1]
        return True


def test_a_refused_token_is_replaced_once(tmp_path: Path) -> None:
    session = people()
    service = SmallService({"people": session})
    with service.served(tmp_path / "s") as address:
        for texts, seen in ((("expired", TOKEN), 2), ((TOKEN,), 1)):
            service.seen.clear()
            channel = Channel(origin_of(address), Replaced(*texts), retry_seconds=0)
            assert channel.get("tables", tuple[str, ...]) == ("people",)
            assert len(service.seen) == seen
            channel.close()
        service.seen.clear()
        channel = Channel(origin_of(address), Replaced("expired", "expired too"), retry_seconds=0)
        with pytest.raises(AccessDenied):
            channel.get("tables", tuple[str, ...])
        assert len(service.seen) == 2
        channel.close()
    session.ledger.close()


def test_a_hub_that_is_down_is_waited_for_like_the_service(fake: FakeHub, tmp_path: Path) -> None:
    session = people()
    service = SmallService({"people": session})
    replies = [refuses, lambda asked: httpx.Response(503)]

    def reply(asked: dict[str, Any]) -> httpx.Response:
        return replies.pop(0)(asked) if replies else httpx.Response(201, json={"token": TOKEN, "scopes": [ACCESS]})

    fake.reply = reply
    with service.served(tmp_path / "s") as address:
        channel = Channel(origin_of(address), fake.token(), retry_seconds=60)
        assert channel.get("tables", tuple[str, ...]) == ("people",)
        channel.close()
    assert len(fake.asked) == 3
    session.ledger.close()


def test_a_service_that_cannot_ask_the_hub_is_shown_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = people()
    service = SmallService({"people": session})
    monkeypatch.setattr(
        service, "_checked", lambda request: refused(503, "ServiceUnavailable", "service: cannot ask \x1b[2JJupyterHub")
    )
    with service.served(tmp_path / "s") as address, pytest.raises(ServiceUnavailable) as shown:
        dpnb.connect(address, "people", token=TOKEN)
    assert "service: cannot ask ?[2JJupyterHub" in str(shown.value)
    assert "nothing was charged" in str(shown.value)
    session.ledger.close()


def test_a_stream_of_events_is_opened_again_with_another_token(tmp_path: Path) -> None:
    session = people()
    service = SmallService({"people": session})
    with service.served(tmp_path / "s") as address:
        channel = Channel(origin_of(address), Replaced("expired", TOKEN))
        with pytest.raises(AccessDenied), channel.stream("tables/people/events"):
            raise AssertionError("the service has accepted an expired token")
        with channel.stream("tables/people/events") as stream:
            assert next(stream.lines()) == ": a comment"
            stream.cut()
        channel.close()
    session.ledger.close()
