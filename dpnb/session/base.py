"""The methods that a session, a sub-session and a part share."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from dpnb._core import open_sessions
from dpnb._core.core import SessionCore
from dpnb._core.options import discovery_delta
from dpnb._plan.join import table_of
from dpnb._plan.measurements import CountActiveUnits, PlainView
from dpnb._plan.plan import Plan
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import decimal_down
from dpnb.accounting.losses import Loss
from dpnb.errors import PlanError, RequestError
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.interactive.launch_verbs import Launches
from dpnb.interactive.launcher import MechanismRegistry
from dpnb.interactive.mechanism import Charged, MechanismState, SessionMechanism
from dpnb.interactive.sub_session import SubSessionMechanism
from dpnb.ledger import Ledger
from dpnb.query.query import Query, checked_query
from dpnb.query.studies import query_of
from dpnb.results.schema import TableSchema, TablesSchema
from dpnb.schema import encodable
from dpnb.session.batches import Batches
from dpnb.session.budget_requests import BudgetRequests
from dpnb.session.self_description import BudgetReadings, DisplayedSession, Statements, refuse_report_of_a_part

if TYPE_CHECKING:
    import pandas as pd


class BaseSession(
    Launches["SubSession", "PartSession"], Batches, BudgetRequests, BudgetReadings, Statements, DisplayedSession
):
    """The methods of a session, a sub-session and a part."""

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core, MechanismRegistry(core, SubSession, PartSession))

    # --- properties ---------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Identifier: equal for all sessions on one ledger, and for all on one sub-session or part of it."""
        return self._core.id

    @property
    def name(self) -> str:
        """Name of the session."""
        return self._core.name

    @property
    def notice(self) -> str | None:
        """A warning that answers are not real or not private, or that there is no budget; None for other sessions."""
        return self._core.notice

    @property
    def version(self) -> str:
        """Version of the table."""
        return self._core.version

    @property
    def budget(self) -> Budget | None:
        """The total privacy budget, None without one; for a part, that of the session it belongs to."""
        return self._core.budget

    @property
    def public_size(self) -> int | None:
        """The public number of privacy units; None if it was not declared."""
        return self._core.pricer.public.units

    @property
    def public_rows(self) -> Mapping[str, int]:
        """The public numbers of rows by table name; the name of a single table is empty."""
        return self._core.pricer.public.rows

    @property
    def sampled(self) -> str | float:
        """What the units are: "population" (a sample of a large one), "census", or the fraction that was drawn."""
        drawn = self._core.account.sampled
        return {Fraction(0): "population", Fraction(1): "census"}.get(drawn) or decimal_down(drawn)

    @property
    def schema(self) -> TableSchema | TablesSchema:
        """The declared columns, by name: types, bounds, categories, and what counts as missing.  Free.

        With several tables, the schema of each table by its name.
        """
        core = self._core
        known, public, rest = core.tables, core.pricer.public, (core.notice, core.tables.reading.missing, self.sampled)
        tables = {
            name: TableSchema(name, dict(columns), known.units[name], public.units, public.rows.get(name), *rest)
            for name, columns in known.schemas.items()
        }
        if core.part is not None:
            return tables[table_of(core.part)]
        return tables[""] if "" in tables else TablesSchema(tables)

    # --- queries ------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """The private table, or the rows of this part, used like a pandas DataFrame.

        Raises
        ------
        PlanError
            If the session has several tables; see `table`.
        """
        if self._core.part is not None:
            return self.table(table_of(self._core.part))
        if "" not in self._core.tables.schemas:
            names = ", ".join(map(repr, self._core.tables.schemas))
            raise PlanError(f"frame: this session has several tables; write session.table(name) with one of {names}")
        return self.table("")

    def table(self, name: str) -> Frame:
        """One of several private tables.

        Parameters
        ----------
        name : str
            Name of the table, as in the schema.

        Raises
        ------
        PlanError
            If the session has no table of that name.

        Examples
        --------
        >>> person = {"age": dpnb.Bounded(0, 100), "cost": dpnb.Bounded(0, 2000)}
        >>> two = dpnb.Session.rehearse(
        ...     name="two",
        ...     privacy_unit="person",
        ...     max_rows_per_unit={"visits": 2, "drugs": 5},
        ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
        ...     schema={"visits": person, "drugs": person},
        ... )
        >>> two.table("visits")
        <private table: age, cost>
        """
        core = self._core
        argument: object = name
        schemas = core.tables.schemas
        if not isinstance(argument, str) or argument not in schemas:
            known = ", ".join(map(repr, filter(None, schemas))) or "a table without a name: write .frame"
            raise PlanError(f"table: must be a table of this session; got {name!r}; the tables are {known}")
        ask = partial(query_of, core)
        return Frame(TableView(core.rows(name), schemas, core.tables.units, ask, self._discovery, self._fit))

    def count_active_units(self, label: str, *, table: str = "") -> Query:
        """The number of privacy units that can still pay, under individual accounting, as a query.

        The count is private and has a cost: the units that it counts are charged, and a unit that cannot pay for it is
        not counted.

        Parameters
        ----------
        label : str
            A name for the moment, such as ``"after the fit"``.  The same label released with the same target returns
            the recorded count at no cost, also in a later kernel; use a new label to count again.
        table : str, default ""
            The table whose units are counted, if the session has several tables.

        Raises
        ------
        RequestError
            If the session uses worst-case accounting, where every unit takes part in every query, or if the label is
            not a non-empty str.

        Examples
        --------
        >>> people = dpnb.Session.rehearse(
        ...     name="people",
        ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
        ...     schema={"age": dpnb.Bounded(0, 100)},
        ...     accounting="individual",
        ... )
        >>> people.count_active_units("after the fit").description
        "count of active privacy units, 'after the fit'"
        """
        if not self._core.account.individual:
            raise RequestError(
                "count_active_units: requires accounting='individual'; under accounting='worst-case' every unit takes "
                "part in every query; use .frame.count_units() to count them"
            )
        argument: object = label
        if not isinstance(argument, str) or not argument or not encodable(argument):
            raise RequestError(
                f"count_active_units: the label must be a non-empty str that names the moment; got {label!r}"
            )
        return checked_query(self._core, Plan(CountActiveUnits(argument), source=self._core.rows(table)), PlainView())

    def _discovery(self, delta: object) -> str:
        return discovery_delta(delta, self._core.account.budget)

    # --- budget and ledger --------------------------------------------------------------------------------------

    @property
    def privacy_unit_description(self) -> str:
        """The privacy unit in words."""
        return self._core.tables.words

    @property
    def ledger(self) -> Ledger:
        """The list of charges."""
        return self._core.account.ledger

    @property
    def guarantee(self) -> str:
        """The privacy guarantee in words."""
        return self._core.guarantee

    @property
    def log(self) -> pd.DataFrame:
        """All requests in this ledger, oldest first; free.

        Returns
        -------
        DataFrame
            One row for each row of the ledger, with the columns ``query`` (in words); ``estimate``, the released answer
            in words: a number with its noise interval, or how many groups there are; ``error``, the half-width of its
            intervals in words; ``cost_fraction``, the charge as a fraction of the budget (NaN without one); ``status``;
            ``time``; ``mu`` and ``delta``, what was charged, for a query on a part of a partition to that part (under
            individual accounting, for a unit that the query affects in full); and ``cell_id``, the id of the notebook
            cell that made the request.  A request without an answer has neither ``estimate`` nor ``error``.
            If the budget has a reserve for pure losses, ``pure_epsilon`` is the charge to it.  Where the analysts of a
            service share a budget and see each other's requests, ``analyst`` is the name of the one who made the
            request.

            The default filter adds the squares of ``mu``, also those of mechanisms in pure DP, whose ``mu`` is what
            they take from the budget that is left.  They would take more from a smaller budget, so the budget that
            covers the history, in :meth:`explain`, is larger than this sum if there are any.  For other filters it is
            the mu of Gaussian noise with the same charge; for those that add epsilons, the mu that the loss implies.

        Examples
        --------
        >>> answer = df.count().release(mu=0.1)
        >>> session.log["query"].tolist()
        ['count of rows']
        """
        return self._core.log.to_pandas()


class ChildSession(BaseSession):
    """A session inside another one, with the same tables and the same ledger."""

    def __init__(self, mechanism: SessionMechanism, core: SessionCore) -> None:
        super().__init__(core)
        self._mechanism = mechanism

    @property
    def kind(self) -> str:
        """The kind of interactive mechanism."""
        return self._mechanism.kind

    @property
    def charged(self) -> Charged:
        """When the parent session is charged."""
        return self._mechanism.charged

    @property
    def cost(self) -> Loss:
        """The loss that the parent accounts for: for a sub-session its budget, for a part that of all parts."""
        return self._mechanism.cost

    @property
    def state(self) -> MechanismState:
        """``open``, ``closed``, or ``unavailable`` for a part of another version of the table."""
        return self._mechanism.state

    def report(self, *, answers: bool = False) -> NoReturn:
        """Refused: a disclosure statement is about the whole session; call `report` of that one.

        Parameters
        ----------
        answers : bool, default False
            Not used.

        Raises
        ------
        RequestError
            Always.

        Examples
        --------
        >>> plans = session.partition("plan", max_parts_per_unit=1)
        >>> try:
        ...     plans["free"].report()
        ... except dpnb.errors.RequestError as error:
        ...     print(str(error).split(";")[0])
        report: a disclosure statement is about everything that a ledger has released
        """
        refuse_report_of_a_part(self.kind, self.name)

    def close(self) -> None:
        """Close it; new queries are refused.  Closing a part closes all parts of its partition.

        The unused budget of a sub-session is not refunded.

        Examples
        --------
        >>> plans = session.partition("plan", max_parts_per_unit=1)
        >>> plans["free"].close()
        >>> plans.state
        'closed'
        """
        self._mechanism.close()


class SubSession(ChildSession):
    """A session with part of its parent's budget and its own filter and odometers: see :meth:`dpnb.Session.delegate`.

    It has all methods of a session.  As an interactive mechanism it is charged at launch.

    Parameters
    ----------
    mechanism : SubSessionMechanism
        The interactive mechanism of the parent session.

    Examples
    --------
    >>> colleague = session.delegate(share=0.1, name="colleague")
    >>> answer = colleague.frame["age"].mean().release(share=0.5)
    >>> 0.4 < colleague.headroom < 0.6
    True
    >>> colleague.state
    'open'
    """

    def __init__(self, mechanism: SubSessionMechanism) -> None:
        super().__init__(mechanism, mechanism.inner)
        self._core.on_change(lambda: open_sessions.note_use(self))
        open_sessions.note_use(self)


class PartSession(ChildSession):
    """One part of a partition: see :meth:`dpnb.Session.partition`.

    Examples
    --------
    >>> plans = session.partition("plan", max_parts_per_unit=1)
    >>> plans["free"].frame["cost"].mean().description
    'mean of cost in plan free'
    >>> plans["free"].kind
    'partition'
    """
