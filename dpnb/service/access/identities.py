"""Who has a token: one of the service's own, or one of a user of JupyterHub, whose scopes say what it allows.

The Hub describes a token to anyone who presents it, so the service needs no token of its own.  What
``jupyterhub.services.auth`` does beyond this one request is for services with pages; it needs Tornado and has no limits
on the time and size of a reply.

A name is that of one person: the user ``ana`` of JupyterHub and the holder of a token for ``ana`` share the part of the
budget, the rows and the charges of ``ana``.  A person has one role, and the curator's file of tokens takes precedence:
while ``ana`` has a valid token with one role, JupyterHub cannot give ``ana`` another.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

import httpx
import msgspec

from dpnb.copying import NotCopyable
from dpnb.errors import AccessDenied, ServiceUnavailable
from dpnb.service.access.tokens import PREFIX, Identity, TokenStore
from dpnb.service.configuration.parts import NAME
from dpnb.service.configuration.settings import HubSettings

CACHE_SECONDS = 30.0
"""Time for which a reply of the Hub is used for requests that charge nothing; twice that for open streams."""

REPLY_SECONDS = 5.0
"""Time that the Hub has for a reply."""

PAUSE_SECONDS = 2.0
"""Time after a failure for which the Hub is not asked again, so that requests do not wait for it in turn."""

MAX_REPLY = 2**18
"""Bytes of a reply, which has the name, the groups and the scopes of a user."""

MAX_REMEMBERED = 10_000
"""Tokens whose replies are kept."""

THREADS, MAX_WAITING = 4, 64
"""Tokens that the Hub is asked about at once, and those that wait; the Hub must not be flooded with invented tokens."""

TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{8,200}", re.ASCII)
"""The characters of a bearer token, RFC 6750."""

UNKNOWN = (401, 403, 404)
"""Replies of the Hub about a token that is unknown, expired or revoked."""

DOWN = (
    "service: cannot ask JupyterHub who sends the request; nothing was charged; repeat it when JupyterHub can be "
    "reached again"
)


class HubUser(msgspec.Struct, frozen=True):
    """What the Hub says about a token; it says more than is used here."""

    kind: str
    name: str
    scopes: tuple[str, ...]


@dataclass(frozen=True)
class _KnownToken:
    """What the Hub said about a token, and when."""

    time: float  # of the monotonic clock
    person: Identity | None = None  # None if the token is unknown, or not accepted
    refusal: str = ""  # why it is not accepted; empty if it is, or is unknown

    def result(self) -> Identity | None:
        """Whose token it is; `AccessDenied` if it is not accepted."""
        if self.refusal:
            raise AccessDenied(self.refusal)
        return self.person


class HubIdentities(NotCopyable):
    """Whose tokens the tokens of a JupyterHub are; they are not stored, only their hashes.

    By default the Hub is reached over the network, without a proxy of the environment.
    """

    def __init__(
        self,
        settings: HubSettings,
        transport: httpx.BaseTransport | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._now = settings, now
        self._client = httpx.Client(
            transport=transport or httpx.HTTPTransport(verify=ssl.create_default_context()),
            timeout=REPLY_SECONDS,
            follow_redirects=False,
            headers={"User-Agent": "dpnb", "Accept-Encoding": "identity"},
        )
        self._known: OrderedDict[bytes, _KnownToken] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="dpnb-hub")
        self._again = ThreadPoolExecutor(THREADS, thread_name_prefix="dpnb-hub-again")
        """Asks about tokens that were valid before, which do not wait for invented ones."""
        self._waiting: set[bytes] = set()
        self._numbers = count()
        self._down_until = float("-inf")

    def close(self) -> None:
        """Ask no more."""
        for threads in (self._threads, self._again):
            threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    async def find(self, token: str) -> Identity | None:
        """Whose token it is, as the Hub said within the last `CACHE_SECONDS`; None if it is unknown.

        Raises `AccessDenied` if it is the token of a user but gives no access, `ServiceUnavailable` if the Hub does not
        reply.
        """
        key = _key(token)
        known = self._known.get(key)
        if known is not None and self._now() - known.time <= CACHE_SECONDS:
            return known.result()
        if TOKEN.fullmatch(token) is None:
            return None
        if known is not None and known.person is not None:
            return await asyncio.get_running_loop().run_in_executor(self._again, self.ask, token)
        if len(self._waiting) >= MAX_WAITING:
            raise ServiceUnavailable(DOWN)
        place = b"%d" % next(self._numbers)
        self._waiting.add(place)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self.ask, token)
        finally:
            self._waiting.discard(place)

    def last_known(self, token: str) -> Identity | None:
        """Whose token it is, as the Hub said within twice `CACHE_SECONDS`; None if it did not say so.

        Does not wait: the Hub is asked again in another thread when its reply is older than `CACHE_SECONDS`.
        """
        key = _key(token)
        known = self._known.get(key)
        if known is None or self._now() - known.time > 2 * CACHE_SECONDS:
            return None
        if self._now() - known.time > CACHE_SECONDS and key not in self._waiting and len(self._waiting) < MAX_WAITING:
            self._waiting.add(key)
            self._again.submit(self._refresh, key, token)
        return known.person

    def _refresh(self, key: bytes, token: str) -> None:
        try:
            self.ask(token)
        except (AccessDenied, ServiceUnavailable):
            return  # the reply, if there is one, is noted
        finally:
            self._waiting.discard(key)

    def ask(self, token: str) -> Identity | None:
        """Whose token it is, as the Hub says now; waits for it, and raises what `find` raises."""
        if TOKEN.fullmatch(token) is None:
            return None
        if self._now() < self._down_until:
            raise ServiceUnavailable(DOWN)
        asked = self._now()
        user = self._reply(token)
        known = _KnownToken(asked) if user is None else self._judged(asked, user)
        with self._lock:
            self._known[_key(token)] = known
            self._known.move_to_end(_key(token))
            while len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        return known.result()

    def _judged(self, time: float, user: HubUser) -> _KnownToken:
        """Whether a user of the Hub may connect, and as what."""
        scope = self._settings.access_scope
        if user.kind != "user":
            refusal = "token: must be that of a user of JupyterHub; it is a service's; use your own"
        elif scope not in user.scopes:
            refusal = (
                f"token: must have the scope {scope!r} of JupyterHub; it does not; ask the administrator of JupyterHub "
                "for a role with this scope, and connect again"
            )
        elif NAME.fullmatch(user.name) is None:
            refusal = (
                "name: that of the user of JupyterHub must be letters, digits, '.', '_', '@' and '-', and begin with a "
                "letter or digit; it is another; ask the administrator of JupyterHub for another name"
            )
        else:
            is_curator = self._settings.curator_scope in user.scopes
            return _KnownToken(time, Identity(user.name, "curator" if is_curator else "analyst"))
        return _KnownToken(time, refusal=refusal)

    def _reply(self, token: str) -> HubUser | None:
        """The Hub's reply; None if it does not know the token, `ServiceUnavailable` if there is no reply."""
        try:
            status, body = self._received(token)
            user = msgspec.json.decode(body, type=HubUser) if status == 200 else None
            is_reply = status == 200 or status in UNKNOWN
        except (httpx.HTTPError, OSError, msgspec.MsgspecError, RecursionError, RuntimeError):
            is_reply, user = False, None  # a RuntimeError: the client was closed
        if not is_reply:
            self._down_until = self._now() + PAUSE_SECONDS
            raise ServiceUnavailable(DOWN)
        return user

    def _received(self, token: str) -> tuple[int, bytes]:
        """Status and body of the Hub's reply, within limits of time and size."""
        deadline, body = self._now() + REPLY_SECONDS, bytearray()
        headers = {"Authorization": f"Bearer {token}"}
        with self._client.stream("GET", f"{self._settings.api_url}/user", headers=headers) as response:
            for part in response.iter_raw():
                body += part
                if len(body) > MAX_REPLY or self._now() > deadline:
                    raise httpx.ReadTimeout("the reply is too long")
            return response.status_code, bytes(body)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


