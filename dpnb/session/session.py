"""A session: one table, one promise, questions whose budgets are chosen after the earlier answers.

What is promised is decided when it is made; `releases` keeps the order in which questions are charged and answered.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpnb.accounting.budget import Budget
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers import Odometer
from dpnb.accounting.promise import AnyFilter
from dpnb.errors import PlanError, RequestError
from dpnb.interactive.protocol import Charged, State
from dpnb.ledger import MEMORY, Ledger, branch_of
from dpnb.mechanisms.randomness import NotPrivateSeededSource, Source, SystemSource
from dpnb.query.aggregations import Active, AnyView, Model, Plain
from dpnb.query.frame import Frame
from dpnb.query.frame.frame import Scope
from dpnb.query.part import part_from_json, table_of
from dpnb.query.plan import Plan
from dpnb.query.plan import Source as Rows
from dpnb.query.schema import ColumnType, Key, encodable
from dpnb.session import live, plain_words, rehearsal, state, still
from dpnb.session.account import Account
from dpnb.session.arguments import (
    checked_budget,
    checked_name,
    checked_rows,
    checked_seed,
    checked_size,
    checked_version,
    discovery_delta,
    ledger_path,
    warn_of_texts,
)
from dpnb.session.declaration import read_declaration
from dpnb.session.individual import Individuals, checked_accounting
from dpnb.session.knowledge import PublicFigures
from dpnb.session.mechanisms import Descent, Launches, Mechanisms, Sub
from dpnb.session.plain_words import Explanation
from dpnb.session.pledge import Pledge
from dpnb.session.query import Query
from dpnb.session.questions import Questions
from dpnb.session.releases import Releases
from dpnb.session.tables import Tables, Unread
from dpnb.session.tree import SUB_SESSION, Launch
from dpnb.stages import Stage, at, work

if TYPE_CHECKING:
    import pandas as pd

NOT_PRIVATE = "NOT PRIVATE: seeded test noise"


class Session(Launches):
    """A private table and the promise about it.

    Parameters
    ----------
    table : data frame, or mapping of str to data frame
        Of pandas, polars or pyarrow: copied as far as the schema describes it; changing it later changes nothing here.
        Or a lazy frame of polars, a relation of DuckDB or a data frame of Spark, which stay where they are and are read
        anew by every question, or a data frame of Dask, which is prepared on its workers: see `dpnb.query.tables`.
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
        cannot match what the table's container declares is refused (see `dpnb.query.column_kinds`); whether the others
        match the rows, ``python -m dpnb check`` shows the curator.
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
    join, and pairs are formed one block at a time and not kept (`dpnb.query.pairs`).  What remains is of the size of
    one unit's rows, so keep `max_rows_per_unit` as small as the analysis allows.
    """

    told_of = ""
    """What the odometers' statements are about, for a session inside another one."""

    notice: str | None = None
    """Says loudly that answers are not real or not private; None for a real session."""

    _individuals: Individuals | None = None
    """What each unit has paid, where each has a budget of its own."""

    def __init__(
        self,
        table: Any,
        *,
        name: str,
        budget: Budget,
        schema: Mapping[str, ColumnType] | Mapping[str, Mapping[str, ColumnType]],
        privacy_unit: str | None = None,
        max_rows_per_unit: int | Mapping[str, int] | None = None,
        max_groups_per_unit: int | Mapping[str, int] | None = None,
        max_rows_per_group: int | Mapping[str, int] | None = None,
        max_norm_per_unit: float | Mapping[str, float] | None = None,
        public_size: int | None = None,
        public_rows: int | Mapping[str, int] | None = None,
        version: str = "1",
        ledger: str | os.PathLike[str] | None = None,
        filter: str = "gdp",
        accounting: str = "worst-case",
        on_exhausted: str | None = None,
        not_private_test_seed: int | None = None,
    ) -> None:
        table = Unread.of(table)  # this frame is in every traceback of what follows
        self.name = checked_name(name)
        self.budget = checked_budget(budget)
        self.public_size = checked_size(public_size)
        self.version = checked_version(version)
        self._tables = Tables.declared(
            schema,
            several=table.several,
            privacy_unit=privacy_unit,
            rows=max_rows_per_unit,
            groups=max_groups_per_unit,
            rows_per_group=max_rows_per_group,
            norm=max_norm_per_unit,
        )
        warn_of_texts(self._tables.schemas, self.budget)
        self.public_rows = checked_rows(public_rows, self._tables.units, self.public_size)
        exhausted = checked_accounting(accounting, on_exhausted)
        self._tables.divisible = exhausted == "clip"
        source: Source = SystemSource()
        if not_private_test_seed is not None:
            seed = checked_seed(not_private_test_seed)
            source, self.notice = NotPrivateSeededSource(seed), NOT_PRIVATE
        path = ledger_path(ledger, self.name)
        about = Pledge(self.name, self._tables, self.notice, exhausted).to_texts()
        individual = exhausted is not None
        with work(Stage.READING):
            self._tables.read(table)
            if exhausted is not None:
                self._tables.opened.refuse_purses(exhausted)
            with at(Stage.LEDGER):
                account = Account.opened(path, self.budget, about, filter, self.public_size, individual=individual)
                self._tables.noted(account.ledger, self.version)
        if exhausted is not None:
            self._individuals = Individuals(self._tables, account, self.version, exhausted)
        self._open(account, source, _identity(path, id(self)), changed=lambda: live.used(self))
        live.used(self)

    def _open(self, account: Account, source: Source, identity: str, changed: Callable[[], None]) -> None:
        """Tie table, promise and noise together; `changed` is called when something was charged or answered."""
        self.id = identity
        self._account, self._source = account, source
        self._questions = Questions(
            self._tables, account, self.version, PublicFigures(self.public_size, self.public_rows)
        )
        self._releases = Releases(
            self._questions,
            source,
            self.notice,
            asked=lambda plan, view: Query(plan, view, self).release,
            changed=changed,
            individuals=self._individuals,
        )
        self._mechanisms = Mechanisms(
            self._questions, self._releases, source, self._sub_session, self._part_of, self._part_words
        )

    _part_words = ""
    """Which part of a partition this is, if it is one."""

    def _sub_session(self, launch: Launch, kept: Sub) -> SubSession:
        return SubSession(self, launch, kept)

    def _part_of(self, launch: Launch, key: Key) -> Part:
        return Part(self, launch, key)

    @classmethod
    def rehearse(cls, table: object = None, **arguments: Any) -> Session:
        """The same session on mock data drawn from the schema alone, to write a notebook before the first charge.

        Takes the arguments of `Session`, so that one word turns a rehearsal into the real thing.  `table` and `ledger`
        are never touched: charges are kept in memory, and every answer and gauge says that it is not real.

        Raises
        ------
        SchemaError, InvalidValueError
            An argument breaks a rule.
        """
        schema = arguments.get("schema")
        several = isinstance(schema, Mapping) and any(isinstance(part, Mapping) for part in schema.values())
        del table
        declared = Tables.declared(
            schema,
            several=several,
            privacy_unit=arguments.get("privacy_unit"),
            rows=arguments.get("max_rows_per_unit"),
            groups=arguments.get("max_groups_per_unit"),
            rows_per_group=arguments.get("max_rows_per_group"),
            norm=arguments.get("max_norm_per_unit"),
        )
        size = checked_size(arguments.get("public_size"))
        rows = checked_rows(arguments.get("public_rows"), declared.units, size)
        mock = rehearsal.mock_tables(declared.schemas, declared.units, size, rows)
        return _Rehearsal(mock if several else mock[""], **{**arguments, "ledger": MEMORY})

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
        table = Unread.of(table)  # this frame is in every traceback of what follows
        return read_declaration(path, Session).opened(Session.rehearse if rehearse else Session, table)

    # --- what it knows of itself -------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame[Query]:
        """The private table, to be used like a pandas DataFrame.

        Raises
        ------
        PlanError
            The session has several tables; see `table`.
        """
        if "" not in self._tables.schemas:
            names = ", ".join(map(repr, self._tables.schemas))
            raise PlanError(f"frame: this session has several tables; write session.table(name) with one of {names}")
        return self.table("")

    def table(self, name: str) -> Frame[Query]:
        """One of several private tables.

        Raises
        ------
        PlanError
            There is none of that name.
        """
        given: object = name
        if not isinstance(given, str) or given not in self._tables.schemas:
            known = ", ".join(map(repr, filter(None, self._tables.schemas))) or "a table without a name: write .frame"
            raise PlanError(f"table: must be one of the session's; got {name!r}; there is {known}")
        unit = self._tables.units[name].column
        return Frame(Scope(self._rows_of(name), self._tables.schemas, unit, self._query, self._discovery, self._fit))

    def active(self, moment: str, *, table: str = "") -> Query:
        """How many privacy units can still pay, under individual accounting: a question like any other.

        Privately counted and not free: it charges those that it counts, and whoever cannot pay for it is not counted.

        Parameters
        ----------
        moment : str
            A name for now, such as ``"after the fit"``.  The same name asked with the same budget gives the recorded
            count again, free, also in a later kernel; another moment needs another name.
        table : str
            Whose units, where the session has several tables.

        Raises
        ------
        RequestError
            The session accounts for the worst case, in which everybody takes part in everything; or the name is none.
        """
        if not self._account.individual:
            raise RequestError(
                "active: under accounting='worst-case' everybody takes part in every question; ask .frame.units() for "
                "how many there are"
            )
        given: object = moment
        if not isinstance(given, str) or not given or not encodable(given):
            raise RequestError(f"active: needs a name for the moment, a non-empty str; got {moment!r}")
        return self._query(Plan(Active(given), source=self._rows_of(table)), Plain())

    def _rows_of(self, name: str) -> Rows:
        """A table by its name, or what this session sees of it."""
        return name

    def _query(self, plan: Plan, view: AnyView) -> Query:
        self._tables.compile(plan)  # refuses what no noise could be scaled to
        return Query(plan, view, self)

    def _discovery(self, delta: object) -> str:
        return discovery_delta(delta, self.budget)

    def _fit(self, rows: Plan, model: Model, terms: tuple[str, ...], **given: Any) -> Descent | Explanation:
        return self._mechanisms.descent(rows, model, terms, **given)

    @property
    def unit_words(self) -> str:
        """The privacy unit in words."""
        return self._tables.words

    @property
    def spent(self) -> Loss:
        """The loss charged so far, by every kernel that uses the ledger, in the kind in which the filter counts.

        Under individual accounting that of a unit which every question touched in full, up to the budget.
        """
        return self._account.filter.spent

    @property
    def headroom(self) -> float:
        """Share of the budget that is left, 0 to 1, rounded down; under individual accounting in the worst case."""
        return self._account.filter.headroom

    @property
    def accounting(self) -> str:
        """``"worst-case"`` or ``"individual"``."""
        return "individual" if self._account.individual else "worst-case"

    @property
    def filter(self) -> AnyFilter:
        """The filter as it stands now."""
        return self._account.filter

    @property
    def odometer(self) -> Odometer:
        """The odometer that can be read now.

        The mixture odometer, whose parameters were fixed when the ledger was made; while interactive mechanisms are
        open an accumulator, since the time-uniform odometers are proved for mechanisms that run one after another.
        """
        return self._account.odometer

    @property
    def ledger(self) -> Ledger:
        """The list of charges."""
        return self._account.ledger

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"{self._account.promise.words}, for {self.unit_words}"

    def log(self) -> pd.DataFrame:
        """Every request that this ledger holds, oldest first; free.

        Returns
        -------
        DataFrame
            By row of the ledger: question in words, mu, delta and share of the budget that it was charged (under
            individual accounting whom it touches in full), error of the answer in words, status, time, and the id of
            the notebook cell that asked.
        """
        return self._releases.log.to_pandas()

    def explain(self) -> Explanation:
        """The promise, the filter and both readings of the odometers in plain words, with this session's numbers."""
        return plain_words.of_session(self, state.spent_words(self._account.filter, self.budget))

    def __repr__(self) -> str:
        return still.text(state.snapshot(self)) if self._is_open else f"<{type(self).__name__}, not opened>"

    def _repr_html_(self) -> str | None:
        return still.html(state.snapshot(self)) if self._is_open else None

    @property
    def _is_open(self) -> bool:
        """Whether `__init__` finished: a debugger also shows a session whose arguments were refused."""
        return "_mechanisms" in vars(self)


