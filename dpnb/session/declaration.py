"""The TOML file in which a curator declares a session, without its table.

The keys are the keyword arguments of `Session`; columns and the budget are written as tables::

    name = "rand-hie"
    privacy_unit = "zper"
    max_rows_per_unit = 5
    public_size = 6000

    [budget]                      # epsilon, delta and optionally discovery_delta, pure_epsilon; or mu; or pure_epsilon
    epsilon = 1.0
    delta = 1e-6

    [schema]                      # of several tables [schema.visits], [schema.drugs], ...
    mdvis = { type = "bounded", low = 0, high = 77 }
    coins = { type = "categories", values = [0, 25, 50, 95, 100] }

The rules are those of the argument or class of the same name; an error begins with the file and the line.  A relative
ledger path, and the default path, are resolved against the file's folder, so that the ledger does not depend on the
working directory.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from dpnb._core.tables import UnreadTables
from dpnb._plan.schema import ColumnType
from dpnb.accounting.budget import Budget
from dpnb.errors import DpnbError, InvalidValueError, SchemaError
from dpnb.ledger import MEMORY
from dpnb.session.placeholders import PLACEHOLDER, placeholders, remedy
from dpnb.session.toml_lines import Keys, lines_of

T = TypeVar("T")

NOT_STATED = "not_private_test_seed"
"""The one argument that a file cannot contain, since it is for tests only."""

COLUMN_TYPES = {str(kind.__struct_config__.tag): kind for kind in get_args(ColumnType)}

ERROR_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
"""How `tomllib` reports the position of a syntax error."""

COLUMN_NAME = re.compile(r"""column ('[^']*'|"[^"]*")""")
QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")


