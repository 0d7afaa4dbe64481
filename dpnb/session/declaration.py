"""The TOML file in which a curator states a session, without its table.

The keys are the keyword arguments of `Session`; columns and the budget are written as tables::

    name = "rand-hie"
    privacy_unit = "zper"
    max_rows_per_unit = 5
    public_size = 6000

    [budget]                      # epsilon, delta and maybe discovery_delta; or mu
    epsilon = 1.0
    delta = 1e-6

    [schema]                      # of several tables [schema.visits], [schema.drugs], ...
    mdvis = { type = "bounded", low = 0, high = 77 }
    coins = { type = "categories", values = [0, 25, 50, 95, 100] }

The rules are those of the argument or class of the same name; an error begins with the file and the line.  A relative
path of a ledger, and the default one, start from the file's folder, so that the ledger is the same wherever the file is
opened from.
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
from dpnb.session.toml_lines import Keys, lines_of

T = TypeVar("T")

NOT_STATED = "not_private_test_seed"
"""The one argument that is for tests only, so that no file states it."""

COLUMN_TYPES = {str(kind.__struct_config__.tag): kind for kind in get_args(ColumnType)}

PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
"""How `tomllib` says where a file is not valid TOML."""

SAID_OF_COLUMN = re.compile(r"""column ('[^']*'|"[^"]*")""")
QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")


@dataclass(frozen=True, repr=False)
class Declaration:
    """What one file states.

    Parameters
    ----------
    path : str
        As it was given.
    text : str
        Of the file.
    content : dict
        As it reads in TOML.
    known : dict of str to bool
        The allowed keys, and whether each is required.
    lines : dict of tuple to int
        On which line each key is.
    """

    path: str
    text: str
    content: dict[str, Any]
    known: dict[str, bool]
    lines: dict[Keys, int]

    @property
    def several(self) -> bool:
        """Whether the schema has several tables: mappings of names to columns."""
        schema = self.content.get("schema")
        return isinstance(schema, dict) and any(map(_is_table, schema.values()))

    def locate(self, *keys: str) -> str:
        """File and line of a key; if it is missing, of what should hold it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return f"{self.path}, line {self.lines[keys]}" if keys else self.path

    def open_session(self, make: Callable[..., T], unread: UnreadTables) -> T:
        """Make a session of the table, as stated.

        Parameters
        ----------
        make : callable
            `Session`, or what takes its arguments.
        unread : Unread
            The table.

        Raises
        ------
        SchemaError, InvalidValueError
            An argument breaks a rule; the usual message, after the file and the line.
        """
        arguments = self.arguments()
        if self.several and not unread.several and unread.tables[""] is not None:
            names = ", ".join(map(repr, self.content["schema"]))
            raise self._fault(
                SchemaError, ("schema",), f"schema: has the tables {names}; got one table; pass a dict with these names"
            )
        return self.located(lambda: make(unread, **arguments))

    def located(self, work: Callable[[], T]) -> T:
        """The result of `work`; an error about an argument says on which line that is stated."""
        try:
            return work()
        except (SchemaError, InvalidValueError) as error:
            kind, said = type(error), str(error)
        keys = self._keys_of(said)
        raise self._fault(kind, keys, said) if keys else kind(said)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Session`, without the table; their values are checked where they are used.

        Raises
        ------
        SchemaError, InvalidValueError
            A key is not known or missing, or a column or the budget breaks a rule.
        """
        self._refuse_keys(self.content, self.known, ())
        made = {**self.content, "budget": self._budget(), "schema": self._schema()}
        return {**made, "ledger": self._ledger()}

    # --- what is written as a table ------------------------------------------------------------------------------

    def _budget(self) -> Budget:
        given = self.content["budget"]
        if not isinstance(given, dict):
            raise self._fault(
                InvalidValueError,
                ("budget",),
                f"budget: must be a table with epsilon and delta, or with mu; got {given!r}; write a line [budget] and "
                "below it epsilon = 1.0 and delta = 1e-6",
            )
        make = Budget.gdp if "mu" in given else Budget
        return self._made(make, _parameters(make), given, ("budget",))

    def _schema(self) -> Any:
        given = self.content["schema"]
        if not isinstance(given, dict):
            return given  # refused where it is used
        return {
            name: self._columns(one, ("schema", name)) if _is_table(one) else self._column(one, ("schema", name))
            for name, one in given.items()
        }

    def _columns(self, given: dict[str, Any], at: Keys) -> dict[str, ColumnType]:
        return {name: self._column(one, (*at, name)) for name, one in given.items()}

    def _column(self, given: Any, at: Keys) -> ColumnType:
        said, types = ".".join(at), ", ".join(f'"{name}"' for name in COLUMN_TYPES)
        if not isinstance(given, dict) or "type" not in given:
            raise self._fault(
                SchemaError,
                at,
                f"{said}: must be a table with a type, one of {types}; got {given!r}; write for example "
                f'{{ type = "bounded", low = 0, high = 100 }}',
            )
        tag = given["type"]
        if not isinstance(tag, str) or tag not in COLUMN_TYPES:
            near = _near(tag, COLUMN_TYPES)
            raise self._fault(SchemaError, (*at, "type"), f"{said}.type: must be one of {types}; got {tag!r}{near}")
        kind = COLUMN_TYPES[tag]
        known = {field.name: field.required for field in msgspec.structs.fields(kind)}
        column: ColumnType = self._made(kind, known, {k: v for k, v in given.items() if k != "type"}, at)
        return column

    def _made(self, make: Callable[..., T], known: Mapping[str, bool], given: dict[str, Any], at: Keys) -> T:
        self._refuse_keys(given, known, at)
        try:
            return make(**given)
        except DpnbError as error:
            kind, said = type(error), str(error)
        at_fault = next((word for word in re.findall(r"\w+", said) if word in given), None)
        raise self._fault(kind, (*at, at_fault) if at_fault else at, f"{'.'.join(at)}: {said}")

    def _ledger(self) -> object:
        folder, name, given = Path(self.path).absolute().parent, self.content.get("name"), self.content.get("ledger")
        if given is None:
            return str(folder / f"{name}.dpnb")
        return str(folder / given) if isinstance(given, str) and given and given != MEMORY else given

    # --- errors ----------------------------------------------------------------------------------------------------

    def _fault(self, kind: type[DpnbError], keys: Keys, said: str) -> DpnbError:
        return kind(f"{self.locate(*keys)}: {said}")

    def _refuse_keys(self, given: Mapping[str, Any], known: Mapping[str, bool], at: Keys) -> None:
        """Refuse unknown keys and missing ones; `known` says which are required."""
        listed = ", ".join(known)
        where = f" in {'.'.join(at)}" if at else ""
        for key in given:
            if key not in known:
                why = "is only for tests, in Python" if key == NOT_STATED else "is not a key"
                raise self._fault(
                    InvalidValueError,
                    (*at, key),
                    f"{key!r} {why}{where}{_near(key, known)}; the keys are {listed}; correct it or remove it",
                )
        for key, needed in known.items():
            if needed and key not in given:
                raise self._fault(InvalidValueError, at, f"{key!r} is missing{where}; add it; the keys are {listed}")

    def _keys_of(self, said: str) -> Keys:
        """The key that an error is about, if its text begins with an argument or a column; otherwise ()."""
        found = SAID_OF_COLUMN.match(said)
        if found is not None:
            quoted = QUOTED.findall(said)
            paths = [path for path in self.lines if path[0] == "schema" and repr(path[-1]) == found[1]]
            told = [path for path in paths if any(repr(name) in quoted for name in path[1:-1])]
            if paths:
                return (told or paths)[0]
            return ("privacy_unit",) if repr(self.content.get("privacy_unit")) == found[1] else ()
        first = said.partition(":")[0].split(" ")[0].partition("[")[0]
        key = "schema" if first == "tables" else first
        value = self.content.get(key)
        names = {repr(name): name for name in value} if isinstance(value, dict) else {}
        inner = [names[quoted] for quoted in QUOTED.findall(said) if quoted in names]
        return (key, *inner[:1]) if key in self.content else ()


