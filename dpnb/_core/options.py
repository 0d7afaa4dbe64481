"""Validation of the curator's arguments, before anything is opened or read."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpnb._backends import StorageType, doubtful_types, storage_types_of, undeclared_zones
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._target import refuse_long
from dpnb.accounting.budget import Budget, NoBudget, checked_budget
from dpnb.accounting.exact import LEAST_FAILURE, Number, decimal_down, positive, shown, to_text
from dpnb.accounting.guarantee import NO_FILTER
from dpnb.errors import InvalidValueError, PlanError, SchemaError, SchemaWarning
from dpnb.schema import Schema, Text, encodable, whole_number

PACKAGE = str(Path(__file__).parents[1]) + os.sep

DISCOVERY_SHARE = Fraction(1, 10)
"""The default share of the budget's discovery_delta that one discovery uses."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

EXAMPLE = (
    'dpnb.Session(table, name="people", privacy_unit="person", max_rows_per_unit=5, '
    "budget=dpnb.Budget(epsilon=1.0, delta=1e-6), "
    'schema={"age": dpnb.Bounded(0, 100), "plan": dpnb.Categories(["free", "paid"])})  '
    "# privacy_unit is the column that identifies a person; without it, one row is protected"
)

REQUIRED = {
    "table": "the private table, a data frame",
    "name": "the name of the table, under which its ledger <name>.dpnb keeps what was charged",
    "budget": "the total privacy loss of everything that is released from the table",
    "schema": "the columns that queries may use, each with its public bounds or categories, which are never computed "
    "from the rows; columns that are not named cannot be queried",
}
"""What the required arguments of a session are."""


MAX_COLUMNS = 30
"""Columns that are repeated."""

DECLARED: Mapping[StorageType | None, str] = {
    "texts": "dpnb.Categories([...])",
    "whole numbers": "dpnb.Bounded(low, high, integer=True)",
    "numbers": "dpnb.Bounded(low, high)",
    "decimal numbers": "dpnb.Bounded(low, high)",
    "truth values": "dpnb.Categories([True, False])",
    "dates or times": "dpnb.Dates(first, last)",
}
"""What declares a column, to be completed."""


def remark_on(table: object) -> str:
    """A schema of a table's columns to complete, from their types alone; empty if they are not known."""
    if type(table).__name__ != "DataFrame":  # of pandas, polars or an engine
        return ""
    columns: dict[object, StorageType | None] = dict.fromkeys(getattr(table, "columns", []))
    with suppress(Exception):  # a table of which only the names are known
        columns.update(storage_types_of(table))
    parts = [f"{name!r}: {DECLARED.get(kind, '...')}" for name, kind in columns.items()]
    parts[MAX_COLUMNS:] = ["..."] * (len(parts) > MAX_COLUMNS)
    return (
        f"; for the columns of this table, to complete from a codebook: schema={{{', '.join(parts)}}}; or python -m "
        "dpnb draft table.csv, in a terminal outside of Jupyter"
    )


def checked_name(name: object) -> str:
    """A name of a session, which is also used as a file name."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    raise InvalidValueError(
        f"name: must be letters, digits, '.', '_' or '-', at most 100, starting with a letter or digit; got {name!r}"
    )


def checked_limit(budget: object, odometer_delta: Number | None) -> Budget | NoBudget:
    """The budget of a session, or that the curator declares that there is none."""
    if budget is None:
        return NoBudget() if odometer_delta is None else NoBudget(odometer_delta)
    checked = checked_budget(budget)
    if odometer_delta is not None:
        raise InvalidValueError(
            "odometer_delta: is for a session without a budget (budget=None), since the odometers of a budget have its "
            f"delta; got {shown(odometer_delta)} with {checked!r}; leave it out"
        )
    return checked


def filter_of(limit: Budget | NoBudget, name: str) -> str:
    """The name of the filter: the given one; without a budget `NO_FILTER`, if none but the default was given."""
    if limit.is_limited:
        return name
    if name != "gdp":
        raise InvalidValueError(
            f"filter: enforces a budget, and this session has none (budget=None); got {name!r}; leave it out, or give "
            "a budget"
        )
    return NO_FILTER


def checked_version(version: object) -> str:
    """A version of the table."""
    if isinstance(version, str) and version and encodable(version):
        return version
    raise InvalidValueError(f"version: must be a non-empty str that names the state of the table; got {version!r}")


def checked_seed(seed: object) -> int:
    """A seed for test noise."""
    number = whole_number(seed)
    if number is None or number < 0:
        raise InvalidValueError(f"not_private_test_seed: must be a whole number, at least 0; got {seed!r}")
    return number


def checked_size(size: object) -> int | None:
    """A public number of units, or None."""
    number = whole_number(size)
    if size is None or (number is not None and number > 0):
        return number
    raise InvalidValueError(f"public_size: must be a positive whole number of units, or left out; got {size!r}")


def checked_sampled(sampled: Any) -> Fraction | None:
    """The fraction of the population that the units are: 0 of a large one, 1 in a census; None if it is not stated."""
    if sampled is None:
        return None
    words = {"population": Fraction(0), "census": Fraction(1)}
    if isinstance(sampled, str) and sampled in words:
        return words[sampled]
    number = None
    if not isinstance(sampled, str):
        with suppress(InvalidValueError):
            number = positive(sampled, name="sampled")
    if number is None or not number < 1:
        raise InvalidValueError(
            f"sampled: must be 'population', 'census', or the fraction of the population that was drawn, between 0 and "
            f"1; got {sampled!r}; it follows from the design of the data, and is never computed from the table"
        )
    return refuse_long(number, "sampled", sampled)


def checked_rows(rows: object, units: Mapping[str, PrivacyUnit], size: int | None) -> dict[str, int]:
    """The argument ``public_rows`` by table; at most the number of rows of `size` units that can count.

    The name of a single table is empty.
    """
    if rows is None:
        return {}
    several = "" not in units
    if several != isinstance(rows, Mapping):
        expected = "a mapping of table names to whole numbers" if several else "one whole number"
        raise SchemaError(f"public_rows: must be {expected}; got {rows!r}")
    checked = {}
    for name, value in (rows if isinstance(rows, Mapping) else {"": rows}).items():
        if name not in units:
            raise SchemaError(f"public_rows: {name!r} is not one of the tables {', '.join(map(repr, units))}")
        number = whole_number(value)
        if number is None or number <= 0:
            raise InvalidValueError(f"public_rows: must be a positive whole number of rows; got {rows!r}")
        limit = units[name].max_rows
        if limit is not None and size is not None and number > limit * size:
            raise InvalidValueError(
                f"public_rows: must be at most {limit:,} per unit, of {size:,} units (public_size); got {rows!r}; give "
                "the number of rows that count, or another public_size"
            )
        checked[name] = number
    return checked


def discovery_delta(delta: Any, budget: Budget | NoBudget) -> str:
    """The part of the budget's discovery_delta that a discovery uses, as a decimal text."""
    total = budget.discovery_delta
    if not total:
        raise PlanError(
            "discover: the set of groups is private, and the budget has no discovery_delta for finding them; use "
            "dpnb.Budget(epsilon=, delta=, discovery_delta=), or give the public groups as groupby(..., keys=[...])"
        )
    part = total * DISCOVERY_SHARE if delta is None else positive(delta, name="delta")
    if part > total:
        raise InvalidValueError(f"delta: must be at most discovery_delta={decimal_down(total)!r}; got {delta!r}")
    if part < LEAST_FAILURE:
        raise InvalidValueError(f"delta: must be at least 1e-300; got {shown(part)}; give for example 1e-8")
    return to_text(part)