@dataclass(frozen=True, repr=False)
class Declaration:
    """The content of one declaration file.

    Parameters
    ----------
    path : str
        Path of the file, as the caller wrote it.
    text : str
        Text of the file.
    content : dict
        The parsed TOML.
    known : dict of str to bool
        The allowed keys, and whether each is required.
    lines : dict of tuple to int
        The line number of each key.
    """

    path: str
    text: str
    content: dict[str, Any]
    known: dict[str, bool]
    lines: dict[Keys, int]

    @property
    def several(self) -> bool:
        """Whether the schema has several tables, each a mapping of names to columns."""
        schema = self.content.get("schema")
        return isinstance(schema, dict) and any(map(_is_table, schema.values()))

    def locate(self, *keys: str) -> str:
        """File and line of a key; if the key is missing, of the table that should contain it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return f"{self.path}, line {self.lines[keys]}" if keys else self.path

    def open_session(self, make: Callable[..., T], unread: UnreadTables) -> T:
        """Create the declared session on a table.

        Parameters
        ----------
        make : callable
            `Session`, or a callable with the same arguments.
        unread : UnreadTables
            The table.

        Raises
        ------
        SchemaError, InvalidValueError
            If an argument is invalid; the usual message, preceded by the file and the line.
        """
        arguments = self.arguments()
        if self.several and not unread.several and unread.tables[""] is not None:
            names = ", ".join(map(repr, self.content["schema"]))
            raise self._fault(
                SchemaError, ("schema",), f"schema: has the tables {names}; got one table; pass a dict with these names"
            )
        return self.located(lambda: make(unread, **arguments))

    def located(self, work: Callable[[], T]) -> T:
        """The result of `work`; an error about an argument gets the line on which the argument is declared."""
        try:
            return work()
        except (SchemaError, InvalidValueError) as error:
            kind, message = type(error), str(error)
        keys = self._keys_of(message)
        raise self._fault(kind, keys, message) if keys else kind(message)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Session`, without the table; their values are checked where they are used.

        Raises
        ------
        SchemaError, InvalidValueError
            If a key is unknown or missing, a placeholder is not filled in, or a column or the budget is invalid.
        """
        self._refuse_placeholders()
        self._refuse_keys(self.content, self.known, ())
        arguments = {**self.content, "budget": self._budget(), "schema": self._schema()}
        return {**arguments, "ledger": self._ledger()}

    # --- arguments written as TOML tables ------------------------------------------------------------------------

    def _budget(self) -> Budget:
        entry = self.content["budget"]
        if not isinstance(entry, dict):
            raise self._fault(
                InvalidValueError,
                ("budget",),
                f"budget: must be a table with epsilon and delta, or with mu; got {entry!r}; write a line [budget] and "
                "below it epsilon = 1.0 and delta = 1e-6",
            )
        make = Budget.gdp if "mu" in entry else Budget.pure if entry.keys() == {"pure_epsilon"} else Budget
        return self._construct(make, _parameters(make), entry, ("budget",))

    def _schema(self) -> Any:
        schema = self.content["schema"]
        if not isinstance(schema, dict):
            return schema  # refused where it is used
        return {
            name: self._columns(one, ("schema", name)) if _is_table(one) else self._column(one, ("schema", name))
            for name, one in schema.items()
        }

    def _columns(self, entries: dict[str, Any], at: Keys) -> dict[str, ColumnType]:
        return {name: self._column(one, (*at, name)) for name, one in entries.items()}

    def _column(self, entry: Any, at: Keys) -> ColumnType:
        key, types = ".".join(at), ", ".join(f'"{name}"' for name in COLUMN_TYPES)
        if not isinstance(entry, dict) or "type" not in entry:
            raise self._fault(
                SchemaError,
                at,
                f"{key}: must be a table with a type, one of {types}; got {entry!r}; write for example "
                f'{{ type = "bounded", low = 0, high = 100 }}',
            )
        tag = entry["type"]
        if not isinstance(tag, str) or tag not in COLUMN_TYPES:
            near = _near(tag, COLUMN_TYPES)
            raise self._fault(SchemaError, (*at, "type"), f"{key}.type: must be one of {types}; got {tag!r}{near}")
        kind = COLUMN_TYPES[tag]
        known = {field.name: field.required for field in msgspec.structs.fields(kind)}
        column: ColumnType = self._construct(kind, known, {k: v for k, v in entry.items() if k != "type"}, at)
        return column

    def _construct(self, make: Callable[..., T], known: Mapping[str, bool], entry: dict[str, Any], at: Keys) -> T:
        self._refuse_keys(entry, known, at)
        try:
            return make(**entry)
        except DpnbError as error:
            kind, message = type(error), str(error)
        at_fault = next((word for word in re.findall(r"\w+", message) if word in entry), None)
        raise self._fault(kind, (*at, at_fault) if at_fault else at, f"{'.'.join(at)}: {message}")

    def _ledger(self) -> object:
        folder, name, ledger = Path(self.path).absolute().parent, self.content.get("name"), self.content.get("ledger")
        if ledger is None:
            return str(folder / f"{name}.dpnb")
        return str(folder / ledger) if isinstance(ledger, str) and ledger and ledger != MEMORY else ledger

    # --- errors ----------------------------------------------------------------------------------------------------

    def _fault(self, kind: type[DpnbError], keys: Keys, message: str) -> DpnbError:
        return kind(f"{self.locate(*keys)}: {message}")

    def _refuse_placeholders(self) -> None:
        """Refuse a draft that the curator has not completed."""
        first, *others = [*placeholders(self.content)] or [()]
        if first:
            lines = sorted({self.lines[keys] for keys in others if keys in self.lines})
            more = f"; {len(others)} more: {describe_lines(lines)}" if others else ""
            raise self._fault(
                SchemaError,
                first,
                f"{'.'.join(first)}: still has the placeholder {PLACEHOLDER!r}; {remedy(first)}{more}",
            )

    def _refuse_keys(self, entry: Mapping[str, Any], known: Mapping[str, bool], at: Keys) -> None:
        """Refuse unknown keys and missing required keys."""
        listed = ", ".join(known)
        where = f" in {'.'.join(at)}" if at else ""
        for key in entry:
            if key not in known:
                why = "is only for tests, in Python" if key == NOT_STATED else "is not a key"
                raise self._fault(
                    InvalidValueError,
                    (*at, key),
                    f"{key!r} {why}{where}{_near(key, known)}; the keys are {listed}; correct it or remove it",
                )
        for key, required in known.items():
            if required and key not in entry:
                raise self._fault(InvalidValueError, at, f"{key!r} is missing{where}; add it; the keys are {listed}")

    def _keys_of(self, message: str) -> Keys:
        """The key that an error is about, if its message begins with an argument or a column; otherwise ()."""
        column = COLUMN_NAME.match(message)
        if column is not None:
            quoted = QUOTED.findall(message)
            paths = [path for path in self.lines if path[0] == "schema" and repr(path[-1]) == column[1]]
            of_table = [path for path in paths if any(repr(name) in quoted for name in path[1:-1])]
            if paths:
                return (of_table or paths)[0]
            return ("privacy_unit",) if repr(self.content.get("privacy_unit")) == column[1] else ()
        first = message.partition(":")[0].split(" ")[0].partition("[")[0]
        key = "schema" if first == "tables" else first
        value = self.content.get(key)
        names = {repr(name): name for name in value} if isinstance(value, dict) else {}
        inner = [names[quoted] for quoted in QUOTED.findall(message) if quoted in names]
        return (key, *inner[:1]) if key in self.content else ()


