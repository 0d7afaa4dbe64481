"""The URL of a database: a password is never written in it, but in the environment, which the URL may name."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote

from dpnb.errors import SchemaError

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""An environment variable in the place of the user or of the password."""

HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*)(:[0-9]*)?")
"""A machine and its port, as several may be in a URL of PostgreSQL."""

SECRET = re.compile("password|passwd|passphrase|pwd|secret|token|credential|^pass$|^auth$")
"""Parts of the names of parameters that have a password as their value."""

REMEDY = "write ${NAME} in its place, and set the environment variable NAME, or use the password file of the driver"


def refuse_secrets(text: str, argument: str = "") -> None:
    """Refuse a URL, perhaps with the name of a table, in which a password may be; the error does not repeat it."""
    place = f"{argument}: " if argument else ""
    _, is_url, rest = text.partition("://")
    # Up to the last @, since a password may have any character that should have been escaped.
    account, at, address = rest.rpartition("@")
    _, colon, password = account.partition(":")
    if at and colon and not VARIABLE.fullmatch(password):
        raise SchemaError(
            f"{place}the URL must have no password in it; {REMEDY}; write an @ that is no part of an account as %40"
        )
    hosts = re.split(r"[/?#]", address, maxsplit=1)[0]
    if is_url and not all(map(HOST.fullmatch, hosts.split(","))):
        raise SchemaError(f"{place}the URL must have a number after a colon, as the port; correct it")
    # Decoded, since one may have others in it, as odbc_connect has; also where they do not belong, after the table.
    parameters = unquote(address.partition("?")[2]).lower()
    names = [name.strip() for one in re.split("[&;?#]", parameters) for name in one.split("=")[:-1]]
    if is_url and any(map(SECRET.search, names)):
        raise SchemaError(f"{place}the URL must have no password in its parameters; {REMEDY}")


def with_credentials(location: str) -> str:
    """The URL with the user and the password that it names; what is not named is left to the driver."""
    scheme, _, rest = location.partition("://")
    account, at, address = rest.rpartition("@")
    return f"{scheme}://{VARIABLE.sub(_of_environment, account)}{at}{address}"


def _of_environment(variable: re.Match[str]) -> str:
    value = os.environ.get(variable[1])
    if not value:
        raise SchemaError(f"needs the environment variable {variable[1]!r}, which is not set; set it for this process")
    return quote(value, safe="")
