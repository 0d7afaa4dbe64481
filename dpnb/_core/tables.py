"""The private tables of a session: schema, contribution bounds, and prepared rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpnb._backends import TableBackend as Opened
from dpnb._backends import opened
from dpnb._backends.guard import run_guarded
from dpnb._backends.memory.prepare.prepared_table import READING_FAILED
from dpnb._compile import LinearQuery, linear_query
from dpnb._core.source_files import TableFileCheck
from dpnb._plan.join import schema_of, unit_of
from dpnb._plan.plan import Plan, TableSource
from dpnb._plan.privacy_unit import PrivacyUnit, privacy_unit_from
from dpnb._plan.schema import Schema, encodable, schema_from
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, SchemaError
from dpnb.ledger import Ledger
from dpnb.progress import Stage, work

LIMITS = {
    "rows": "max_rows_per_unit",
    "groups": "max_groups_per_unit",
    "rows_per_group": "max_rows_per_group",
    "norm": "max_norm_per_unit",
}

MOST_COMPILED = 16
"""Questions that are kept compiled: one release needs its own several times."""


class UnreadTables(NotCopyable):
    """The tables that a caller passed, wrapped until they are read so that tracebacks and debuggers print no row.

    Parameters
    ----------
    tables : data frame, or mapping of str to data frame
    notice : str, optional
        Says loudly that they are not real.
    """

    __slots__ = ("notice", "several", "tables")

    def __init__(self, tables: Any, notice: str | None = None) -> None:
        self.notice = notice
        self.several = isinstance(tables, Mapping)
        self.tables = tables if self.several else {"": tables}

    @classmethod
    def with_tables(cls, tables: Any) -> UnreadTables:
        """The tables, unless they are wrapped already."""
        return tables if isinstance(tables, cls) else cls(tables)

    def __repr__(self) -> str:
        return "<private tables>"


class PrivateTables(NotCopyable):
    """One table without a name, or several with names, that share a privacy unit.

    Parameters
    ----------
    schemas : dict of str to dict
        By table; the name is empty for the only one.
    units : dict of str to PrivacyUnit

    Attributes
    ----------
    clips_units : bool
        Whether a unit may add a fraction of what its rows say, as under ``on_exhausted="clip"``.
    """

    clips_units = False

    def __init__(self, schemas: dict[str, Schema], units: dict[str, PrivacyUnit]) -> None:
        self.schemas = schemas
        self.units = units
        self._opened: Opened | None = None
        self._files: TableFileCheck | None = None
        self._compiled: dict[tuple[str, tuple[int, ...] | None, bool], LinearQuery] = {}

    @classmethod
    def declared(cls, schema: object, *, several: bool, privacy_unit: object, **limits: object) -> PrivateTables:
        """What the curator declares, checked.

        Parameters
        ----------
        schema : mapping
            Of columns, or for several tables of tables to mappings of columns.
        several : bool
        privacy_unit : str, optional
        **limits
            As `privacy_unit_from`; each one value, or for several tables a mapping by table.

        Raises
        ------
        SchemaError
            Something breaks a rule.
        """
        if not several:
            checked = schema_from(schema)
            return cls({"": checked}, {"": privacy_unit_from(privacy_unit, checked, **limits)})
        if (
            not isinstance(schema, Mapping)
            or not schema
            or not all(isinstance(one, Mapping) for one in schema.values())
        ):
            raise SchemaError("schema: must map each table's name to its columns; got another structure")
        if privacy_unit is None:
            raise SchemaError("privacy_unit: required with several tables; name the column that they share")
        schemas, units = {}, {}
        for name, columns in schema.items():
            if not isinstance(name, str) or not name or not encodable(name):
                raise SchemaError(f"schema: a table's name must be a non-empty str; got {name!r}")
            schemas[name] = schema_from(columns)
            own = {limit: _of_table(value, name, LIMITS[limit], schema) for limit, value in limits.items()}
            units[name] = privacy_unit_from(privacy_unit, schemas[name], **own)
        return cls(schemas, units)

    def read(self, unread: UnreadTables) -> None:
        """Take in the tables, once; see `dpnb._backends.opened` for which there may be, and what it raises.

        Its errors are raised from here, without the frames that were reading rows.
        """
        with work(Stage.READING):
            self._opened = run_guarded(lambda: self._read(unread), READING_FAILED, public_errors=DpnbError)

    def _read(self, unread: UnreadTables) -> Opened:
        if set(unread.tables) != set(self.schemas):
            raise SchemaError(
                f"tables: must be those of the schema, {', '.join(map(repr, self.schemas))}; "
                f"got {', '.join(map(repr, unread.tables))}"
            )
        return opened(unread.tables, self.schemas, self.units)

    def noted(self, ledger: Ledger, version: str) -> None:
        """Note in the ledger which files this version of the tables is in, or refuse others; see `TableFileCheck`."""
        self._files = TableFileCheck(ledger, version, self.opened.files)

    def ready(self) -> None:
        """Make sure, before anything is charged, that rows can be read and that their files are unchanged.

        Raises
        ------
        InvalidValueError
            A file has changed under an old version.
        """
        self.opened.settle()
        if self._files is not None:
            self._files.refuse_changed()

    def schema(self, source: TableSource) -> Schema:
        """Columns of a table or join."""
        return schema_of(source, self.schemas)

    def unit(self, source: TableSource) -> PrivacyUnit:
        """What bounds a unit there."""
        return unit_of(source, self.units)

    def compile(self, plan: Plan, only: tuple[int, ...] | None = None) -> LinearQuery:
        """The linear query of a plan, of all of its cells or of some.

        Raises
        ------
        PlanError
            Nothing bounds it, or it cannot be asked where the rows are.
        """
        written = plan.to_json(), only, self.clips_units
        query = self._compiled.get(written)
        if query is None:
            query = linear_query(
                plan, self.schema(plan.source), self.unit(plan.source), only, divisible=self.clips_units
            )
            if self._opened is not None:
                self._opened.refuse(query)
            if len(self._compiled) >= MOST_COMPILED:
                self._compiled.clear()
            self._compiled[written] = query
        return query

    @property
    def opened(self) -> Opened:
        """The rows, wherever they are: a private value."""
        if self._opened is None:  # a session has read them
            raise TypeError("tables")
        return self._opened

    @property
    def words(self) -> str:
        """The privacy unit in words."""
        if len(self.units) == 1:
            return next(iter(self.units.values())).words
        each = (f"{unit.words.partition('(')[2].rstrip(')')} of {name}" for name, unit in self.units.items())
        return f"one {next(iter(self.units.values())).column} ({'; '.join(each)})"


def _of_table(value: Any, name: str, limit: str, schema: Mapping[Any, Any]) -> object:
    if not isinstance(value, Mapping):
        return value
    unknown = [key for key in value if key not in schema]
    if unknown:
        raise SchemaError(f"{limit}: {unknown[0]!r} is not one of the tables {', '.join(map(repr, schema))}")
    return value.get(name)
