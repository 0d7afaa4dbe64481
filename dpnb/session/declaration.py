"""The arguments of `Session` by name, and the TOML file in which a curator declares them.

The keys are the keyword arguments of `Session`; columns and the budget are written as tables::

    name = "rand-hie"
    privacy_unit = "zper"
    max_rows_per_unit = 5
    public_size = 6000

    [budget]                      # epsilon, delta and optionally discovery_delta, pure_epsilon; or mu; or pure_epsilon;
                                  # or above it budget = "none"
    epsilon = 1.0
    delta = 1e-6

    [schema]                      # of several tables [schema.visits], [schema.drugs], ...
    mdvis = { type = "bounded", low = 0, high = 77 }
    coins = { type = "categories", values = [0, 25, 50, 95, 100] }

The rules are those of the argument or class of the same name; an error begins with the file and the line.  A relative
ledger path, and the default path, are resolved against the file's folder, so that the ledger does not depend on the
working directory; so is ``values_file``, which a column of categories may have in place of ``values``.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, TypeVar, get_args

import msgspec

from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._core.unit_budgets import Accounting
from dpnb._plan.privacy_unit import UnitType
from dpnb._sources.source import DataSource
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import Number
from dpnb.accounting.guarantee import FilterName
from dpnb.accounting.individual import OnExhausted
from dpnb.errors import DpnbError, InvalidValueError, SchemaError
from dpnb.ledger import MEMORY
from dpnb.results.disclosure.parts import STATED, StatementText
from dpnb.schema import Categories, ColumnType, DeclaredColumn
from dpnb.session.toml_file import NOT_STATED, VALUES_FILE, KeyPath, TomlFile, near, read_toml, read_values

Columns = Mapping[str, DeclaredColumn]


Sampled = Literal["population", "census"] | Number
"""What the units of a table are: see `Session`."""


class SessionOptions(TypedDict, total=False):
    """The named arguments of `Session`, for `Session.rehearse`."""

    name: Required[str]
    budget: Required[Budget | None]
    schema: Required[Columns | Mapping[str, Columns]]
    privacy_unit: str | None
    max_rows_per_unit: int | Mapping[str, int] | None
    max_groups_per_unit: int | Mapping[str, int] | None
    max_rows_per_group: int | Mapping[str, int] | None
    max_norm_per_unit: float | Mapping[str, float] | None
    unit_type: UnitType | None
    missing: Sequence[str]
    separator: str
    decimal: str
    encoding: str
    date_format: str
    public_size: int | None
    public_rows: int | Mapping[str, int] | None
    sampled: Sampled | None
    statement: StatementText | Mapping[str, str] | None
    unit_label: str | None
    version: str
    ledger: str | os.PathLike[str] | None
    filter: FilterName
    accounting: Accounting
    on_exhausted: OnExhausted | None
    odometer_delta: Number | None
    not_private_test_seed: int | None


# --- the values that a drafted declaration leaves open ----------------------------------------------------------------


PLACEHOLDER = "FILL IN"
"""What ``python -m dpnb draft`` writes in place of a value that must come from knowledge outside the table."""

REMEDIES = {
    "low": "the smallest value that the column can have",
    "high": "the largest value that the column can have",
    "first": "the earliest date that the column can have, such as 2024-01-01",
    "last": "the latest date that the column can have, such as 2024-12-31",
    "values": 'the list of its categories, such as ["north", "south"], or values_file = "codes.txt" for a long one; or '
    'type = "text" without this line',
    "type": '"bounded", "categories", "dates" or "text", with the other keys of that type',
    "privacy_unit": "the column that identifies the privacy unit, or delete the line if every row is a unit",
    "max_rows_per_unit": "how many rows of a unit count, or delete the line if every row is a unit",
    "epsilon": "the total privacy budget, such as 1.0",
    "delta": "a number much less than 1 / the number of units, such as 1e-6",
}
"""What to write instead, by the key."""


def placeholders(content: Mapping[str, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    """The keys whose values are still placeholders, in the order of the file."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from placeholders(value, (*above, key))
        elif value == PLACEHOLDER or (isinstance(value, list) and PLACEHOLDER in value):
            yield (*above, key)


