"""Tokens in a notebook that JupyterHub has started: `dpnb.connect` needs no other identity there.

The notebook's own token of the Hub, ``JUPYTERHUB_API_TOKEN``, is sent to the Hub alone.  With it the Hub makes a token
for the service, with the one scope that the service needs, for a few minutes.  It is kept in memory, replaced before it
expires, and sent to the service only.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

from dpnb.copying import NotCopyable
from dpnb.errors import AccessDenied, DpnbError, ServiceError, ServiceUnavailable
from dpnb.remote.tokens import SERVICE_VARIABLE, Origin, Token, origin_of

if TYPE_CHECKING:
    import httpx

API_VARIABLE, USER_VARIABLE, TOKEN_VARIABLE = "JUPYTERHUB_API_URL", "JUPYTERHUB_USER", "JUPYTERHUB_API_TOKEN"
"""What JupyterHub puts into the environment of a notebook server."""

PUBLIC_HUB_VARIABLE, BASE_VARIABLE = "JUPYTERHUB_PUBLIC_HUB_URL", "JUPYTERHUB_BASE_URL"
DEFAULT_SERVICE = "dpnb"
SERVICE_PATH = re.compile(r"/services/([a-z0-9][a-z0-9_-]{0,63})\Z", re.ASCII)

VALID_SECONDS = 900
"""Time for which a token is made."""

RENEWED_SECONDS = 600.0
"""Age at which it is replaced, well before it expires."""

TIMEOUT_SECONDS = 10.0
MAX_REPLY = 2**18
"""Bytes of a reply of the Hub."""

IDENTIFYING = re.compile(r"read:users:(?:name|groups)!user(?:=.+)?", re.ASCII)
"""Scopes that the Hub adds to each token, so that its holder can be named."""


class _Made(msgspec.Struct, frozen=True):
    """The Hub's reply to a request for a token; it says more than is used here."""

    token: str
    scopes: tuple[str, ...]


def hub_address() -> str | None:
    """The address of the service in a notebook server of JupyterHub; None elsewhere, or if it cannot be known.

    It is in ``DPNB_SERVICE``, which the Hub's configuration sets, or follows from the public address of the Hub.
    """
    named = os.environ.get(SERVICE_VARIABLE)
    if named:
        return named
    public = os.environ.get(PUBLIC_HUB_VARIABLE)
    if not public or not os.environ.get(TOKEN_VARIABLE):
        return None
    parts = urlsplit(public)
    base = os.environ.get(BASE_VARIABLE, "/").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{base}/services/{DEFAULT_SERVICE}"


def hub_token(origin: Origin, *, curates: bool = False) -> HubToken | None:
    """A token that the Hub makes for the service at an address; None outside of a notebook server of JupyterHub.

    It is made only for the address that the Hub's environment names: another one could use it at the service.
    `curates` says that it is for what curators do.
    """
    if not all(os.environ.get(name) for name in (API_VARIABLE, USER_VARIABLE, TOKEN_VARIABLE)):
        return None
    address = hub_address()
    if address is None or origin_of(address) != origin:
        return None
    found = SERVICE_PATH.search(origin.text)
    service = DEFAULT_SERVICE if found is None else found[1]
    scopes = (f"access:services!service={service}", *((f"custom:{service}:curate",) if curates else ()))
    return HubToken(scopes)


class HubToken(NotCopyable):
    """A token of the Hub's for the service, made when it is needed; it is never shown or stored.

    By default the Hub is reached over the network, without a proxy of the environment.
    """

    __slots__ = ("_made", "_now", "_scopes", "_transport")
    _not_copied = "it is a secret; connect again"
    source = "JupyterHub"

    def __init__(
        self,
        scopes: tuple[str, ...],
        transport: httpx.BaseTransport | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scopes, self._transport, self._now = scopes, transport, now
        self._made: tuple[float, Token] | None = None  # replaced as a whole: several threads may use it

    def __repr__(self) -> str:
        return "<HubToken>"

    def header(self) -> str:
        """The value of the header ``Authorization``; makes a token if there is none that stays valid.

        Raises `AccessDenied` if the Hub gives the user no such token, `ServiceUnavailable` if it cannot be reached.
        """
        made = self._made
        if made is None or self._now() - made[0] > RENEWED_SECONDS:
            made = self._made = self._now(), self._new()
        return made[1].header()

    def renew(self) -> bool:
        """Use the token no longer, since the service refuses it; whether another one can be made."""
        self._made = None
        return True

    def _new(self) -> Token:
        """Have the Hub make a token; no frame of a traceback, which a notebook may show, holds a secret."""
        outcome = self._outcome()
        if isinstance(outcome, DpnbError):
            raise outcome
        return outcome

    def _outcome(self) -> Token | DpnbError:
        """The token that the Hub makes, or why it makes none."""
        status, body = self._reply()
        if status is None:
            return ServiceUnavailable(
                "JupyterHub: cannot be reached, to make a token for the service; nothing was charged; try again, and "
                "ask its administrator if that does not help"
            )
        if status in (400, 401, 403, 404):
            return AccessDenied(
                f"JupyterHub: gives this user no token for the service (status {status}); nothing was charged; ask the "
                f"administrator of JupyterHub for a role with {' and '.join(self._scopes)}, and restart the notebook "
                "server; it also needs 'tokens!user' among its own scopes"
            )
        if status not in (200, 201):
            return ServiceUnavailable(f"JupyterHub: made no token (status {status}); nothing was charged; try again")
        try:
            made = msgspec.json.decode(body, type=_Made)
            more = [one for one in made.scopes if one not in self._scopes and IDENTIFYING.fullmatch(one) is None]
            if not more and set(self._scopes) <= set(made.scopes):
                return Token(made.token, self.source)
        except (msgspec.MsgspecError, RecursionError, DpnbError):
            pass
        return ServiceError(  # a token that can do more must not leave this process
            "JupyterHub: made a token with other scopes than were asked for, or sent what cannot be read; it was not "
            "sent to the service; dpnb needs JupyterHub 4 or newer"
        )

    def _reply(self) -> tuple[int | None, bytes]:
        """Status and body of the Hub's reply; None as status if there is none."""
        import httpx  # an extra

        asked = {"expires_in": VALID_SECONDS, "scopes": self._scopes, "note": "dpnb.connect"}
        body = bytearray()
        try:
            url = f"{os.environ[API_VARIABLE].rstrip('/')}/users/{quote(os.environ[USER_VARIABLE], safe='')}/tokens"
            headers = {"Authorization": f"Bearer {os.environ[TOKEN_VARIABLE]}", "Content-Type": "application/json"}
            with (
                httpx.Client(
                    transport=self._transport or httpx.HTTPTransport(), timeout=TIMEOUT_SECONDS, follow_redirects=False
                ) as client,
                client.stream("POST", url, content=msgspec.json.encode(asked), headers=headers) as response,
            ):
                for part in response.iter_raw():
                    body += part
                    if len(body) > MAX_REPLY:
                        return None, b""
                return response.status_code, bytes(body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, KeyError, ValueError):
            return None, b""
