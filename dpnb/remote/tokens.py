"""The address of a service, and the access tokens for it.

A token is kept in memory, in the environment or in a file that only its owner can read, and never in a notebook.  It is
sent to one origin only.
"""

from __future__ import annotations

import getpass
import ipaddress
import os
import re
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

from dpnb.copying import NotCopyable
from dpnb.errors import InvalidValueError, RequestError

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


VARIABLE = "DPNB_TOKEN"
SERVICE_VARIABLE = "DPNB_SERVICE"
"""The address to which the token of the environment belongs."""

_TEXT = re.compile(r"[A-Za-z0-9._~+/=-]{1,4096}")  # the characters of a bearer token, RFC 6750
_used_at: list[str] = []  # the origin to which this process has sent the token of its environment


class Credential(Protocol):
    """What is sent to a service for it to know the sender: a token, or one that is replaced in time."""

    @property
    def source(self) -> str:
        """Where it was found, for errors."""
        ...

    def header(self) -> str:
        """The value of the header ``Authorization``."""
        ...

    def renew(self) -> bool:
        """Whether another token can be made after the service has refused this one."""
        ...


class Token(NotCopyable):
    """An access token; it is never shown.  Errors name its `source`.

    `is_kept` says that it is from the file of its origin.
    """

    __slots__ = ("_text", "is_kept", "source")
    _not_copied = "it is a secret; it is read again from where it is kept"

    def __init__(self, text: object, source: str, *, is_kept: bool = False) -> None:
        if not isinstance(text, str) or _TEXT.fullmatch(text.strip()) is None:
            problem = "it is empty" if text == "" else "it has other characters"
            raise InvalidValueError(
                f"token: must be one that the curator made, of letters, digits and ._~+/=-; {problem} ({source}); "
                "give it without quotes or spaces"
            ) from None
        self._text, self.source, self.is_kept = text.strip(), source, is_kept

    def __repr__(self) -> str:
        return "<Token>"

    def header(self) -> str:
        """The value of the header ``Authorization``."""
        return f"Bearer {self._text}"

    def renew(self) -> bool:
        """Whether another token can be made after the service has refused this one."""
        return False

    def keep(self, origin: Origin) -> Path:
        """Write the token to the file of its origin, which only this user can read."""
        path = token_file(origin)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".token-")  # created with mode 0600
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(self._text + "\n")
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
        return path


def token_file(origin: Origin) -> Path:
    """The file that keeps the token of an origin."""
    folder = os.environ.get("XDG_CONFIG_HOME") or ""
    root = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return root / "dpnb" / "tokens" / quote(origin.text, safe="")


def find_token(origin: Origin) -> Token | None:
    """The token of an origin, from the environment or its file; None if neither has one.

    A file that other users could read or change is refused.
    """
    return token_of_environment(origin) or _from_file(token_file(origin))


def token_of_environment(origin: Origin) -> Token | None:
    """The token of the environment; None if there is none, or it is for another origin."""
    text = os.environ.get(VARIABLE)
    return Token(text, f"environment variable {VARIABLE}") if text and _is_meant_for(origin) else None


def _is_meant_for(origin: Origin) -> bool:
    """Whether the token of the environment may be sent to an origin.

    It belongs to the address in `SERVICE_VARIABLE`; without one, to the first origin that this process uses it for.
    """
    named = os.environ.get(SERVICE_VARIABLE)
    if named:
        return origin_of(named) == origin
    if not _used_at:
        _used_at.append(origin.text)
    return _used_at[0] == origin.text


def _other_address(origin: Origin) -> str:
    """A sentence if the token of the environment is for another address than this one; empty else."""
    if not os.environ.get(VARIABLE) or _is_meant_for(origin):
        return ""
    named = os.environ.get(SERVICE_VARIABLE)
    why = f"for {origin_of(named).text}, as {SERVICE_VARIABLE} says" if named else f"in use for {_used_at[0]}"
    return f"{VARIABLE} is set, but {why}, and is sent nowhere else. "


def _from_file(path: Path) -> Token | None:
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RequestError(
            f"token file {str(path)!r}: cannot be read ({error.strerror}); remove it, and give the token again"
        ) from None
    with os.fdopen(handle, encoding="ascii", errors="replace") as file:
        status = os.fstat(file.fileno())
        own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if not stat.S_ISREG(status.st_mode) or not own or (os.name == "posix" and status.st_mode & 0o077):
            raise RequestError(
                f"token file {str(path)!r}: must be a file of yours that only you can read; it is not; "
                f"run chmod 600 on it, and have the curator replace the token if others may have read it"
            )
        return Token(file.read(4200), f"file {path}", is_kept=True)


def ask_for_token(origin: Origin, *, refused: Credential | None = None) -> Token:
    """Prompt for the token of a service, instead of one that it has refused.

    Raises `RequestError` if nobody can be prompted, as in a script.
    """
    if not can_prompt():
        raise RequestError(
            f"service {origin.text}: needs an access token, and none was found. {_other_address(origin)}Give token=, "
            f"set {VARIABLE}, or connect once in a terminal or notebook, which offers to keep the token in "
            f"{str(token_file(origin))!r}"
        )
    why = "" if refused is None else f"The service refused the token from {refused.source}. "
    return Token(getpass.getpass(f"{why}{_other_address(origin)}Access token for {origin.text}: "), "prompt")


def offer_to_keep(token: Token, origin: Origin) -> None:
    """Keep a token that was typed and has worked, if the user wants that."""
    path = token_file(origin)
    with suppress(EOFError):
        if input(f"Keep the token in {path}, which only you can read? [y/N] ").strip().lower() in ("y", "yes"):
            token.keep(origin)


def can_prompt() -> bool:
    """Whether a user can type: in a terminal, or in a kernel, which replaces `getpass.getpass`."""
    if getpass.getpass.__module__ != "getpass":
        return True
    return sys.stdin is not None and sys.stdin.isatty()
