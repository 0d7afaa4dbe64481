"""The private tables of a session: schema, contribution bounds, and prepared rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from dpnb._backends import TableBackend, opened
from dpnb._backends.memory.prepare.prepared_table import READING_FAILED
from dpnb._backends.reading import READING, USUAL, Reading, Wanted
from dpnb._backends.worker_thread import run_guarded
from dpnb._compile import LinearQuery, linear_query
from dpnb._compile.within import check_windows
from dpnb._compile.work import LOCAL_LIMITS, Work, work_of
from dpnb._core.source_files import TableFileCheck
from dpnb._plan.checks import check_filter
from dpnb._plan.constants import group_key_table
from dpnb._plan.join import check_parts, is_within, schema_of, unit_of
from dpnb._plan.plan import PartSource, Plan, TableSource, describe_source
from dpnb._plan.privacy_unit import PrivacyUnit, privacy_unit_from
from dpnb._plan.structure import check_structure, refuse_rows_as_units
from dpnb._target import Keys
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, PlanError, RequestError, SchemaError
from dpnb.ledger import Ledger
from dpnb.progress import Stage, work
from dpnb.schema import Added, Schema, encodable, schema_from

LIMITS = {
    "rows": "max_rows_per_unit",
    "groups": "max_groups_per_unit",
    "rows_per_group": "max_rows_per_group",
    "norm": "max_norm_per_unit",
}

MAX_COMPILED = 16
"""Number of compiled queries that are kept: one release uses its query several times."""

MAX_COMPILED_SIZE = 200_000
"""Number of features and keys of groups of the compiled queries that are kept, besides the latest query."""

CompiledKey = tuple[str, tuple[int, ...] | None, bool]
"""A plan as JSON, the subset of its cells, and whether the contribution of a unit may be scaled down."""


class UnreadTables(NotCopyable):
    """The tables that a caller passed, wrapped until they are read so that tracebacks and debuggers print no row."""

    __slots__ = ("notice", "several", "tables")

    def __init__(self, tables: Any, notice: str | None = None) -> None:
        self.notice = notice
        self.several = isinstance(tables, Mapping)
        self.tables = tables if self.several else {"": tables}

    @classmethod
    def with_tables(cls, tables: Any) -> UnreadTables:
        """Wrap tables, unless they are wrapped already."""
        return tables if isinstance(tables, cls) else cls(tables)

    def __repr__(self) -> str:
        return "<private tables>"


class PrivateTables(NotCopyable):
    """One table without a name, or several with names, that share a privacy unit.

    The name of a single table is empty in `schemas` and `units`; `reading` is how sources are
    read.
    """

    clips_units = False  # whether the contribution of a unit may be scaled down, as under ``on_exhausted="clip"``
    added: Added = ()
    """Columns that order only rows of a unit that are equal in all others, in the order in which they were added."""
    hidden: Mapping[str, Schema] = {}
    """Those of them that the session does not declare, so that no query can use them."""
    engine = "memory"  # name of the engine that holds the rows, in words; ``memory`` for none
    work_limits = LOCAL_LIMITS  # of one query or batch

    def __init__(self, schemas: dict[str, Schema], units: dict[str, PrivacyUnit], reading: Reading = USUAL) -> None:
        self.schemas = schemas
        self.units = units
        self.reading = reading
        self._opened: TableBackend | None = None
        self._files: TableFileCheck | None = None
        self._compiled: dict[CompiledKey, LinearQuery] = {}
        self._compiled_forms: dict[CompiledKey, LinearQuery] = {}  # by the plan without its filter
        self._part: PartSource | None = None

    @classmethod
    def declared(
        cls,
        schema: object,
        *,
        several: bool,
        privacy_unit: object,
        unit_type: object = None,
        reading: Reading = USUAL,
        **limits: object,
    ) -> PrivateTables:
        """The tables as declared by the curator.

        `schema` has the columns by name; for several tables, such a mapping by table name.  `limits` are those of
        `privacy_unit_from`, each a value, or for several tables a mapping by table name.
        """
        if not several:
            checked = schema_from(schema)
            return cls(
                {"": checked}, {"": privacy_unit_from(privacy_unit, checked, unit_type=unit_type, **limits)}, reading
            )
        if (
            not isinstance(schema, Mapping)
            or not schema
            or not all(isinstance(columns, Mapping) for columns in schema.values())
        ):
            raise SchemaError("schema: must map each table's name to its columns; got another structure")
        if privacy_unit is None:
            raise SchemaError("privacy_unit: required with several tables; name the column that they share")
        schemas, units = {}, {}
        for name, columns in schema.items():
            if not isinstance(name, str) or not name or not encodable(name):
                raise SchemaError(f"schema: a table's name must be a non-empty str; got {name!r}")
            schemas[name] = schema_from(columns)
            of_table = {limit: _of_table(value, name, LIMITS[limit], schema) for limit, value in limits.items()}
            units[name] = privacy_unit_from(privacy_unit, schemas[name], unit_type=unit_type, **of_table)
        return cls(schemas, units, reading)

    @classmethod
    def of_arguments(cls, arguments: Mapping[str, Any], *, several: bool) -> PrivateTables:
        """The tables that the arguments of a session declare; see `declared`."""
        return cls.declared(
            arguments.get("schema"),
            several=several,
            privacy_unit=arguments.get("privacy_unit"),
            unit_type=arguments.get("unit_type"),
            reading=Reading.declared(**{name: arguments[name] for name in READING if name in arguments}),
            **{limit: arguments.get(name) for limit, name in LIMITS.items()},
        )

    def follow(self, declared: PrivateTables) -> None:
        """Choose the rows of a unit that count as a ledger does that declares these tables; before they are read.

        Rows are ordered by the added columns up to the last one that this session has, whether it has the others or
        not; then every session of the ledger chooses the same values.
        """
        last = max((at for at, (table, name) in enumerate(declared.added) if name in self.schemas[table]), default=-1)
        self.added = declared.added[: last + 1]
        lacks = [(table, name) for table, name in self.added if name not in self.schemas[table]]
        self.hidden = {
            table: {name: declared.schemas[table][name] for of, name in lacks if of == table} for table, _ in lacks
        }

    @property
    def wanted(self) -> dict[str, Wanted]:
        """What is read of the source of each table."""
        return {name: Wanted(schema, self.units[name].column, self.reading) for name, schema in self.schemas.items()}

    @property
    def columns(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The names of the tables and of their columns, in the order of the declaration."""
        return tuple((name, tuple(schema)) for name, schema in self.schemas.items())

    def arranged(self, columns: tuple[tuple[str, tuple[str, ...]], ...]) -> PrivateTables:
        """The same unread tables with columns in another order; some of the added ones may be left out."""
        given = [(table, name) for table, names in columns for name in names]
        known = {(table, name) for table, names in self.columns for name in names}
        if {table for table, _ in columns} != self.schemas.keys() or not known - {*self.added} <= {*given} <= known:
            raise SchemaError("columns: must be those of the schema; got others")
        schemas = {name: {column: self.schemas[name][column] for column in names} for name, names in columns}
        tables = PrivateTables(schemas, {name: self.units[name] for name in schemas}, self.reading)
        tables.clips_units, tables.engine, tables.work_limits = self.clips_units, self.engine, self.work_limits
        return tables

    def read(self, unread: UnreadTables) -> None:
        """Read the tables, once; see `dpnb._backends.opened` for the supported types and the exceptions.

        Exceptions are raised without the stack frames that were reading rows.
        """
        with work(Stage.READING):
            self._opened = run_guarded(lambda: self._read(unread), READING_FAILED, public_errors=DpnbError)
        self.engine = self._opened.engine_label

    def _read(self, unread: UnreadTables) -> TableBackend:
        if set(unread.tables) != set(self.schemas):
            raise SchemaError(
                f"tables: must be those of the schema, {', '.join(map(repr, self.schemas))}; "
                f"got {', '.join(map(repr, unread.tables))}"
            )
        if unread.notice is None:  # not mock data, which has no missing values
            _refuse_other_reading(unread.tables.values(), self.reading)
        for table, columns in self.hidden.items():
            if _was_read(unread.tables[table]):  # only the declared columns
                name = next(iter(columns))
                raise SchemaError(
                    f"schema: must have column {name!r}, which another session added before the last column of this "
                    "one, and which is needed to choose the same rows of a unit; add it"
                )
        schemas = {name: {**columns, **self.hidden.get(name, {})} for name, columns in self.schemas.items()}
        return opened(unread.tables, schemas, self.units, self.added)

    def check_files(self, ledger: Ledger, version: str) -> None:
        """Record the files of this version of the tables in the ledger, or refuse other files; see `TableFileCheck`."""
        check = TableFileCheck(ledger, version, self.opened.files)
        self._files = None if check.digest is None else check

    def ready(self) -> None:
        """Check, before anything is charged, that rows can be read and that their files are unchanged."""
        self.opened.ready()
        if self._files is not None:
            self._files.refuse_changed()

    def of_part(self, part: PartSource) -> PrivateTables:
        """The same tables for the session of a part, whose queries can only be about its own rows.

        The session of a partition pays for its largest part only, so a query of other rows must not be charged there.
        """
        tables = PrivateTables(self.schemas, self.units, self.reading)
        tables._opened, tables._files, tables.clips_units = self._opened, self._files, self.clips_units
        tables.added, tables.hidden = self.added, self.hidden
        tables._part, tables.engine, tables.work_limits = part, self.engine, self.work_limits
        return tables

    def schema(self, source: TableSource) -> Schema:
        """The columns of a table or join."""
        known = self.schemas.get(source) if isinstance(source, str) else None
        return schema_of(source, self.schemas) if known is None else known

    def group_keys(self, plan: Plan, groups: object) -> Keys:
        """The keys of some groups of a query, checked; empty for None, which means all groups."""
        if groups is None:
            return ()
        if not plan.group_by:
            raise RequestError(f"groups: the {plan.words} has none; got {groups!r}")
        return group_key_table(groups, plan.group_by, self.schema(plan.source))

    def unit(self, source: TableSource) -> PrivacyUnit:
        """The privacy unit of a table or join; in a part, other rows than its own are refused."""
        if self._part is not None and not is_within(source, self._part):
            raise PlanError(
                f"table: this is a part of a table, {describe_source(self._part)}; only its rows can be queried here"
            )
        return self.units[source] if isinstance(source, str) else unit_of(source, self.units, self.schemas)

    def refuse_observed(self, plan: Plan, observations: int) -> None:
        """Refuse a query whose observations so far are above `work_limits`."""
        self.work_limits.refuse_observed(plan.words, work_of(plan, self.schema(plan.source)), observations)

    def compile(self, plan: Plan, subset: tuple[int, ...] | None = None) -> LinearQuery:
        """The linear query of a plan, for all of its cells or a subset of them.

        Refuses unbounded sensitivity, work above `work_limits`, what the table's engine cannot run, and, in a part,
        other rows than its own.
        """
        key = plan.text, subset, self.clips_units
        query = self._compiled.get(key)
        if query is None:
            form_key = replace(plan, where=None).text, subset, self.clips_units
            form = self._compiled_forms.get(form_key)
            query = self._compile_new(plan, subset) if form is None else self._with_filter(form, plan)
            if self._opened is not None:
                self._opened.refuse(query)
            _keep(self._compiled, key, query)
            _keep(self._compiled_forms, form_key, query)
        return query

    def _compile_new(self, plan: Plan, subset: tuple[int, ...] | None) -> LinearQuery:
        within_units = check_structure(plan)
        check_parts(plan.source, self.schemas, self.units)
        query = linear_query(
            plan,
            self.schema(plan.source),
            self.unit(plan.source),
            subset,
            divisible=self.clips_units,
            limits=self.work_limits,
        )
        return self._checked(query) if within_units else query

    def _checked(self, query: LinearQuery) -> LinearQuery:
        """A query that computes within units, whose tables and columns are all valid."""
        refuse_rows_as_units(self.unit(query.plan.source))
        check_windows(query, self.schemas, self.units)
        return query

    def refuse_work(self, plans: Sequence[Plan], words: str) -> None:
        """Refuse queries whose work together is above `work_limits`, before any of them is compiled."""
        for plan in plans:
            check_structure(plan)
        self.work_limits.refuse(words, sum((work_of(plan, self.schema(plan.source)) for plan in plans), Work()))

    def _with_filter(self, form: LinearQuery, plan: Plan) -> LinearQuery:
        """The compiled query of a plan, from that of one that differs in its filter only.

        A filter selects rows; the features, the sensitivity and the cells are the same with any filter.
        """
        within_units = check_structure(plan)
        check_filter(plan, self.schema(plan.source))
        query = dataclasses.replace(form, plan=plan)
        return self._checked(query) if within_units else query

    @property
    def opened(self) -> TableBackend:
        """The backend that reads the rows.  Private."""
        if self._opened is None:  # a session reads them first
            raise TypeError("tables")
        return self._opened

    @property
    def words(self) -> str:
        """The privacy unit in words."""
        if len(self.units) == 1:
            return next(iter(self.units.values())).words
        each = (f"{unit.words.partition('(')[2].rstrip(')')} of {name}" for name, unit in self.units.items())
        return f"one {next(iter(self.units.values())).noun} ({'; '.join(each)})"

    def label_units(self, label: str | None) -> None:
        """Use a word for one unit wherever it is named in words."""
        own = UNSET if label is None else label
        self.units = {name: replace(unit, label=own) for name, unit in self.units.items()}


