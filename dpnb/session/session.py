"""A session: a private table and a total budget, of which each query takes an amount chosen after earlier answers.

The guarantee is fixed when the session is created; `releases` keeps the order in which queries are charged and
answered.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

import msgspec

from dpnb._backends.reading import Reading
from dpnb._core import open_sessions
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.later_sessions import expected_tables, refuse_changed
from dpnb._core.core import SessionCore
from dpnb._core.ledger_metadata import (
    MOCK_DATA,
    NOT_PRIVATE,
    LedgerMetadata,
    with_limit,
)
from dpnb._core.options import (
    EXAMPLE,
    REQUIRED,
    checked_limit,
    checked_name,
    checked_rows,
    checked_sampled,
    checked_seed,
    checked_size,
    checked_version,
    filter_of,
    ledger_path,
    remark_on,
    warn_of_texts,
    warn_of_types,
    warn_of_units,
)
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._core.unit_budgets import Accounting, IndividualAccounting, checked_accounting
from dpnb._plan.privacy_unit import UnitType
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import Number
from dpnb.accounting.guarantee import FilterName
from dpnb.accounting.individual import OnExhausted
from dpnb.ledger import MEMORY
from dpnb.mechanisms.randomness import NoiseSource, NotPrivateSeededSource, SystemNoiseSource
from dpnb.progress import Stage, at, work
from dpnb.required import explains_missing
from dpnb.results.disclosure.parts import StatementText, checked_label, checked_text
from dpnb.session import rehearsal
from dpnb.session.base import BaseSession
from dpnb.session.declaration import Columns, Sampled, SessionOptions, read_declaration


def import_libraries() -> None:
    """Import them before a session charges anything, so that no import delays a release or fails after its charge."""
    import mpmath  # noqa: F401
    import pandas  # noqa: F401
    import scipy.special  # noqa: F401


# --- a session --------------------------------------------------------------------------------------------------------


class Session(BaseSession):
    """A private table with a privacy budget.

    Parameters
    ----------
    table : data frame, or mapping of str to data frame
        A pandas, polars or pyarrow table: the declared columns are copied, so later changes to the table have no
        effect.  Or a polars lazy frame, a DuckDB relation, a Spark data frame or a table of Ibis in a database, which
        is not copied and is read again by every query; or a Dask data frame, which is prepared on its workers.  Several
        tables are passed by name and share the privacy unit and the budget.  What a value counts as depends on that
        value alone, but a library may have changed it before: pandas converts integers in a column with a null or a
        fraction to doubles, and integers above 2**53 then differ.  Use a nullable or an Arrow type (``Int64``,
        ``int64[pyarrow]``) for such columns.  polars infers the types of a frame that is made from Python lists in the
        same way; give it a schema.
    name : str
        Name of the table: letters, digits, ``.``, ``_`` and ``-``.
    budget : Budget or None
        The total privacy budget of everything that is ever released from this ledger.  None declares that there is
        none: no query is refused for its cost, odometers report the privacy loss (Rogers et al. 2016, Section 6), and
        every display says so; see :doc:`/how-to/no-budget`.  It must be written, and a ledger that was created with a
        budget cannot be used without it.
    schema : mapping of str to Bounded, Categories, Dates or Text
        The columns that queries may use; for several tables, a mapping from table names to such mappings.  A column
        that cannot match the type declared by the table's container, such as one of texts in polars declared as
        `Bounded`, is refused; where pandas may have inferred the type there is a warning instead, and ``python -m dpnb
        check`` shows the curator whether the rows match.  It can change with
        `version`, and columns can be added: see `ledger`.
    privacy_unit : str, optional
        The column that identifies the privacy unit of a row; if omitted, each row is a unit.
    max_rows_per_unit : int, optional
        The maximum number of rows of a unit that count.  With `privacy_unit`, this or one of the next three limits is
        required.  For several tables, this and the other limits are mappings by table name.
    max_groups_per_unit : int, optional
        The maximum number of groups of one query in which a unit counts.
    max_rows_per_group : int, optional
        The maximum number of rows of a unit that count in each group.
    max_norm_per_unit : float, optional
        The maximum L2 norm of the vector that a unit adds to a query, as a multiple of the largest norm that one row
        can add.  A longer vector is scaled down.
    unit_type : {"text", "integer"}, optional
        How the value that identifies a unit is read, one by one: ``"text"`` as it is written, so that ``007`` and
        ``7`` are two units, or ``"integer"``, and what is not a whole number of 64 bits identifies no unit.  By default
        as the table has it; the fields of a CSV file are texts.  Required if tables differ in this.  A column of
        floating-point numbers cannot identify units.
    missing : list of str, default []
        Only for a table that dpnb reads, as `read_table`, :doc:`commands </reference/commands>` and the service do:
        the values that are missing, beside nulls and empty fields.  Like `outside` of a column, the list is part of the
        guarantee.
    separator, decimal, encoding, date_format : str, default ",", ".", "utf-8" and "YYYY-MM-DD"
        Only for CSV files that dpnb reads: the character between fields, the decimal mark, ``"."`` or ``","``, the
        encoding, such as ``"latin-1"``, and how dates are written, such as ``"DD.MM.YYYY"``, beside ISO 8601.
    public_size : int, optional
        A public number of units, used to predict errors; never computed from the table.
    public_rows : int or mapping of str to int, optional
        A public number of rows that count (at most `max_rows_per_unit` of each unit), used to predict the errors of
        means; never computed from the table, and not adjusted for missing values.  For several tables, a mapping by
        table name.
    sampled : {"population", "census"} or Number, optional
        What the units are, for population intervals: a random sample of a large population (the default), all of the
        population, or a random sample of this fraction of it.  It follows from the design of the data, is never
        computed from the table, and is stated in the disclosure statement; a ledger keeps what it was created with.
    statement : StatementText or mapping of str to str, optional
        What the :doc:`disclosure statement </how-to/disclosure-statement>` says in the curator's own words, such as the
        purpose and the legal basis.  The ledger keeps it; another one replaces it at any time, and the statement says
        when.
    unit_label : str, optional
        A word for one unit where it is named in words, such as ``"patient"`` for the column ``patient_id``; kept and
        replaced like `statement`.
    version : str, default "1"
        Version of the table; the curator changes it when the table or its columns change. The spending is kept, answers
        are not reused. The guarantee of individual accounting assumes this: what each unit has paid is computed from
        the table, so a changed table under an old version loses the record of what was paid. A table that an engine
        reads again must not change under an old version either, nor while it is read: a query may read it more than
        once. In PostgreSQL it may: an answer is about the rows at its time.
        If the engine reports which local files it reads, a digest of their device, inode and time of change is stored
        in the ledger: a file that was changed, replaced, copied or moved is refused under an old version, when the
        session is created and before each charge.
    ledger : str or path, optional
        The file that records all charges; by default ``<name>.dpnb`` in the working directory, beside the notebook.
        Until something is charged a session on it may declare anything.  Then privacy unit, budget and filter stay.
        Columns and limits stay for a `version` of which something was requested; a new one may have others.  Columns
        can be added at any time, under names that no other table has.  They do not decide which rows of a unit count,
        except among rows that are equal in the first columns.  A session may leave added columns out, and cannot use
        them then (not under individual accounting).
    filter : {"gdp", "zcdp", "rdp", "approx-dp", "rogers", "basic"}, default "gdp"
        The filter that enforces the budget: ``"gdp"`` (Smith and Thakurta 2022; the default, which admits the most
        queries), ``"zcdp"``, ``"rdp"`` (Feldman and Zrnic 2021), ``"approx-dp"`` (Whitehouse et al. 2023), ``"rogers"``
        or ``"basic"`` (Rogers et al. 2016).  All but the first need a budget in epsilon and delta; the last two count
        an epsilon for each answer, so refining an answer costs more than requesting it once at the final precision.
    accounting : {"worst-case", "individual"}, default "worst-case"
        ``"worst-case"``: every query costs each unit the same, and is refused if it exceeds the remaining budget.
        ``"individual"``: each unit has the whole budget and is charged only for the queries that use its data, so a
        query about one region costs the units of other regions nothing, and queries are never refused for lack of
        budget; units that cannot pay are excluded, and which or how many is not disclosed (Feldman and Zrnic 2021;
        Koskela, Tobaben and Honkela 2023).  Requires ``filter="gdp"`` or ``"zcdp"``.
    on_exhausted : {"skip", "drop", "clip"}, optional
        What happens to a unit that cannot pay for a query, under individual accounting.  ``"skip"`` (the default): it
        is excluded from that query, and may take part in a cheaper one.  ``"drop"``: it is excluded from all further
        queries.  ``"clip"``: its contribution is scaled down to what it can still pay for.
    odometer_delta : Number, optional
        Only without a budget: the probability that the statement of an odometer is ever wrong, and the delta at which
        ``release(epsilon=)`` is converted; by default 1e-6.  It is fixed when the ledger is created.
    not_private_test_seed : int, optional
        Replaces the noise by a repeatable sequence.  Nothing is private then, and every display says so.

    Raises
    ------
    SchemaError, InvalidValueError
        If an argument is invalid, an engine's plan of the table shows that its rows may differ between reads, or files
        of the table have changed under an old version.
    LedgerError
        If the file is not a ledger, or something was charged to it, or for this version, under another declaration.

    Notes
    -----
    The running time and the memory use of a query are outside the guarantee: both can depend on the rows.  Memory
    depends little on one unit, since anyone who can limit it, or observe how much is used, could otherwise learn a
    value of one person exactly: a table can occur in a join only once, a unit has at most 10,000 pairs of rows in a
    join, and pairs are formed one block at a time and not kept.  The remaining
    dependence is of the size of one unit's rows, so keep `max_rows_per_unit` as small as the analysis allows.

    Examples
    --------
    >>> import dpnb
    >>> import pandas as pd
    >>> from dpnb.ledger import MEMORY
    >>> session = dpnb.Session(
    ...     pd.DataFrame({"age": range(18, 93)}),
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"age": dpnb.Bounded(18, 100)},
    ...     ledger=MEMORY,
    ... )
    >>> answer = session.frame["age"].mean().release(share=0.1)
    >>> answer.description
    'mean of age'
    >>> 0.89 < session.headroom < 0.91
    True
    """

    @explains_missing(EXAMPLE, REQUIRED, UnreadTables.with_tables, remark_on)
    def __init__(
        self,
        table: Any,
        *,
        name: str,
        budget: Budget | None,
        schema: Columns | Mapping[str, Columns],
        privacy_unit: str | None = None,
        max_rows_per_unit: int | Mapping[str, int] | None = None,
        max_groups_per_unit: int | Mapping[str, int] | None = None,
        max_rows_per_group: int | Mapping[str, int] | None = None,
        max_norm_per_unit: float | Mapping[str, float] | None = None,
        unit_type: UnitType | None = None,
        missing: Sequence[str] = (),
        separator: str = ",",
        decimal: str = ".",
        encoding: str = "utf-8",
        date_format: str = "YYYY-MM-DD",
        public_size: int | None = None,
        public_rows: int | Mapping[str, int] | None = None,
        sampled: Sampled | None = None,
        statement: StatementText | Mapping[str, str] | None = None,
        unit_label: str | None = None,
        version: str = "1",
        ledger: str | os.PathLike[str] | None = None,
        filter: FilterName = "gdp",
        accounting: Accounting = "worst-case",
        on_exhausted: OnExhausted | None = None,
        odometer_delta: Number | None = None,
        not_private_test_seed: int | None = None,
    ) -> None:
        import_libraries()
        name, limit, size = checked_name(name), checked_limit(budget, odometer_delta), checked_size(public_size)
        version = checked_version(version)
        tables = PrivateTables.declared(
            schema,
            several=table.several,
            privacy_unit=privacy_unit,
            unit_type=unit_type,
            reading=Reading.declared(missing, separator, decimal, encoding, date_format),
            rows=max_rows_per_unit,
            groups=max_groups_per_unit,
            rows_per_group=max_rows_per_group,
            norm=max_norm_per_unit,
        )
        warn_of_texts(tables.schemas, limit)
        warn_of_units(tables.schemas, None if privacy_unit is None else str(privacy_unit))
        warn_of_types(table.tables, tables.schemas)
        drawn, text, label = checked_sampled(sampled), checked_text(statement), checked_label(unit_label)
        public = PublicSizes(size, checked_rows(public_rows, tables.units, size))
        exhausted = checked_accounting(accounting, on_exhausted)
        tables.clips_units = exhausted == "clip"
        source: NoiseSource = SystemNoiseSource()
        notice = table.notice
        if not_private_test_seed is not None:
            seed = checked_seed(not_private_test_seed)
            source, notice = NotPrivateSeededSource(seed), NOT_PRIVATE
        path = ledger_path(ledger, name)
        metadata = LedgerMetadata(name, tables, notice, exhausted).to_dict()
        individual, enforced = exhausted is not None, filter_of(limit, filter)
        with work(Stage.READING):
            tables.follow(expected := expected_tables(path, metadata, version))
            tables.read(table)
            if exhausted is not None:
                tables.opened.refuse_individual(exhausted)
            with at(Stage.LEDGER):
                how: Any = {"individual": individual, "sampled": drawn, "version": version}
                account = Accountant.open(path, limit, metadata, enforced, size, **how)
                refuse_changed(account.ledger, expected)
                tables.check_files(account.ledger, version)
                account.ledger.state(version, None if text is None else msgspec.to_builtins(text), label)
                tables.label_units(account.ledger.unit_label)
        core = SessionCore(
            id=_identity(path, id(self)),
            name=name,
            tables=tables,
            account=account,
            version=version,
            public=public,
            source=source,
            notice=with_limit(notice, limit),
            individuals=None if exhausted is None else IndividualAccounting(tables, account, version, exhausted),
        )
        super().__init__(core)
        core.on_change(partial(open_sessions.note_use, self))
        open_sessions.note_use(self)

    @classmethod
    def rehearse(cls, table: object = None, **arguments: Unpack[SessionOptions]) -> Self:
        """Create the same session on mock data drawn from the schema, to develop a notebook without spending budget.

        Takes the arguments of `Session`, so that changing one word turns a rehearsal into the real session.  Charges
        are kept in memory, and every answer and gauge says that it is not real.

        Parameters
        ----------
        table : data frame, or mapping of str to data frame, optional
            Never used: the rows are mock data.
        **arguments
            The arguments of `Session`; `ledger` is never used.

        Raises
        ------
        SchemaError, InvalidValueError
            If an argument is invalid.

        Examples
        --------
        >>> again = dpnb.Session.rehearse(
        ...     name="people", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"age": dpnb.Bounded(0, 100)}
        ... )
        >>> again.frame["age"].mean().description
        'mean of age'
        """
        unknown = arguments.keys() - SessionOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"{cls.__name__}.rehearse() got an unexpected keyword argument {min(unknown)!r}")
        options: dict[str, Any] = {**arguments, "ledger": MEMORY}
        schema = options.get("schema")
        several = isinstance(schema, Mapping) and any(isinstance(part, Mapping) for part in schema.values())
        del table
        declared = PrivateTables.of_arguments(options, several=several)
        size = checked_size(options.get("public_size"))
        rows = checked_rows(options.get("public_rows"), declared.units, size)
        mock = rehearsal.mock_tables(declared.schemas, declared.units, size, rows)
        unread = UnreadTables(mock if several else mock[""], MOCK_DATA)
        return cls(unread, **options)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], table: Any = None, *, rehearse: bool = False) -> Session:
        """Create the session that a TOML file declares, on a table.

        Parameters
        ----------
        path : str or path
            The file, with the arguments of `Session` except the table; the page :doc:`/reference/declaration` lists its
            keys.  A relative ledger path is resolved against the file's folder.
        table : data frame, str or path, or mapping of str to these, optional
            As for `Session`, or the source of the table, as for `read_table`: it is then read as the file declares.
            Required unless `rehearse`.
        rehearse : bool, default False
            Use mock data, as `Session.rehearse` does; the table is not used.

        Raises
        ------
        SchemaError, InvalidValueError
            If something in the file is invalid; the message begins with the file and the line.
        LedgerError
            As for `Session`.

        Examples
        --------
        >>> import os
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> lines = ['name = "people"', "[budget]", "epsilon = 1.0", "delta = 1e-6", "[schema]"]
        >>> lines += ['age = { type = "bounded", low = 0, high = 100 }']
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "people.toml")
        ...     size = path.write_text(os.linesep.join(lines), encoding="utf-8")
        ...     people = dpnb.Session.from_toml(path, rehearse=True)
        >>> people.guarantee
        '(1, 1e-06)-DP, enforced as 0.2368-GDP, for one row'
        """
        table = UnreadTables.with_tables(table)  # wrapped, since tracebacks of what follows include this frame
        return read_declaration(path, Session).open_session(Session.rehearse if rehearse else Session, table)


def _identity(path: str, number: int) -> str:
    """Identifier, the same for every session on one file; a ledger in memory has one session."""
    text = f"{path}{number}" if path == MEMORY else str(Path(path).absolute())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
