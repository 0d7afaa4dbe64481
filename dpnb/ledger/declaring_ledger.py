"""The part of a ledger that records what its session declares, and refuses the session once that was replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import REQUESTS, STATEMENT, VERSION, Charge
from dpnb.ledger.connection import refuse_unreadable
from dpnb.ledger.declared import STATED, Declared, extends, refuse_replaced
from dpnb.ledger.queries import DeclarationChange, LedgerQueries

TEXT, LABEL = "text", "unit_label"
"""The curator's own words about a table, in a row of kind ``statement`` each time that they change."""


class DeclaringLedger(LedgerQueries):
    """A session that returns to a version that was used before declares that with its first charge.

    Reading recorded answers changes nothing, and ends no other session.
    """

    _version = ""
    _has_returned = False  # in the current transaction
    _followed: ChainHead | None
    """The last verified row of the chain; None while the file is being created."""
    _agreed: ChainHead | None  # the end of the chain up to which nothing has replaced what was declared

    def transaction(self) -> AbstractContextManager[None]:
        """Block all other writers; see `Ledger`."""
        raise NotImplementedError

    def note(self, kind: str, version: str, details: Mapping[str, Any], key: str | None = None) -> Charge:
        """Write a row about the table; see `Ledger`."""
        raise NotImplementedError

    def state(self, version: str, text: Mapping[str, str] | None, label: str | None) -> None:
        """Record what the curator states from now on, if it differs; None keeps what the ledger has.

        A row has all of the words.  They change nothing that is computed, so they may change at any time.  An analyst's
        copy, which has no rows about the table, has them in its metadata, and they are no part of its chain.
        """
        if text is None and label is None:
            return
        with self.transaction():
            known = self._words
            now = {
                TEXT: known.get(TEXT, {}) if text is None else dict(text),
                LABEL: known.get(LABEL) if label is None else label,
            }
            if now != {TEXT: known.get(TEXT), LABEL: known.get(LABEL)}:
                self.note(STATEMENT, version, now)

    @property
    def unit_label(self) -> str | None:
        """The curator's word for one unit."""
        label: str | None = self._words.get(LABEL)
        return label

    @property
    def _words(self) -> dict[str, Any]:
        content = self.stated()
        with refuse_unreadable(f"the entry {STATED!r}"):
            return {} if content is None else dict(json.loads(content))

    def _declare(self, wanted: Declared, version: str, change: DeclarationChange) -> None:
        with refuse_unreadable("the metadata"):
            known, declared = self.declared, change(self, wanted)
        self._declared, self._version = declared, version
        self._returns = declared != known and declared == self.declared_at_last_request(version)
        if declared != known and not self._returns:
            self._note_declared(declared)

    def _note_declared(self, declared: Declared) -> None:
        self.note(VERSION, self._version, {name: dict(one) for name, one in declared._asdict().items()})

    def declare_again(self) -> None:
        """Declare what this session returns to now, before its first charge."""
        with self.transaction():
            self._declare_before(REQUESTS[0])

    def _declare_before(self, kind: str) -> None:
        """Declare what a row of a kind is about, if this session returns to it; refuse what others have replaced."""
        if self._returns:
            if kind in REQUESTS and not self._has_returned:
                self._return()
        elif kind != VERSION and self._declared is not None:
            refuse_replaced(self.path, self._declared, self.declared)
            self._agreed = self._followed

    def _return(self) -> None:
        """Declare the version again, with the columns that others have added to it since this session was opened."""
        now, own = self.declared, self.declared_at_last_request(self._version) or self.opened
        declared = now if extends(now, own) else own
        refuse_replaced(self.path, self.opened, declared)
        self._has_returned = True
        if declared != now:
            self._note_declared(declared)
