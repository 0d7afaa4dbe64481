"""A privacy unit's column may hold anything."""

from __future__ import annotations

from typing import Any

import pandas as pd

import dpnb
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.privacy_unit import privacy_unit_from
from dpnb.schema import schema_from


class _Odd:
    """An object that does not say what it is."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise ValueError


def test_an_object_that_does_not_say_what_it_is_names_nobody() -> None:
    schema = schema_from({"y": dpnb.Bounded(0, 1)})
    names = pd.Series([1, _Odd()], dtype=object)
    table = pd.DataFrame({"u": names, "y": [1.0, 1.0]})
    assert prepare(table, schema, privacy_unit_from("u", schema, rows=2)).rows == 1