def read_declaration(path: str | os.PathLike[str], session: Callable[..., Any]) -> Declaration:
    """Read a curator's file.

    Parameters
    ----------
    path : str or path
    session : callable
        `Session`; the file may state its arguments except for the first.

    Raises
    ------
    InvalidValueError
        There is no such file, or it is not TOML.
    """
    given: object = path
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise InvalidValueError(f"path: must be that of a TOML file; got {path!r}; give for example 'rand-hie.toml'")
    name = os.fspath(path)
    try:
        text = Path(name).read_bytes().decode()
    except (OSError, ValueError) as error:
        fault = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
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
        said = str(error)
        place = PLACE.search(said)
        line = place[1] or str(text.count("\n") + 1) if place else None
        where, fault = f", line {line}" if line else "", PLACE.sub("", said)
    raise InvalidValueError(f"{name}{where}: must be TOML; {fault}; see https://toml.io for how it is written")


def _parameters(make: Callable[..., Any]) -> dict[str, bool]:
    """The parameters of a callable, and whether each is required."""
    return {name: one.default is one.empty for name, one in inspect.signature(make).parameters.items()}


def _is_table(given: object) -> bool:
    """Whether an entry of the schema is a table of columns, not a column."""
    return isinstance(given, dict) and bool(given) and all(isinstance(one, dict) for one in given.values())


def _near(word: object, known: Iterable[str]) -> str:
    """A question that suggests the most similar known word, if any."""
    near: Sequence[str] = get_close_matches(word, list(known), 1) if isinstance(word, str) else ()
    return f"; did you mean {near[0]!r}?" if near else ""