def ledger_path(ledger: object, name: str) -> str:
    """Path of the ledger; by default in the working directory, beside the notebook."""
    if ledger is None:
        return str(Path.cwd() / f"{name}.dpnb")
    path = os.fspath(ledger) if isinstance(ledger, str | os.PathLike) else None
    if isinstance(path, str) and path and "\0" not in path and encodable(path):
        return path
    raise InvalidValueError(f"ledger: must be the path of a file; got {ledger!r}; leave it out for {name}.dpnb")


def warn_of_texts(schemas: Mapping[str, Schema], budget: Budget | NoBudget) -> None:
    """Warn that a new session has `Text` columns and a budget without discovery_delta."""
    texts = [repr(name) for columns in schemas.values() for name, kind in columns.items() if isinstance(kind, Text)]
    if texts and not budget.discovery_delta:
        warnings.warn(
            f"schema: Text columns {', '.join(dict.fromkeys(texts))} and a budget without discovery_delta: .discover() "
            "will be refused, and only groups with given keys can be queried; add discovery_delta=1e-7 to the budget, "
            "or declare the public values as categories",
            SchemaWarning,
            stacklevel=_level_of_caller(),
        )


IDENTIFIER = re.compile(
    r"(id|uid|pid|uuid|person|patient|participant|subject|respondent|member|user|customer|client|household|employee|"
    r"student|pupil|child|ssn|.*[_. ](id|uid|pid|nr|no)|.*[a-z0-9](Id|ID))",
    re.ASCII,
)
"""Names of columns that often identify persons."""


def warn_of_units(schemas: Mapping[str, Schema], unit: str | None) -> None:
    """Warn that a new session protects single rows, where the schema has a column whose name is that of persons."""
    names = [name for columns in schemas.values() for name in columns if _is_identifier(name)]
    if unit is None and names:
        warnings.warn(
            f"privacy_unit: is not given, so the promise holds for one row, and {names[0]!r} looks like an identifier; "
            f"if one of them can have several rows, pass privacy_unit={names[0]!r} with max_rows_per_unit=, and leave "
            "it out of the schema",
            SchemaWarning,
            stacklevel=_level_of_caller(),
        )


def warn_of_types(tables: Mapping[str, Any], schemas: Mapping[str, Schema]) -> None:
    """Warn of columns that pandas has in a type of which no value, or hardly any, can count as it is declared.

    And of columns of dates that are declared in UTC, where the type states another zone.
    """
    doubtful, zones = dict[str, str](), dict[str, str]()
    for name, schema in schemas.items():
        doubtful |= doubtful_types(tables.get(name), schema)
        zones |= undeclared_zones(tables.get(name), schema)
    if doubtful:
        name, why = next(iter(doubtful.items()))
        warnings.warn(
            f"column {name!r}: {why}; python -m dpnb check shows how many values count{_likewise([*doubtful])}",
            SchemaWarning,
            stacklevel=_level_of_caller(),
        )
    if zones:
        name, zone = next(iter(zones.items()))
        warnings.warn(
            f"column {name!r}: the table has it in {zone}, and it is declared in UTC, so its hours, days and months "
            f"are those of UTC; declare dpnb.Dates(..., zone={zone!r}) before the first charge, or convert the column "
            f"to UTC{_likewise([*zones])}",
            SchemaWarning,
            stacklevel=_level_of_caller(),
        )


def _likewise(names: list[str]) -> str:
    return f"; likewise {', '.join(map(repr, names[1:]))}" if len(names) > 1 else ""


def _is_identifier(name: str) -> bool:
    return IDENTIFIER.fullmatch(name) is not None or IDENTIFIER.fullmatch(name.lower()) is not None


def _level_of_caller() -> int:
    """The `stacklevel` with which a warning from the calling function points to the first line outside dpnb."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
