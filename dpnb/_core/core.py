"""The core of a session: answers queries and charges them on one node of a ledger.

A session, a sub-session and a part share their methods, each over its own core.  All of them use the same tables and
the same ledger; they differ in the accountant that pays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.tree import Launch, partition_of
from dpnb._core.batches import BatchPipeline, SelectionPipeline
from dpnb._core.execution.executor import Connection, Executor, LocalExecutor, RemoteCalls, RemoteExecutor
from dpnb._core.execution.releases import BatchKind, ReleaseKind
from dpnb._core.execution.selections import SelectionKind
from dpnb._core.history.log import RequestLog
from dpnb._core.history.words import AnswerReader
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb._core.releases import ReleasePipeline
from dpnb._core.tables import PrivateTables
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb._plan.checks import check_view
from dpnb._plan.join import table_of
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import PartSource, Plan, TableSource
from dpnb._request import Release, ReleaseBatch, SelectGroups
from dpnb.accounting.budget import Budget
from dpnb.copying import NotCopyable
from dpnb.errors import PlanError
from dpnb.ledger import node_of
from dpnb.mechanisms import randomness
from dpnb.schema import Key


class SessionCore(NotCopyable):
    """Tables, accountant, pricing and releases of a session, a sub-session or a part.

    `id` is the same for every session on one node of one ledger.  Of a part of a partition, `part` has the rows that
    queries may use, and `label` is its name; of any session inside another one, `statement_prefix` is the scope of the
    odometers' statements.  `remote` is the service that holds the tables, and `connection` what the notebook shows of
    it; without a service the rows are in this process.  `notice` warns that answers are not real or not private, and
    `guarantee` is in words.
    """

    def __init__(
        self,
        *,
        id: str,
        name: str,
        tables: PrivateTables,
        account: Accountant,
        version: str,
        public: PublicSizes,
        source: randomness.NoiseSource,
        notice: str | None = None,
        individuals: IndividualAccounting | None = None,
        guarantee: str | None = None,
        part: PartSource | None = None,
        statement_prefix: str = "",
        label: str = "",
        remote: RemoteCalls | None = None,
        connection: Connection | None = None,
    ) -> None:
        self.id, self.name, self.version, self.notice = id, name, version, notice
        self.tables, self.account, self.individuals, self.source = tables, account, individuals, source
        self.guarantee = guarantee or f"{account.guarantee.words}, for {tables.words}"
        self.part, self.statement_prefix, self.label = part, statement_prefix, label
        self.remote, self.connection = remote, connection
        self.pricer = QueryPricer(tables, account, version, public)
        reader = AnswerReader(tables, account.ledger)
        self.log = RequestLog(account, reader.words)
        known = account, version, self.log
        self.executor: Executor = (
            LocalExecutor(*known, tables=tables, reader=reader)
            if remote is None
            else RemoteExecutor(*known, calls=remote)
        )
        releases, selections = ReleaseKind(self.pricer, source, individuals), SelectionKind(self.pricer, source)
        self.executor.kinds |= {
            Release: releases,
            ReleaseBatch: BatchKind(self.pricer, releases),
            SelectGroups: selections,
        }
        self.releases = ReleasePipeline(self.pricer, reader, self.executor, notice)
        self.selections = SelectionPipeline(self.releases, self.executor, selections)
        self.batches = BatchPipeline(self.releases, self.executor)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever something was charged, answered or refused."""
        self.executor.listeners.append(listener)

    def changed(self) -> None:
        """Notify the listeners that something was charged, answered or refused."""
        self.executor.changed()

    # --- sessions inside this one -------------------------------------------------------------------------------

    def sub_session(self, launch: Launch) -> SessionCore:
        """The core of a sub-session that was launched here, with the same tables and a separate budget."""
        account = self.account.for_sub_session(launch)
        return SessionCore(
            id=self._id_of(node_of(launch.id)),
            name=f"{self.name}: {launch.name}",
            tables=self.tables,
            account=account,
            version=self.version,
            public=self.pricer.public,
            source=self.source,
            notice=self.notice,
            guarantee=f"{account.guarantee.words}, for {self.tables.words}; paid for by {self.name}",
            part=self.part,
            statement_prefix="Of the queries in this sub-session alone: ",
            remote=None if self.remote is None else self.remote.at(account.root_node),
            connection=self.connection,
        )

    def part_of(self, launch: Launch, key: Key) -> SessionCore:
        """The core of a part of a partition that was launched here: some of the rows, paid for by the largest part."""
        label = f"{launch.resolved['by']} {key}"
        rows = partition_of(launch).part(key)
        part = SessionCore(
            id=self._id_of(node_of(launch.id, (key,))),
            name=f"{self.name}: {label}",
            tables=self.tables.of_part(rows),
            account=self.account.for_part(launch, (key,)),
            version=self.version,
            public=PublicSizes(),
            source=self.source,
            notice=self.notice,
            individuals=self.individuals,
            guarantee=f"a part of {self.name}, which pays for the largest part: {self.guarantee}",
            part=rows,
            statement_prefix="Of the queries in this part alone: ",
            label=label,
            remote=None if self.remote is None else self.remote.at(node_of(launch.id, (key,))),
            connection=self.connection,
        )
        part.on_change(self.executor.changed)
        return part

    def for_analyst(self, grant: Grant) -> SessionCore:
        """The core of an analyst who has a part of this session's budget, at a service."""
        account, individuals = self.account.for_analyst(grant), self.individuals
        if individuals is not None and grant.mode == "reserved":
            individuals = individuals.for_account(account)
        analyst = SessionCore(
            id=self._id_of(node_of(grant.id)),
            name=self.name,
            tables=self.tables,
            account=account,
            version=self.version,
            public=self.pricer.public,
            source=randomness.derived_source(self.source, grant.name),
            notice=self.notice,
            individuals=individuals,
        )
        analyst.on_change(self.executor.changed)
        return analyst

    def _id_of(self, node: str) -> str:
        return hashlib.sha256(f"{self.id} {node}".encode()).hexdigest()[:16]

    # --- queries ------------------------------------------------------------------------------------------------

    @property
    def budget(self) -> Budget | None:
        """The total privacy budget, None without one; for a part, that of the session it belongs to."""
        return self.account.budget.limit

    def rows(self, table: str) -> TableSource:
        """The rows of a table that queries may use: all of its rows, or, in a part, its own rows only."""
        if self.part is None:
            return table
        if table != table_of(self.part):
            raise PlanError(
                f"table {table!r}: this is a part of {table_of(self.part)!r}, the only table that can be queried here"
            )
        return self.part

    def check(self, plan: Plan, view: AnyView) -> None:
        """Refuse a query whose sensitivity is not bounded, or of other rows than those of this part."""
        self.tables.compile(plan)
        check_view(plan, view, self.tables.schema(plan.source))