class _Child(Session):
    """A session inside another one: it asks the same table, and writes to the same ledger."""

    def __init__(self, outer: Session, launch: Launch, branch: str) -> None:  # not the curator's arguments
        self.name = f"{outer.name}: {launch.name}"
        self.version, self.notice = outer.version, outer.notice
        self._outer, self._tables = outer, outer._tables
        self._identity = hashlib.sha256(f"{outer.id} {branch}".encode()).hexdigest()[:16]

    def _rows_of(self, name: str) -> Rows:
        return self._outer._rows_of(name)


class SubSession(_Child):
    """A part of a session's budget, with a filter and odometers of its own: see :meth:`Session.delegate`.

    Everything a session does.  As an interactive mechanism it is charged at launch.
    """

    def __init__(self, outer: Session, launch: Launch, kept: Sub) -> None:
        super().__init__(outer, launch, branch_of(launch.id))
        self._kept = kept
        self.budget, self.public_size = kept.account.budget, outer.public_size
        self.public_rows = outer.public_rows
        self._open(kept.account, outer._source, self._identity, changed=lambda: live.used(self))
        live.used(self)

    kind = SUB_SESSION
    told_of = "Of what was asked in this sub-session alone: "
    charged: Charged = "at launch"

    @property
    def cost(self) -> Loss:
        """What its session paid for it."""
        return self._kept.cost

    @property
    def state(self) -> State:
        """``open`` or ``closed``."""
        return self._kept.state

    def close(self) -> None:
        """End it: it answers nothing new.  What is left of its budget does not flow back."""
        self._kept.close()

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"{super().promise}; paid for by {self._outer.name}"