def _keep(compiled: dict[CompiledKey, LinearQuery], key: CompiledKey, query: LinearQuery) -> None:
    kept = [query for other, query in list(compiled.items()) if other != key]  # a copy: other threads may add to it
    if len(kept) >= MAX_COMPILED or sum(map(_size, [*kept, query])) > MAX_COMPILED_SIZE:
        compiled.clear()
    compiled[key] = query


def _size(query: LinearQuery) -> int:
    return len(query.features) + len(query.keys)


def _was_read(table: Any) -> bool:
    """Whether dpnb read a table from a source."""
    return isinstance(getattr(table, "reading", None), Reading)


def _refuse_other_reading(tables: Iterable[Any], reading: Reading) -> None:
    """Refuse tables that were read in another way, and another way if no table was read from a source."""
    read = [table.reading for table in tables if _was_read(table)]
    for name in READING:
        wanted = getattr(reading, name)
        others = [getattr(one, name) for one in read or [USUAL] if getattr(one, name) != wanted]
        if others and not read:
            raise SchemaError(
                f"{name}: is for tables that dpnb reads, from files for example; got {wanted!r} for a table in memory; "
                "give the file instead, as in Session.from_toml('people.toml', 'people.csv'), or leave it out, and "
                "make values that are missing nulls"
            )
        if others:
            raise SchemaError(f"{name}: must be {others[0]!r}, with which the table was read; got {wanted!r}")


def _of_table(value: Any, name: str, limit: str, schema: Mapping[Any, Any]) -> object:
    if not isinstance(value, Mapping):
        return value
    unknown = [key for key in value if key not in schema]
    if unknown:
        raise SchemaError(f"{limit}: {unknown[0]!r} is not one of the tables {', '.join(map(repr, schema))}")
    return value.get(name)
