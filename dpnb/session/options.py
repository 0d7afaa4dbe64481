"""The arguments of `Session` by name, as a type."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, Required, TypedDict

from dpnb._core.unit_budgets import Accounting
from dpnb._plan.privacy_unit import UnitType
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import Number
from dpnb.accounting.guarantee import FilterName
from dpnb.accounting.individual import OnExhausted
from dpnb.results.disclosure.stated import StatementText
from dpnb.schema import DeclaredColumn

Columns = Mapping[str, DeclaredColumn]


Sampled = Literal["population", "census"] | Number
"""What the units of a table are: see `Session`."""


class SessionOptions(TypedDict, total=False):
    """The named arguments of `Session`, for `Session.rehearse`."""

    name: Required[str]
    budget: Required[Budget | None]
    schema: Required[Columns | Mapping[str, Columns]]
    privacy_unit: str | None
    max_rows_per_unit: int | Mapping[str, int] | None
    max_groups_per_unit: int | Mapping[str, int] | None
    max_rows_per_group: int | Mapping[str, int] | None
    max_norm_per_unit: float | Mapping[str, float] | None
    unit_type: UnitType | None
    missing: Sequence[str]
    separator: str
    decimal: str
    encoding: str
    date_format: str
    public_size: int | None
    public_rows: int | Mapping[str, int] | None
    sampled: Sampled | None
    statement: StatementText | Mapping[str, str] | None
    unit_label: str | None
    version: str
    ledger: str | os.PathLike[str] | None
    filter: FilterName
    accounting: Accounting
    on_exhausted: OnExhausted | None
    odometer_delta: Number | None
    not_private_test_seed: int | None
