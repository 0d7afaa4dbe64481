"""Opening a session on a table of a service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dpnb.errors import AccessDenied, InvalidValueError, RequestError
from dpnb.remote.hub import hub_address, hub_token
from dpnb.remote.tokens import (
    EXAMPLES,
    SERVICE_VARIABLE,
    Credential,
    Origin,
    Token,
    ask_for_token,
    can_prompt,
    find_token,
    offer_to_keep,
    origin_of,
    token_of_environment,
)
from dpnb.wire.messages import Table

if TYPE_CHECKING:
    from dpnb.remote.channel import Channel
    from dpnb.remote.session import RemoteSession

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


def connect(address: str | None = None, table: str | None = None, *, token: str | None = None) -> RemoteSession:
    """Open a session on a table that a curator's service holds.

    The session has the same methods as a `Session`, but neither the table nor the ledger is in this process: the
    service charges and answers each release, and everything that is free is computed here from a copy of the analyst's
    own rows of the ledger.

    Parameters
    ----------
    address : str, optional
        The address of the service: ``https://host:port``, ``unix:///path/to/socket`` for a service on this machine, or
        ``http://localhost:port``, for example through an SSH tunnel.  Plain HTTP to another machine is refused.  By
        default it is taken from the environment variable ``DPNB_SERVICE``; in a notebook server of JupyterHub, it may
        also follow from the public address of the Hub.
    table : str, optional
        Name of the table; it may be omitted if the token gives access to one table only.
    token : str, optional
        The access token that the curator made.  By default it is taken from the environment variable ``DPNB_TOKEN``
        (for the address in ``DPNB_SERVICE``; without that variable, for the first address used), or in a notebook
        server of JupyterHub made by the Hub, for the address that the Hub's configuration names, or from a file that
        only this user can read, or else prompted for, also if the one in the file is refused.  Do not write it in a
        notebook.  It is sent to this address only, and redirections are not followed.

    Returns
    -------
    RemoteSession

    Raises
    ------
    InvalidValueError
        If the address is invalid, missing or is plain HTTP to another machine, or there is no such table.
    RequestError
        If there is no token, or an extra is not installed.
    AccessDenied
        If the service refuses the token, or JupyterHub makes none.
    ServiceUnavailable
        If the service or JupyterHub cannot be reached.
    ServiceError
        If the service uses another version of the messages.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     dpnb.connect("http://dp.example.org", table="visits")
    ... except dpnb.errors.InvalidValueError as error:
    ...     print(textwrap.fill(str(error), 66))
    address: plain http would show the token and the answers to the
    network; got 'http://dp.example.org'; use https, or
    http://localhost through an SSH tunnel
    """
    given = None if token is None else Token(token, "token=")
    token = None  # tracebacks of what follows show this frame
    origin = origin_of(_known_address() if address is None else address)
    name = None if table is None else checked_table(table)
    found = given or find_credential(origin)
    if found is not None:
        try:
            return _opened(origin, found, name)
        except AccessDenied as error:
            if not (isinstance(found, Token) and found.is_kept and can_prompt()):
                raise AccessDenied(f"{error}; the refused one is from: {found.source}") from None
    typed = ask_for_token(origin, refused=found)
    session = _opened(origin, typed, name)
    offer_to_keep(typed, origin)
    return session


def _opened(origin: Origin, token: Credential, name: str | None) -> RemoteSession:
    channel = open_channel(origin, token)
    from dpnb.remote.session import RemoteSession  # after the check that httpx is installed

    try:
        path = f"tables/{_offered(channel, name)}"
        return RemoteSession(channel, path, channel.get(path, Table, retry_seconds=0))
    except BaseException:
        channel.close()
        raise


def _known_address() -> str:
    """The address that the environment names; `InvalidValueError` if it names none."""
    address = hub_address()
    if address is None:
        raise InvalidValueError(
            f"address: required where the environment does not name the service; got None; use {EXAMPLES}, or set "
            f"{SERVICE_VARIABLE}"
        )
    return address


def find_credential(origin: Origin) -> Credential | None:
    """The token of an origin: from the environment, from JupyterHub or from its file; None without one."""
    return token_of_environment(origin) or hub_token(origin) or find_token(origin)


def open_channel(origin: Origin, token: Credential) -> Channel:
    """The connection to a service; `RequestError` if an extra is not installed."""
    try:
        from dpnb.remote.channel import Channel
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise RequestError(
            'connect: needs the package httpx; it is not installed; pip install "dpnb[remote]"'
        ) from None
    return Channel(origin, token)


def _offered(channel: Channel, name: str | None) -> str:
    """The name of a table of the service: the one that is given, or the only one."""
    names = channel.get("tables", tuple[str, ...], retry_seconds=0)
    shown = f"the tables are {', '.join(map(repr, names))}" if names else "it has no table now"
    if name is None and len(names) != 1:
        raise InvalidValueError(
            f"table: required, since the token gives access to {len(names)} tables of {channel.where}; got None; "
            f"{shown}"
        )
    if name is not None and name not in names:
        raise InvalidValueError(f"table: must be one of {channel.where}; got {name!r}; {shown}")
    return checked_table(names[0] if name is None else name)


def checked_table(table: object) -> str:
    """The name of a table, if an address may contain it."""
    if not isinstance(table, str) or _NAME.fullmatch(table) is None or not table.strip("."):
        raise InvalidValueError(
            f"table: must be the name of a table of the service, of letters, digits, '.', '_' and '-'; got {table!r}"
        )
    return table