def remedy(keys: KeyPath) -> str:
    """What to write instead of one placeholder."""
    at = next((key for key in (keys[-1], keys[0]) if key in REMEDIES), None)
    what = "the value" if at is None else REMEDIES[at]
    source = " (from public knowledge such as a codebook, not from the table)" if keys[0] == "schema" else ""
    return f"write {what}{source}"


# --- the TOML file in which a curator declares a session --------------------------------------------------------------


T = TypeVar("T")

NO_BUDGET = "none"
"""The value of ``budget`` that declares that there is none; a file without ``budget`` is refused."""

COLUMN_TYPES = {str(kind.__struct_config__.tag): kind for kind in get_args(ColumnType)}

COLUMN_NAME = re.compile(r"""column ('[^']*'|"[^"]*")""")
QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")


@dataclass(frozen=True, repr=False)
class Declaration(TomlFile):
    """The content of one declaration file."""

    known: dict[str, bool]  # the allowed keys, and whether each is required

    @property
    def several(self) -> bool:
        """Whether the schema has several tables, each a mapping of names to columns."""
        schema = self.content.get("schema")
        return isinstance(schema, dict) and any(map(_is_table, schema.values()))

    def open_session(self, make: Callable[..., T], unread: UnreadTables) -> T:
        """Create the declared session on a table.

        `make` is `Session`, or has the same arguments.  A table may be the name of its source, which is read as
        declared.  An error is the usual one, preceded by the file and the line.
        """
        arguments = self.arguments()
        if self.several and not unread.several and unread.tables[""] is not None:
            names = ", ".join(map(repr, self.content["schema"]))
            raise self.fault(
                SchemaError, ("schema",), f"schema: has the tables {names}; got one table; pass a dict with these names"
            )
        named = {name: os.fspath(one) for name, one in unread.tables.items() if isinstance(one, str | os.PathLike)}
        if named:
            from dpnb._sources.formats import read_tables  # imported when first used, since it imports pandas

            declared = self.located(lambda: PrivateTables.of_arguments(arguments, several=self.several))
            sources = {name: DataSource.parse(source, argument="table") for name, source in named.items()}
            unread.tables = {**unread.tables, **read_tables(sources, "table", declared.wanted)}
        return self.located(lambda: make(unread, **arguments))

    def located(self, work: Callable[[], T]) -> T:
        """The result of `work`; an error about an argument gets the line on which the argument is declared."""
        try:
            return work()
        except (SchemaError, InvalidValueError) as error:
            kind, message = type(error), str(error)
        keys = self._keys_of(message)
        raise self.fault(kind, keys, message) if keys else kind(message)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Session`, without the table; their values are checked where they are used."""
        self._refuse_placeholders()
        self.refuse_keys(self.content, self.known, ())
        arguments = {**self.content, "budget": self._budget(), "schema": self._schema()}
        if "statement" in arguments:
            arguments["statement"] = self._statement()
        return {**arguments, "ledger": self._ledger()}

    # --- arguments written as TOML tables ------------------------------------------------------------------------

    def _budget(self) -> Budget | None:
        entry = self.content["budget"]
        if entry == NO_BUDGET:
            return None
        if not isinstance(entry, dict):
            raise self.fault(
                InvalidValueError,
                ("budget",),
                f"budget: must be a table with epsilon and delta, or with mu; got {entry!r}; write a line [budget] and "
                "below it epsilon = 1.0 and delta = 1e-6",
            )
        make = Budget.gdp if "mu" in entry else Budget.pure if entry.keys() == {"pure_epsilon"} else Budget
        return self._construct(make, _parameters(make), entry, ("budget",))

    def _statement(self) -> StatementText:
        entry, at = self.content["statement"], ("statement",)
        if not isinstance(entry, dict):
            rule = "must be a table of texts"
            example = "write a line [statement] and below it for example title = 'Stays in hospitals'"
            raise self.fault(InvalidValueError, at, f"statement: {rule}; got {entry!r}; {example}")
        return self._construct(StatementText, dict.fromkeys(STATED, False), entry, at)

    def _schema(self) -> Any:
        schema = self.content["schema"]
        if not isinstance(schema, dict):
            return schema  # refused where it is used
        return {
            name: {column: self._column(one, ("schema", name, column)) for column, one in entry.items()}
            if _is_table(entry)
            else self._column(entry, ("schema", name))
            for name, entry in schema.items()
        }

    def _column(self, entry: Any, at: KeyPath) -> ColumnType:
        key, types = ".".join(at), ", ".join(f'"{name}"' for name in COLUMN_TYPES)
        if not isinstance(entry, dict) or "type" not in entry:
            raise self.fault(
                SchemaError,
                at,
                f"{key}: must be a table with a type, one of {types}; got {entry!r}; write for example "
                f'{{ type = "bounded", low = 0, high = 100 }}',
            )
        tag = entry["type"]
        if not isinstance(tag, str) or tag not in COLUMN_TYPES:
            similar = near(tag, COLUMN_TYPES)
            raise self.fault(SchemaError, (*at, "type"), f"{key}.type: must be one of {types}; got {tag!r}{similar}")
        kind = COLUMN_TYPES[tag]
        known = {field.name: field.required for field in msgspec.structs.fields(kind)}
        make: Callable[..., ColumnType] = kind
        if kind is Categories:
            known, make = {"values": VALUES_FILE not in entry, VALUES_FILE: False}, self._categories
        return self._construct(make, known, {k: v for k, v in entry.items() if k != "type"}, at)

    def _categories(self, values: Any = (), values_file: object = None) -> Categories:
        if values_file is None:
            return Categories(values)
        if values or not isinstance(values_file, str) or not values_file:
            raise SchemaError(
                f"{VALUES_FILE}: must be the path of a file, in place of values; got {values_file!r}"
                f"{' and values' if values else ''}; write for example {VALUES_FILE} = 'codes.txt'"
            )
        missing = self.content.get("missing")
        texts = [text for text in missing if isinstance(text, str)] if isinstance(missing, list) else []
        return Categories(read_values(Path(self.path).parent / values_file, texts))

    def _construct(self, make: Callable[..., T], known: Mapping[str, bool], entry: dict[str, Any], at: KeyPath) -> T:
        self.refuse_keys(entry, known, at)
        try:
            return make(**entry)
        except DpnbError as error:
            kind, message = type(error), str(error)
        at_fault = next((word for word in re.findall(r"\w+", message) if word in entry), None)
        raise self.fault(kind, (*at, at_fault) if at_fault else at, f"{'.'.join(at)}: {message}")

    def _ledger(self) -> object:
        folder, name, ledger = Path(self.path).absolute().parent, self.content.get("name"), self.content.get("ledger")
        if ledger is None:
            return str(folder / f"{name}.dpnb")
        return str(folder / ledger) if isinstance(ledger, str) and ledger and ledger != MEMORY else ledger

    # --- errors ----------------------------------------------------------------------------------------------------

    def _refuse_placeholders(self) -> None:
        """Refuse a draft that the curator has not completed."""
        first, *others = [*placeholders(self.content)] or [()]
        if first:
            lines = sorted({self.lines[keys] for keys in others if keys in self.lines})
            more = f"; {len(others)} more: {describe_lines(lines)}" if others else ""
            raise self.fault(
                SchemaError,
                first,
                f"{'.'.join(first)}: still has the placeholder {PLACEHOLDER!r}; {remedy(first)}{more}",
            )

    def _keys_of(self, message: str) -> KeyPath:
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


DRAFT = (
    "check the path, or write a first declaration of a table in a terminal by python -m dpnb draft table.csv, and "
    "complete it; without a file, pass its keys as in dpnb.Session(table, name=..., budget=..., schema=...)"
)


def read_declaration(path: str | os.PathLike[str], session: Callable[..., Any]) -> Declaration:
    """Read a declaration file; its keys are the arguments of `session` except for the first."""
    file = read_toml(path, "rand-hie.toml", DRAFT)
    known = dict([*_parameters(session).items()][1:])
    known.pop(NOT_STATED, None)
    return Declaration(file.path, file.text, file.content, file.lines, known)


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
