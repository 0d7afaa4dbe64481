"""The address of a service."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from dpnb.errors import InvalidValueError

SOCKET_URL = "http://localhost"
"""The base of the addresses that are requested through a Unix socket; the host is not used."""

PREFIX = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*", re.ASCII)
"""The path under which a proxy forwards requests to the service."""

EXAMPLES = "'https://host', 'http://localhost:port' or 'unix:///path/to/socket'"


@dataclass(frozen=True)
class Origin:
    """The address of a service, to which a token belongs.

    Its `text` is in normal form, such as ``https://host:8443``, ``https://host/services/dpnb`` for a service behind a
    proxy, or ``unix:///run/dpnb.sock``.
    """

    text: str
    url: str  # the base of the addresses that are requested
    socket: str | None = None  # path of the Unix socket

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine: a Unix socket or the loopback."""
        return self.socket is not None or self.url.startswith("http:")


def origin_of(address: object) -> Origin:
    """The service at an address, which must not be plain HTTP to another machine."""
    try:
        parts = urlsplit(address) if isinstance(address, str) and address.isprintable() else None
        port = None if parts is None else parts.port
    except ValueError:
        parts = port = None
    if parts is None or parts.scheme not in ("https", "http", "unix"):
        raise InvalidValueError(f"address: must be that of a service, such as {EXAMPLES}; got another text or value")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # The address is not quoted, since it may hold a secret.
        raise InvalidValueError(
            "address: must have neither a user name, a password, a query nor a fragment; it has one; "
            "give the token as token=, in DPNB_TOKEN or at the prompt"
        )
    if parts.scheme == "unix":
        return _socket_origin(parts, address)
    host = (parts.hostname or "").lower()
    prefix = parts.path.rstrip("/")
    if not host or PREFIX.fullmatch(prefix) is None:
        raise InvalidValueError(
            f"address: must be a host and a port, and for a service behind a proxy a path of letters, digits and ._~-; "
            f"got {address!r}; use {EXAMPLES}, or 'https://host/services/dpnb'"
        )
    if parts.scheme == "http" and not _is_loopback(host):
        raise InvalidValueError(
            f"address: plain http would show the token and the answers to the network; got {address!r}; use https, or "
            "http://localhost through an SSH tunnel"
        )
    name = f"[{host}]" if ":" in host else host
    standard = 443 if parts.scheme == "https" else 80
    text = f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, standard) else "") + prefix
    return Origin(text, text)


def _socket_origin(parts: SplitResult, address: object) -> Origin:
    path = unquote(parts.path)
    if parts.netloc or not path.startswith("/") or path.endswith("/") or not path.isprintable():
        raise InvalidValueError(
            f"address: a Unix socket needs its absolute path after unix://, without a final slash; got {address!r}; "
            "write 'unix:///path/to/socket'"
        )
    normal = str(PurePosixPath(path))
    return Origin(f"unix://{normal}", SOCKET_URL, normal)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