def read_declaration(path: str | os.PathLike[str], session: Callable[..., Any]) -> Declaration:
    """Read a declaration file.

    Parameters
    ----------
    path : str or path
        Path of the TOML file.
    session : callable
        `Session`; the keys of the file are its arguments except for the first.

    Raises
    ------
    InvalidValueError
        If the file does not exist or is not TOML.
    """
    argument: object = path
    if not isinstance(argument, str | os.PathLike) or not isinstance(os.fspath(argument), str):
        raise InvalidValueError(f"path: must be the path of a TOML file; got {path!r}; for example 'rand-hie.toml'")
    name = os.fspath(path)
    try:
        text = Path(name).read_bytes().decode()
    except (OSError, ValueError) as error:
        fault = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        text = None
    if text is None:
        raise InvalidValueError(f"{name}: must be a TOML file that can be read; {fault}; check the path and the file")
    try:
        known = dict([*_parameters(session).items()][1:])
        known.pop(NOT_STATED, None)
        return Declaration(name, text, tomllib.loads(text), known, lines_of(text))
    except RecursionError:
        where, fault = "", "it is nested too deeply"
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        message = str(error)
        position = ERROR_POSITION.search(message)
        line = position[1] or str(text.count("\n") + 1) if position else None
        where, fault = f", line {line}" if line else "", ERROR_POSITION.sub("", message)
    raise InvalidValueError(f"{name}{where}: must be TOML; {fault}; see https://toml.io for the syntax")


def describe_lines(lines: Sequence[int]) -> str:
    """Line numbers in words, at most a dozen."""
    shown = ", ".join(map(str, lines[:12])) + (", ..." if len(lines) > 12 else "")
    return f"{'line' if len(lines) == 1 else 'lines'} {shown}"


def _parameters(make: Callable[..., Any]) -> dict[str, bool]:
    """The parameters of a callable, and whether each is required."""
    return {name: one.default is one.empty for name, one in inspect.signature(make).parameters.items()}


def _is_table(entry: object) -> bool:
    """Whether an entry of the schema is a table of columns, not a column."""
    return isinstance(entry, dict) and bool(entry) and all(isinstance(one, dict) for one in entry.values())


def _near(word: object, known: Iterable[str]) -> str:
    """A suggestion of the most similar known word, if any."""
    near: Sequence[str] = get_close_matches(word, list(known), 1) if isinstance(word, str) else ()
    return f"; did you mean {near[0]!r}?" if near else ""