# --- people who have a token ------------------------------------------------------------------------------------------


class Identities(NotCopyable):
    """Who has a token: one of the service's own, or one of a user of JupyterHub."""

    def __init__(self, tokens: TokenStore, hub: HubIdentities | None = None) -> None:
        self._tokens, self._hub = tokens, hub

    async def find(self, token: str) -> Identity | None:
        """Who has a token; None if it is unknown, expired or revoked.  Raises what `HubIdentities.find` raises."""
        hub = self._hub_for(token)
        return self._tokens.identity(token) if hub is None else self._with_one_role(await hub.find(token))

    def confirm(self, token: str, person: Identity) -> bool:
        """Whether a person has a token now; waits for JupyterHub, raises `ServiceUnavailable` if it does not reply."""
        return self._is(person, token, lambda hub: hub.ask(token))

    def last_known(self, token: str, person: Identity) -> bool:
        """Whether a person has a token, as far as is known without waiting, for an open stream."""
        return self._is(person, token, lambda hub: hub.last_known(token))

    def _is(self, person: Identity, token: str, asked: Callable[[HubIdentities], Identity | None]) -> bool:
        hub = self._hub_for(token)
        try:
            return person == (self._tokens.identity(token) if hub is None else self._with_one_role(asked(hub)))
        except AccessDenied:
            return False

    def _hub_for(self, token: str) -> HubIdentities | None:
        """The Hub, if a token may be one of its own: those of the service are not shown to it."""
        return None if not token or token.startswith(PREFIX) else self._hub

    def _with_one_role(self, person: Identity | None) -> Identity | None:
        """A user of JupyterHub, unless the curator has given the name another role."""
        role = None if person is None else self._tokens.role_of(person.name)
        if person is not None and role is not None and role != person.role:
            raise AccessDenied(
                f"role: {person.name!r} has a token of the service with the role {role!r}, and a person has one role; "
                f"the scopes of the token of JupyterHub give {person.role!r}; ask the curator to revoke the token of "
                "the service"
            )
        return person


class Valid:
    """Whether the token of a request is still valid, and that of the person who had it on arrival."""

    def __init__(self, identities: Identities, token: str, person: Identity) -> None:
        self._identities, self._token, self._person = identities, token, person

    def __call__(self) -> bool:
        """Whether it is valid now; may wait for JupyterHub."""
        return self._identities.confirm(self._token, self._person)

    def last_known(self) -> bool:
        """Whether it is valid as far as is known without waiting."""
        return self._identities.last_known(self._token, self._person)
