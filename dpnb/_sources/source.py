"""Where a table is, as one text that is written the same everywhere; a URL holds no password."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote, urlsplit

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


URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

QUERY = re.compile(r"#\s*(?=(select|with)\s)", re.IGNORECASE)
"""After which a query stands, instead of the name of a table."""

SQLITE = "sqlite:///"
"""Before the path of a file."""

TABLES_IN = (".xlsx", ".xlsm", ".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
"""Suffixes of files that have several tables, of which ``#TABLE`` names one."""

NAMED = re.compile(rf"(.*?(?:{'|'.join(map(re.escape, TABLES_IN))}))#(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class DataSource:
    """A file or a folder, ``PATH``; a table in it, ``PATH#TABLE``; one in a database, ``URL#TABLE``, or a query."""

    location: str  # the path or the URL
    table: str = ""  # in a file or a database; empty for none
    query: str = ""  # of a database, instead of a table

    @classmethod
    def parse(cls, text: str, query: str = "", argument: str = "") -> Self:
        """The source that a text names; `argument` is what errors begin with."""
        if URL.match(text) and not query and (asked := QUERY.search(text)):
            text, query = text[: asked.start()], text[asked.end() :]
        refuse_secrets(text, argument)
        if URL.match(text):
            location, _, table = text.partition("#")
            return cls(location, table, query)
        named = NAMED.fullmatch(text)
        return cls(named[1], named[2], query) if named else cls(text, "", query)

    @property
    def scheme(self) -> str:
        """The scheme of a URL, in lower case; empty for a file."""
        url = URL.match(self.location)
        return url[1].lower() if url else ""

    @property
    def path(self) -> Path:
        """The file or the folder."""
        return Path(self.location)

    @property
    def words(self) -> str:
        """The source as messages name it, without the user, the password and the parameters of a URL."""
        named = f"#{self.table}" if self.table else ""
        if not self.scheme:
            return f"{self.location}{named}"
        parts = urlsplit(self.location)
        return f"{self.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{named}"

    @property
    def written(self) -> str:
        """The source as its curator writes it, for the curator's terminal alone."""
        named = self.table or self.query
        return f"{self.location}#{named}" if named else self.location

    def beside(self, folder: Path) -> Self:
        """The same source, with a relative path resolved against a folder."""
        if self.scheme:
            file = self.location.partition(SQLITE)[2]
            return replace(self, location=f"{SQLITE}{folder / file}") if file else self
        return replace(self, location=str(folder / self.location))


def refuse_unfinished(path: Path, suffix: str) -> None:
    """Refuse a database file beside which another file has changes that are not in it yet."""
    beside = path.with_name(f"{path.name}{suffix}")
    if beside.exists() and beside.stat().st_size:
        raise SchemaError(
            f"the file {beside.name!r} beside it has changes that are not in it yet; close the program that writes it"
        )


def named_source(text: str) -> tuple[str, str]:
    """The name of a table and the text of its source, of an argument ``NAME=SOURCE``; without a name it is empty."""
    name, equals, source = text.partition("=")
    return (name, source) if equals and not URL.match(name) else ("", text)


def sources_of(arguments: Sequence[str], tables: Sequence[str], argument: str) -> dict[str, DataSource]:
    """The source of each declared table, from arguments ``SOURCE`` for a single table, ``NAME=SOURCE`` for several."""
    if list(tables) == [""]:
        if len(arguments) != 1:
            raise SchemaError(f"{argument}: there is one table; got {len(arguments)} sources; give one FILE")
        return {"": DataSource.parse(arguments[0], argument=argument)}
    known = ", ".join(tables)
    found: dict[str, DataSource] = {}
    for text in arguments:
        name, written = named_source(text)
        source = DataSource.parse(written, argument=argument)
        if name not in tables or name in found:
            got = f"{name}={source.words}" if name else source.words
            raise SchemaError(f"{argument}: must be NAME=FILE, once for each of the tables {known}; got {got!r}")
        found[name] = source
    missing = [name for name in tables if name not in found]
    if missing:
        raise SchemaError(f"{argument}: must be given for each of the tables {known}; add {missing[0]}=FILE")
    return found
