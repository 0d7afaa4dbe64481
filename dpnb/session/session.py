"""A session: one table, one promise, questions whose budgets are chosen after the earlier answers.

What is promised is decided when it is made; `releases` keeps the order in which questions are charged and answered.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Required, Self, TypedDict, Unpack

from dpnb._core import registry
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.core import SessionCore
from dpnb._core.ledger_metadata import MOCK_DATA, NOT_PRIVATE, LedgerMetadata
from dpnb._core.options import (
    checked_budget,
    checked_name,
    checked_rows,
    checked_seed,
    checked_size,
    checked_version,
    ledger_path,
    warn_of_texts,
)
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._core.unit_budgets import Accounting, IndividualAccounting, checked_accounting
from dpnb._plan.schema import DeclaredColumn
from dpnb.accounting.budget import Budget
from dpnb.accounting.guarantee import FilterName
from dpnb.accounting.individual import OnExhausted
from dpnb.ledger import MEMORY
from dpnb.mechanisms.randomness import NoiseSource, NotPrivateSeededSource, SystemNoiseSource
from dpnb.progress import Stage, at, work
from dpnb.session import rehearsal
from dpnb.session.base import BaseSession
from dpnb.session.declaration import read_declaration

Columns = Mapping[str, DeclaredColumn]


class SessionOptions(TypedDict, total=False):
    """The named arguments of `Session`, for `Session.rehearse`."""

    name: Required[str]
    budget: Required[Budget]
    schema: Required[Columns | Mapping[str, Columns]]
    privacy_unit: str | None
    max_rows_per_unit: int | Mapping[str, int] | None
    max_groups_per_unit: int | Mapping[str, int] | None
    max_rows_per_group: int | Mapping[str, int] | None
    max_norm_per_unit: float | Mapping[str, float] | None
    public_size: int | None
    public_rows: int | Mapping[str, int] | None
    version: str
    ledger: str | os.PathLike[str] | None
    filter: FilterName
    accounting: Accounting
    on_exhausted: OnExhausted | None
    not_private_test_seed: int | None


class Session(BaseSession):
    """A private table and the promise about it.

    Parameters
    ----------
    table : data frame, or mapping of str to data frame
        Of pandas, polars or pyarrow: copied as far as the schema describes it; changing it later changes nothing here.
        Or a lazy frame of polars, a relation of DuckDB or a data frame of Spark, which stay where they are and are read
        anew by every question, or a data frame of Dask, which is prepared on its workers: see `dpnb._backends`.
        Several tables have names and share the privacy unit and the budget.  What a value counts as depends on that
        value alone, but a library may have changed it before: pandas converts integers beside a null or a
        fraction to doubles, and integers above 2**53 then differ.  Columns of such integers need a nullable or an Arrow
        type (``Int64``, ``int64[pyarrow]``), which keeps them.
    name : str
        Of the table; letters, digits, ``.``, ``_`` and ``-``.
    budget : Budget
        The promise, over everything this ledger ever releases.
    schema : mapping of str to Bounded, Categories, Dates or Text
        The columns that may be asked about; for several tables a mapping of their names to such mappings.  One that
        cannot match what the table's container declares is refused (see `dpnb._backends.column_types`); whether the
        others match the rows, ``python -m dpnb check`` shows the curator.
    privacy_unit : str, optional
        The column that says whose a row is; left out, each row is a unit.
    max_rows_per_unit : int, optional
        How many rows of a unit count.  With `privacy_unit` this is required, or one of the next two lines.  For several
        tables a mapping by table; so are the other limits.
    max_groups_per_unit, max_rows_per_group : int, optional
        In how many groups of a question a unit counts, and with how many rows in each.
    max_norm_per_unit : float, optional
        How long (in L2 norm) the vector may be that a unit adds to a question, as a multiple of the longest that one
        row can add.  A longer one is scaled down.
    public_size : int, optional
        A public figure for the number of units, used to predict errors, never taken from the table.
    public_rows : int or mapping of str to int, optional
        A public figure for the number of rows that count (at most `max_rows_per_unit` of each unit), used to predict
        the errors of means, never taken from the table; missing values are not allowed for.  For several tables a
        mapping by table.
    version : str
        Of the table; the curator changes it when the table changes.  Spending is kept, answers are not reused.  Under
        individual accounting the promise rests on it: what each unit has paid is worked out from the table itself, so
        a changed table under an old version forgets what was paid.  What an engine reads anew must not change under an
        old version either, nor while it is read: a question may read it more than once.  Where the engine tells which
        local files it reads, a digest of their device, inode and time of change is kept in the ledger: a file that was
        changed, replaced, copied or moved is refused under an old version, when the session is made and before each
        charge.
    ledger : str or path, optional
        The durable file of charges; by default ``<name>.dpnb`` in the working directory, beside the notebook.
    filter : str
        Which filter keeps the promise: ``"gdp"`` (Smith and Thakurta 2022; the default, and the one that answers most),
        ``"zcdp"``, ``"rdp"`` (Feldman and Zrnic 2021), ``"approx-dp"`` (Whitehouse et al. 2023), ``"rogers"`` or
        ``"basic"`` (Rogers et al. 2016).  All but the first need a budget in epsilon and delta; the last two count an
        epsilon for each answer, so that refining an answer costs more there than asking once.
    accounting : str
        ``"worst-case"``: every question costs everybody the same, and is refused when the budget does not cover it.
        ``"individual"``: each unit has the whole budget for itself and pays only for what touches it, so that a
        question about one region costs the people of others nothing, and questions go on without end; who cannot pay
        is left out, and nobody is told whether or who (Feldman and Zrnic 2021; Koskela, Tobaben and Honkela 2023).
        Under ``filter="gdp"`` or ``"zcdp"``.
    on_exhausted : str, optional
        What becomes of a unit that cannot pay for a question, under individual accounting.  ``"skip"`` (the default):
        it is left out of that question, and may return for a cheaper one.  ``"drop"``: it is out for good.  ``"clip"``:
        it counts with as much as it can still pay for.
    not_private_test_seed : int, optional
        Replaces the noise by a repeatable sequence.  Nothing is private then, and everything says so.

    Raises
    ------
    SchemaError, InvalidValueError
        An argument breaks a rule, an engine's plan of the table shows that its rows may differ each time, or files of
        the table have changed under an old version.
    LedgerError
        The ledger was made for another promise or is no ledger.

    Notes
    -----
    How long a question takes and how much memory it needs are outside the guarantee: both can depend on the rows.
    Memory depends little on one unit, since somebody who can limit it, or read how much is used, could otherwise learn
    a value of one person exactly: a table can be in a join only once, a unit has at most 10,000 pairs of rows in a
    join, and pairs are formed one block at a time and not kept (`dpnb._backends.memory.join_pairs`).  What remains is
    of the size of one unit's rows, so keep `max_rows_per_unit` as small as the analysis allows.
    """

    def __init__(
        self,
        table: Any,
        *,
        name: str,
        budget: Budget,
        schema: Columns | Mapping[str, Columns],
        privacy_unit: str | None = None,
        max_rows_per_unit: int | Mapping[str, int] | None = None,
        max_groups_per_unit: int | Mapping[str, int] | None = None,
        max_rows_per_group: int | Mapping[str, int] | None = None,
        max_norm_per_unit: float | Mapping[str, float] | None = None,
        public_size: int | None = None,
        public_rows: int | Mapping[str, int] | None = None,
        version: str = "1",
        ledger: str | os.PathLike[str] | None = None,
        filter: FilterName = "gdp",
        accounting: Accounting = "worst-case",
        on_exhausted: OnExhausted | None = None,
        not_private_test_seed: int | None = None,
    ) -> None:
        table = UnreadTables.with_tables(table)  # this frame is in every traceback of what follows
        name, budget, size = checked_name(name), checked_budget(budget), checked_size(public_size)
        version = checked_version(version)
        tables = PrivateTables.declared(
            schema,
            several=table.several,
            privacy_unit=privacy_unit,
            rows=max_rows_per_unit,
            groups=max_groups_per_unit,
            rows_per_group=max_rows_per_group,
            norm=max_norm_per_unit,
        )
        warn_of_texts(tables.schemas, budget)
        public = PublicSizes(size, checked_rows(public_rows, tables.units, size))
        exhausted = checked_accounting(accounting, on_exhausted)
        tables.clips_units = exhausted == "clip"
        source: NoiseSource = SystemNoiseSource()
        notice = table.notice
        if not_private_test_seed is not None:
            seed = checked_seed(not_private_test_seed)
            source, notice = NotPrivateSeededSource(seed), NOT_PRIVATE
        path = ledger_path(ledger, name)
        about = LedgerMetadata(name, tables, notice, exhausted).to_dict()
        individual = exhausted is not None
        with work(Stage.READING):
            tables.read(table)
            if exhausted is not None:
                tables.opened.refuse_individual(exhausted)
            with at(Stage.LEDGER):
                account = Accountant.open(path, budget, about, filter, size, individual=individual)
                tables.noted(account.ledger, version)
        core = SessionCore(
            id=_identity(path, id(self)),
            name=name,
            tables=tables,
            account=account,
            version=version,
            public=public,
            source=source,
            notice=notice,
            individuals=None if exhausted is None else IndividualAccounting(tables, account, version, exhausted),
        )
        super().__init__(core)
        core.on_change(lambda: registry.note_use(self))
        registry.note_use(self)

    @classmethod
    def rehearse(cls, table: object = None, **arguments: Unpack[SessionOptions]) -> Self:
        """The same session on mock data drawn from the schema alone, to write a notebook before the first charge.

        Takes the arguments of `Session`, so that one word turns a rehearsal into the real thing.  `table` and `ledger`
        are never touched: charges are kept in memory, and every answer and gauge says that it is not real.

        Raises
        ------
        SchemaError, InvalidValueError
            An argument breaks a rule.
        """
        unknown = arguments.keys() - SessionOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"{cls.__name__}.rehearse() got an unexpected keyword argument {min(unknown)!r}")
        given: dict[str, Any] = {**arguments, "ledger": MEMORY}
        schema = given.get("schema")
        several = isinstance(schema, Mapping) and any(isinstance(part, Mapping) for part in schema.values())
        del table
        declared = PrivateTables.declared(
            schema,
            several=several,
            privacy_unit=given.get("privacy_unit"),
            rows=given.get("max_rows_per_unit"),
            groups=given.get("max_groups_per_unit"),
            rows_per_group=given.get("max_rows_per_group"),
            norm=given.get("max_norm_per_unit"),
        )
        size = checked_size(given.get("public_size"))
        rows = checked_rows(given.get("public_rows"), declared.units, size)
        mock = rehearsal.mock_tables(declared.schemas, declared.units, size, rows)
        unread = UnreadTables(mock if several else mock[""], MOCK_DATA)
        return cls(unread, **given)

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], table: Any = None, *, rehearse: bool = False) -> Session:
        """The session that a TOML file states, on a table.

        Parameters
        ----------
        path : str or path
            The file, which states the arguments of `Session` without the table: see `dpnb.session.declaration`.
            Relative paths of ledgers start from its folder.
        table : data frame, or mapping of str to data frame
            As for `Session`.
        rehearse : bool
            Make it on mock data, as `Session.rehearse` does; the table is not touched.

        Raises
        ------
        SchemaError, InvalidValueError
            Something in the file breaks a rule; the message begins with the file and the line.
        LedgerError
            As for `Session`.
        """
        table = UnreadTables.with_tables(table)  # this frame is in every traceback of what follows
        return read_declaration(path, Session).open_session(Session.rehearse if rehearse else Session, table)


def _identity(path: str, number: int) -> str:
    """The same for every session on one file; a ledger in memory has one session."""
    text = f"{path}{number}" if path == MEMORY else str(Path(path).absolute())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
