"""What every session can be asked, be it the curator's, a sub-session or a part: the verbs over a core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpnb._core import explain, registry
from dpnb._core.core import SessionCore
from dpnb._core.options import discovery_delta
from dpnb._core.query import Query
from dpnb._core.unit_budgets import Accounting
from dpnb._plan.measurements import CountActiveUnits, PlainView
from dpnb._plan.partition import table_of
from dpnb._plan.plan import Plan
from dpnb._plan.schema import encodable
from dpnb.accounting.budget import Budget
from dpnb.accounting.guarantee import AnyFilter
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers import Odometer
from dpnb.copying import safe_repr
from dpnb.errors import PlanError, RequestError, printable
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.interactive.launch_verbs import Launches
from dpnb.interactive.launcher import MechanismRegistry
from dpnb.interactive.mechanism import SessionMechanism
from dpnb.interactive.protocol import Charged, MechanismState
from dpnb.interactive.sub_session import SubSessionMechanism
from dpnb.ledger import Ledger
from dpnb.render import sessions
from dpnb.render.numbers import format_percent_down
from dpnb.render.page import text_or_error
from dpnb.results.explanation import Explanation
from dpnb.session import snapshot

if TYPE_CHECKING:
    import pandas as pd


class BaseSession(Launches["SubSession", "PartSession"]):
    """The verbs of a session, a sub-session and a part.

    Parameters
    ----------
    core : SessionCore
        Answers and charges.
    """

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core, MechanismRegistry(core, SubSession, PartSession))

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The same for every session on this ledger, or this branch of it."""
        return self._core.id

    @property
    def name(self) -> str:
        """Of the session."""
        return self._core.name

    @property
    def notice(self) -> str | None:
        """Says loudly that answers are not real or not private; None for a real session."""
        return self._core.notice

    @property
    def version(self) -> str:
        """Of the table."""
        return self._core.version

    @property
    def budget(self) -> Budget:
        """What was promised; of a part what was promised of the whole."""
        return self._core.budget

    @property
    def public_size(self) -> int | None:
        """The public number of units, if there is one."""
        return self._core.questions.public.units

    @property
    def public_rows(self) -> Mapping[str, int]:
        """The public numbers of rows by table; the name is empty for the only one."""
        return self._core.questions.public.rows

    # --- what can be asked --------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame[Query]:
        """The private table, or the rows of this part, to be used like a pandas DataFrame.

        Raises
        ------
        PlanError
            The session has several tables; see `table`.
        """
        if self._core.part is not None:
            return self.table(table_of(self._core.part))
        if "" not in self._core.tables.schemas:
            names = ", ".join(map(repr, self._core.tables.schemas))
            raise PlanError(f"frame: this session has several tables; write session.table(name) with one of {names}")
        return self.table("")

    def table(self, name: str) -> Frame[Query]:
        """One of several private tables.

        Raises
        ------
        PlanError
            There is none of that name.
        """
        core = self._core
        given: object = name
        schemas = core.tables.schemas
        if not isinstance(given, str) or given not in schemas:
            known = ", ".join(map(repr, filter(None, schemas))) or "a table without a name: write .frame"
            raise PlanError(f"table: must be one of the session's; got {name!r}; there is {known}")
        unit = core.tables.units[name].column
        return Frame(TableView(core.rows(name), schemas, unit, core.query, self._discovery, self._fit))

    def count_active_units(self, label: str, *, table: str = "") -> Query:
        """How many privacy units can still pay, under individual accounting: a question like any other.

        Privately counted and not free: it charges those that it counts, and whoever cannot pay for it is not counted.

        Parameters
        ----------
        label : str
            A name for now, such as ``"after the fit"``.  The same name asked with the same budget gives the recorded
            count again, free, also in a later kernel; another moment needs another name.
        table : str
            Whose units, where the session has several tables.

        Raises
        ------
        RequestError
            The session accounts for the worst case, in which everybody takes part in everything; or the name is none.
        """
        if not self._core.account.individual:
            raise RequestError(
                "active: under accounting='worst-case' everybody takes part in every question; ask "
                ".frame.count_units() for how many there are"
            )
        given: object = label
        if not isinstance(given, str) or not given or not encodable(given):
            raise RequestError(f"active: needs a name for the moment, a non-empty str; got {label!r}")
        return self._core.query(Plan(CountActiveUnits(given), source=self._core.rows(table)), PlainView())

    def _discovery(self, delta: object) -> str:
        return discovery_delta(delta, self.budget)

    # --- how it stands ------------------------------------------------------------------------------------------

    @property
    def privacy_unit_description(self) -> str:
        """The privacy unit in words."""
        return self._core.tables.words

    @property
    def spent(self) -> Loss:
        """The loss charged so far, by every kernel that uses the ledger, in the kind in which the filter counts.

        Under individual accounting that of a unit which every question touched in full, up to the budget.
        """
        return self._core.account.filter.spent

    @property
    def headroom(self) -> float:
        """Share of the budget that is left, 0 to 1, rounded down; under individual accounting in the worst case."""
        return self._core.account.filter.headroom

    @property
    def accounting(self) -> Accounting:
        """``"worst-case"`` or ``"individual"``."""
        return "individual" if self._core.account.individual else "worst-case"

    @property
    def filter(self) -> AnyFilter:
        """The filter as it stands now."""
        return self._core.account.filter

    @property
    def odometer(self) -> Odometer:
        """The odometer that can be read now.

        The mixture odometer, whose parameters were fixed when the ledger was made; while interactive mechanisms are
        open an accumulator, since the time-uniform odometers are proved for mechanisms that run one after another.
        """
        return self._core.account.odometer

    @property
    def ledger(self) -> Ledger:
        """The list of charges."""
        return self._core.account.ledger

    @property
    def guarantee(self) -> str:
        """The promise in words."""
        return self._core.promise

    def log(self) -> pd.DataFrame:
        """Every request that this ledger holds, oldest first; free.

        Returns
        -------
        DataFrame
            By row of the ledger: question in words, mu, delta and share of the budget that it was charged (under
            individual accounting whom it touches in full), error of the answer in words, status, time, and the id of
            the notebook cell that asked.
        """
        return self._core.releases.log.to_pandas()

    def explain(self) -> Explanation:
        """The promise, the filter and both readings of the odometers in plain words, with this session's numbers."""
        spent = snapshot.describe_spent(self._core.account.filter, self.budget)
        return explain.of_session(self._core, spent, self._mechanisms.told())

    @safe_repr
    def __repr__(self) -> str:
        if not self._is_made:
            return f"<{type(self).__name__}, not opened>"
        notice = f"{self.notice}\n" if self.notice else ""
        left = self._core.account.last_headroom
        shown = "" if left is None else f"\n  {format_percent_down(left)} left when the ledger was last read"
        return f"{notice}<{type(self).__name__} {printable(self.name)!r}: {printable(self.guarantee)}{shown}>"

    def __str__(self) -> str:
        """The state as the ledger has it now: gauges, filters, odometers, mechanisms."""
        return sessions.render_text(snapshot.snapshot(self)) if self._is_made else repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else text_or_error(self))

    def _repr_html_(self) -> str | None:
        return sessions.render_html(snapshot.snapshot(self)) if self._is_made else None

    @property
    def _is_made(self) -> bool:
        """Whether `__init__` finished: a debugger also shows a session whose arguments were refused."""
        return "_core" in vars(self)


