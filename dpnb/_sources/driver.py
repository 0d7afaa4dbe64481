"""What the driver of every database shares: where it selects from, what it returns, and how its errors are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dpnb._backends.reading import Wanted
from dpnb._sources.source import DataSource
from dpnb.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")

QUERY = re.compile(r"(select|with)\b", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Selected:
    """The rows of a table, as they come."""

    header: list[str]  # the names of all columns
    schema: pa.Schema  # of those that are wanted
    batches: Iterator[pa.RecordBatch]
    untyped: frozenset[str] = (
        frozenset()
    )  # columns of texts of which neither the driver nor a declaration tells the type


class DatabaseReader(Protocol):
    """One read-only transaction."""

    def select(self, source: DataSource, wanted: Wanted) -> Selected:
        """The wanted columns; what cannot be read as declared is refused before rows are read."""

    def close(self) -> None:
        """End the transaction."""


def relation_of(source: DataSource, quoted: Callable[[str], str]) -> str:
    """What stands after FROM: the table, with its schema, or the query.

    A query in parentheses cannot write: a database refuses there everything but one SELECT.
    """
    if bool(source.table) == bool(source.query):
        raise SchemaError(
            "must name a table, as in URL#visits or URL#hospital.visits, or a query, as in URL#SELECT ...; give one"
        )
    if source.table:
        return ".".join(map(quoted, source.table.split(".")))
    query = source.query.strip().removesuffix(";")
    if not QUERY.match(query):
        raise SchemaError("query: must be one SELECT, which may begin with WITH; got another statement; correct it")
    return f"(\n{query}\n) {quoted('dpnb_source')}"


def selection(columns: str, relation: str, condition: str = "") -> str:
    """A statement; the names in it are quoted, and a query is the curator's."""
    return f"SELECT {columns} FROM {relation}{condition}"  # noqa: S608


# --- errors, which may quote a row or a password ----------------------------------------------------------------------

ACCOUNT = "check user and password, in the environment, and from where the account may connect"
TABLE = "there is no such table, or the account does not see it; write its schema before it, as in hospital.visits"
UNREACHABLE = "no database answers there; check the machine and the port, and that a firewall lets this machine through"
ENCRYPTION = (
    "the connection could not be encrypted; check the parameters of the URL, such as sslmode, and the certificate"
)
DATABASE = "there is no such database, or the account may not use it"
RIGHTS = (
    "the account may not read it; give it SELECT on the columns, and USAGE on the schema; a query names its columns"
)
SYNTAX = "the query is none that reads; try it in a client of the database"
CANCELLED = "it was cancelled, by an administrator or a time limit of the account"

REMEDIES = {
    **dict.fromkeys(("28P01", "28000", "1045", "1698"), ACCOUNT),
    **dict.fromkeys(("3D000", "1049", "1044"), DATABASE),
    **dict.fromkeys(("42P01", "3F000", "1146"), TABLE),
    **dict.fromkeys(("42501", "1142", "1143"), RIGHTS),
    **dict.fromkeys(("42601", "42703", "0A000", "1064", "1054"), SYNTAX),
    **dict.fromkeys(("57014", "57P01", "1969", "3024"), CANCELLED),
    "2003": UNREACHABLE,
    "SQLITE_ERROR": f"{TABLE}; or {SYNTAX}",
    "SQLITE_CANTOPEN": "there is no such file, or the account may not read it",
}
"""What to do, by the code of an error."""

PHRASES = {
    "password": ACCOUNT,
    "authentication": ACCOUNT,
    "pg_hba.conf": ACCOUNT,
    "database": DATABASE,
    "role": ACCOUNT,
    "refused": UNREACHABLE,
    "translate host": UNREACHABLE,
    "timeout": UNREACHABLE,
    "route": UNREACHABLE,
    "unreachable": UNREACHABLE,
    "SSL": ENCRYPTION,
    "certificate": ENCRYPTION,
}
"""What to do about an error of libpq, which has no code where no connection was made, by a word of its message."""

CONNECTING, COLUMNS, ROWS = "connecting to it", "reading its columns", "reading its rows"

OTHERWISE = {
    CONNECTING: f"check that the database runs and can be reached; {ACCOUNT}",
    COLUMNS: f"{TABLE}; or {SYNTAX}",
    ROWS: (
        "check that the database still runs, and that no time limit of the account has ended it; in a view or a query, "
        "a row can make a cast or a division fail: write one that gives null"
    ),
}
"""What to do about another error, by the stage."""


def attempt(stage: str, work: Callable[[], T]) -> T:
    """The result of `work`; of an error of the driver, its type and code alone, and what to check."""
    try:
        return work()
    except SchemaError:
        raise
    except ModuleNotFoundError as error:
        message = f'needs {error.name}, which is not installed; pip install "dpnb[databases]", or the driver itself'
    except Exception as error:  # noqa: BLE001  (drivers raise many types)
        code = code_of(error)
        shown = f" ({code})" if code else ""
        known = [
            words for phrase, words in PHRASES.items() if stage == CONNECTING and not code and phrase in str(error)
        ]
        remedy = REMEDIES.get(code) or next(iter(known), OTHERWISE[stage])
        message = f"{stage} raised {type(error).__name__}{shown}; {remedy}"
    raise SchemaError(message)


def code_of(error: BaseException) -> str:
    """The code of an error of a database, such as its SQLSTATE; empty if it has none."""
    cause: Any = getattr(error, "orig", None) or error
    first = next(iter(getattr(cause, "args", ())), None)
    named = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    code = first if type(first) is int else named or ""
    return str(code) if re.fullmatch(r"[A-Z0-9_]{3,30}", str(code)) else ""


def batches_of(read: Iterator[T]) -> Iterator[T]:
    """The batches of a driver, whose errors are named."""
    while (batch := attempt(ROWS, lambda: next(read, None))) is not None:
        yield batch