class Part(_Child):
    """One part of a partition: see :meth:`Session.partition`."""

    told_of = "Of what was asked in this part alone: "

    def __init__(self, outer: Session, launch: Launch, key: Key) -> None:
        super().__init__(outer, launch, branch_of(launch.id, (key,)))
        self._part_words = f"{launch.about['by']} {key}"
        self.name = f"{outer.name}: {self._part_words}"
        self.budget, self.public_size = outer.budget, None
        self.public_rows = {}
        self._about_part, self._key = launch.about, key
        self._individuals = outer._individuals
        account = outer._account.of_part(launch, (key,))
        self._open(account, outer._source, self._identity, changed=outer._releases.changed)

    def _rows_of(self, name: str) -> Rows:
        part = part_from_json(self._about_part["asked"]["parts"], self._key)
        if name != table_of(part):
            raise PlanError(
                f"table {name!r}: this is a part of {table_of(part)!r}, which alone can be asked about here"
            )
        return part

    @property
    def frame(self) -> Frame[Query]:
        """The rows of this part, to be used like a pandas DataFrame."""
        return self.table(table_of(part_from_json(self._about_part["asked"]["parts"], self._key)))

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"a part of {self._outer.name}, which pays for the largest part: {self._outer.promise}"


class _Rehearsal(Session):
    """A session on mock data."""

    notice = rehearsal.NOTICE


def _identity(path: str, number: int) -> str:
    """The same for every session on one file; a ledger in memory has one session."""
    text = f"{path}{number}" if path == MEMORY else str(Path(path).absolute())
    return hashlib.sha256(text.encode()).hexdigest()[:16]
