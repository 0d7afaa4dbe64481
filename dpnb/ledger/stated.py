"""The curator's own words about a table: a row of kind ``statement`` each time that they change.

A row has all of them.  They change nothing that is computed, so they may change at any time.  An analyst's copy of the
ledger, which has no rows about the table, has them in its metadata, and they are no part of its chain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpnb.ledger.charge import STATEMENT
from dpnb.ledger.connection import refuse_unreadable
from dpnb.ledger.declared import STATED
from dpnb.ledger.ledger import Ledger

TEXT, LABEL = "text", "unit_label"


def state(ledger: Ledger, version: str, text: Mapping[str, str] | None, label: str | None) -> None:
    """Record what the curator states from now on, if it differs; None keeps what the ledger has."""
    if text is None and label is None:
        return
    with ledger.transaction():
        known = stated_in(ledger.stated())
        now = {
            TEXT: known.get(TEXT, {}) if text is None else dict(text),
            LABEL: known.get(LABEL) if label is None else label,
        }
        if now != {TEXT: known.get(TEXT), LABEL: known.get(LABEL)}:
            ledger.note(STATEMENT, version, now)


def label_in(ledger: Ledger) -> str | None:
    """The word for one unit."""
    label: str | None = stated_in(ledger.stated()).get(LABEL)
    return label


def stated_in(content: str | None) -> dict[str, Any]:
    """What a ledger says in its metadata about it; empty for nothing."""
    with refuse_unreadable(f"the entry {STATED!r}"):
        return {} if content is None else dict(json.loads(content))
