"""Logins of the cockpit: a token is exchanged for a cookie and a second value that only the page has.

A browser sends cookies to every port of a host.  So a cookie alone gives nothing: each request also carries the second
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

from dpnb.copying import NotCopyable
from dpnb.service.tokens import LONGEST_TOKEN, Identity, Role, TokenStore, hash_of

LIFETIME = timedelta(hours=4)
"""After which a token must be given again."""

READERS: tuple[Role, ...] = ("auditor", "curator", "owner")
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
        if person is None or person.role not in READERS:
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
        if self._store.clock.now() >= login.ends or person is None or person.role not in READERS:
            self._logins.pop(number, None)
            return None
        return person

    def checker(self, cookie: str, csrf: str) -> Callable[[], bool]:
        """Whether a login is still that of the same person."""
        person = self.person(cookie, csrf)
        return lambda: person is not None and self.person(cookie, csrf) == person

    def end(self, cookie: str) -> None:
        """End a login."""
        self._logins.pop(hash_of(cookie), None)