class ChildSession(BaseSession):
    """A session inside another one: it asks the same tables, and writes to the same ledger.

    Parameters
    ----------
    mechanism : Mechanism
        That it belongs to.
    core : SessionCore
    """

    def __init__(self, mechanism: SessionMechanism, core: SessionCore) -> None:
        super().__init__(core)
        self._mechanism = mechanism

    @property
    def kind(self) -> str:
        """Of which kind of interactive mechanism it is."""
        return self._mechanism.kind

    @property
    def charged(self) -> Charged:
        """When its session pays."""
        return self._mechanism.charged

    @property
    def cost(self) -> Loss:
        """What its session has paid so far: for a sub-session its budget, for a part that of all parts together."""
        return self._mechanism.cost

    @property
    def state(self) -> MechanismState:
        """``open``, ``closed``, or ``elsewhere`` for a part of another version of the table."""
        return self._mechanism.state

    def close(self) -> None:
        """End it: it answers nothing new.  A part ends with all parts of its partition.

        What is left of a sub-session's budget does not flow back.
        """
        self._mechanism.close()


class SubSession(ChildSession):
    """A part of a session's budget, with a filter and odometers of its own: see :meth:`Session.delegate`.

    Everything a session does.  As an interactive mechanism it is charged at launch.

    Parameters
    ----------
    kept : Sub
        The mechanism as its owner sees it.
    """

    def __init__(self, kept: SubSessionMechanism) -> None:
        super().__init__(kept, kept.inner)
        self._core.on_change(lambda: registry.note_use(self))
        registry.note_use(self)


class PartSession(ChildSession):
    """One part of a partition: see :meth:`Session.partition`."""
