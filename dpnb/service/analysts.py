"""The session of one analyst on a table of the service, and what of the table the analyst may see."""

from __future__ import annotations

import json

import msgspec

from dpnb._core.accountant.grant import Grant
from dpnb._request import ALWAYS, AnyRequest, CloseMechanism, CompareWithThreshold, Conditions, LaunchMechanism
from dpnb.copying import NotCopyable
from dpnb.errors import ChargesStopped, RequestError
from dpnb.ledger import Ledger, parent_launch
from dpnb.ledger.declared import STATED, of_version
from dpnb.ledger.shared_rows import SharedRows
from dpnb.session.base import BaseSession
from dpnb.wire.messages import EarlierColumns, Table


class AnalystSession(NotCopyable):
    """The session of one analyst on a table, and the rows of the ledger that the analyst may see.

    Without a part of the budget, the whole budget is for all.
    """

    def __init__(self, name: str, session: BaseSession, rows: SharedRows, part: Grant | None) -> None:
        self.name, self.session, self.rows, self._part = name, session, rows, part
        self._is_reserved = part is not None and part.mode == "reserved"

    def has_part(self, part: Grant | None) -> bool:
        """Whether this is the session of a part of the budget; of None, of the whole budget."""
        return (None if self._part is None else self._part.id) == (None if part is None else part.id)

    @property
    def description(self) -> Table:
        """The table as the analyst may know it."""
        core = self.session._core
        public, number = core.pricer.public, 0
        metadata, parameters = known_of(core.account.ledger, self._part)
        if self._part is not None and not self._is_reserved:
            (number,) = self.rows.by_ids((self._part.id,))
        return Table(
            core.name,
            core.version,
            metadata,
            parameters,
            core.tables.columns,
            public.units,
            dict(public.rows),
            core.notice,
            self.name,
            "reserved" if self._is_reserved else "pooled",
            number,
            core.tables.engine,
            tuple(EarlierColumns(last, of_version(one.metadata)) for last, one in self.rows.earlier),
        )

    def translated(self, conditions: Conditions | None) -> Conditions:
        """The conditions of a request with the ledger's own numbers of rows."""
        if conditions is None or not conditions.inside:
            return conditions or ALWAYS
        return msgspec.structs.replace(conditions, inside=self.rows.node(conditions.inside))

    def refuse_other_version(self, request_id: str) -> None:
        """Refuse a request that was charged for another version of the table: it would be charged again."""
        charged, version = self.rows.version_of(request_id), self.session._core.version
        if charged not in (None, version):
            raise RequestError(
                f"request: was charged for version {charged!r} of the table, and this is version {version!r}; nothing "
                "more was charged; connect again, and make a new request"
            )

    def refuse_foreign(self, node: str, request: AnyRequest, conditions: Conditions) -> None:
        """Refuse a request to a mechanism that another analyst launched, or a launch under the name of one.

        That is possible in pooled mode only: in reserved mode nobody else has the node.  The node and the conditions
        have the ledger's own numbers of rows; see `translated`.
        """
        if conditions.inside:
            self._refuse_foreign(conditions.inside)
        match request:
            case LaunchMechanism() | CloseMechanism() | CompareWithThreshold():
                self._refuse_foreign(node, request.name)
            case _:
                self._refuse_foreign(node)

    def _refuse_foreign(self, node: str, name: str | None = None) -> None:
        """Refuse the mechanisms that contain the node, and the one with this name in it."""
        tree = self.session._core.account.tree
        launches = tree.sync()
        concerned = [one for one in launches.values() if name is not None and (one.node, one.name) == (node, name)]
        while (parent := parent_launch(node)) is not None and parent[0] in launches:
            concerned.append(launches[parent[0]])
            node = concerned[-1].node
        if any(one.actor not in (None, self.name) for one in concerned):
            raise RequestError(
                "launch: belongs to another analyst, who alone can use it; nothing was charged; launch one under "
                "another name"
            )

    def refuse_revoked(self) -> None:
        """Refuse requests of an analyst whose part of the budget, or that of their project, was revoked."""
        if self._part is None:
            return
        tree = self.session._core.account.tree
        project = tree.grant_of(self._part.node)
        for part, whose in ((tree.grants()[self._part.id], "your part"), (project, "the part of your project")):
            if part is not None and part.is_revoked:
                what = "handed over" if part.is_handed_over else "revoked"
                raise ChargesStopped(
                    f"table: the curator has {what} {whose} of the budget; nothing was charged; recorded answers stay "
                    "free"
                )


def known_of(ledger: Ledger, part: Grant | None) -> tuple[dict[str, str], dict[str, str]]:
    """What an analyst knows as the metadata and parameters of the ledger: in reserved mode, of the own ceiling only."""
    known = ledger.opened  # another session may have declared something else since
    metadata, words = dict(known.metadata), ledger.stated()
    if words is not None:
        metadata[STATED] = words
    if part is None or part.mode != "reserved":
        return metadata, dict(known.parameters)
    return {**metadata, "budget": json.dumps(part.budget.to_json())}, dict(part.parameters)
