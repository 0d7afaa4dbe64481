"""The logins of the cockpit, which requests it accepts, and the headers of every response.

A request must be addressed to one of the cockpit's own names, so that a page under another name that resolves to this
address cannot read anything.  A request that changes something must come from the cockpit's own page: the browser
states where it comes from in ``Origin``, and no other page can change that.

A browser sends cookies to every port of a host.  So a cookie alone gives nothing: each request also carries a second
value, which the page keeps and another page cannot read.  Both are random, and only their hashes are kept here, in
memory; so is the hash of the token, with which every request is checked again.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpnb.copying import NotCopyable
from dpnb.service.access.tokens import AUDITORS, LONGEST_TOKEN, Identity, TokenStore, hash_of

# --- logins of the cockpit --------------------------------------------------------------------------------------------


LIFETIME = timedelta(hours=4)
"""After which a token must be given again."""

BYTES = 32
MOST_LOGINS = 200
"""At once; a further one ends the oldest."""


@dataclass(frozen=True)
class LoggedIn:
    """A login."""

    token: str  # its hash
    csrf: str  # hash of the value that the page sends
    ends: datetime


@dataclass(frozen=True)
class NewLogin:
    """A new login, before its secrets, `cookie` and `csrf`, are sent."""

    person: Identity
    cookie: str
    csrf: str
    ends: datetime


class Logins(NotCopyable):
    """The current logins."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self._logins: OrderedDict[str, LoggedIn] = OrderedDict()

    def begin(self, token: str) -> NewLogin | Identity | None:
        """Begin a login: always with new secrets, so that nobody can choose them for another.

        Returns the person if their role has no access, and None if the token is not valid.
        """
        hashed = hash_of(token[:LONGEST_TOKEN])
        person = self._store.identity_of_hash(hashed)
        if person is None or person.role not in AUDITORS:
            return person
        cookie, csrf = secrets.token_urlsafe(BYTES), secrets.token_urlsafe(BYTES)
        now = self._store.clock.now()
        for number in [number for number, one in self._logins.items() if now >= one.ends]:
            del self._logins[number]
        while len(self._logins) >= MOST_LOGINS:
            self._logins.popitem(last=False)
        self._logins[hash_of(cookie)] = LoggedIn(hashed, hash_of(csrf), now + LIFETIME)
        return NewLogin(person, cookie, csrf, now + LIFETIME)

    def person(self, cookie: str, csrf: str) -> Identity | None:
        """Who sends a request; None if the login or its token is no longer valid, or the second value is wrong."""
        number = hash_of(cookie)
        login = self._logins.get(number)
        if login is None or not hmac.compare_digest(login.csrf, hash_of(csrf)):
            return None
        person = self._store.identity_of_hash(login.token)
        if self._store.clock.now() >= login.ends or person is None or person.role not in AUDITORS:
            self._logins.pop(number, None)
            return None
        return person

    def checker(self, cookie: str, csrf: str) -> Callable[[], bool]:
        """A function that says whether a login is still that of the same person."""
        person = self.person(cookie, csrf)
        return lambda: person is not None and self.person(cookie, csrf) == person

    def end(self, cookie: str) -> None:
        """End a login."""
        self._logins.pop(hash_of(cookie), None)


# --- accepted requests ------------------------------------------------------------------------------------------------


POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Origins:
    """The names of the cockpit."""

    names: tuple[str, ...]  # host names, without a port
    is_secure: bool = False  # whether it is served with TLS

    def refusal(self, method: str, headers: Headers) -> str:
        """Why a request is refused; empty if it is accepted."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        host = hosts[0] if len(hosts) == 1 else ""
        if _without_port(host) not in self.names:
            return "host: must be one of the names of this service"
        own = f"{'https' if self.is_secure else 'http'}://{host}"
        if origins and origins != [own]:
            return "origin: must be this page"
        if method not in ("GET", "HEAD") and not origins:
            return "origin: must be stated"
        # Another port of this machine is the same site, whose cookies and requests a browser does not hold back.
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "site: must be this page"
        return ""


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and not host.endswith("]") else host


class Protected:
    """An application behind the protections, served under the names of `origins`."""

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app, self._origins = app, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._origins.refusal(scope["method"], Headers(scope=scope))
        app = PlainTextResponse(refusal, 403) if refusal else self._app
        await app(scope, receive, send_protected)
