"""The groups of a partition, whose rows are tables of their own: how many there are, and as the ledger has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import MAX_KEYS, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.plan import GroupLevel, PartSource, TableSource
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.schema import Key, Schema, whole_number
from dpnb.errors import PlanError


def part_keys(by: Expression, schema: Schema) -> tuple[Key, ...]:
    """The public keys of a partition.

    Raises
    ------
    PlanError
        They are not public, or too many.
    """
    keys = public_keys_of(by, schema)
    if keys is None:
        raise PlanError(
            f"partition: the values of {words(by)} are texts, and which there are is private; partition by a column of "
            "dpnb.Categories, or by a condition"
        )
    if len(keys) > MAX_KEYS:
        raise PlanError(f"partition: {words(by)} has {len(keys):,} values, and {MAX_KEYS:,} are the most; .cut() it")
    return keys


def parts_of_unit(unit: PrivacyUnit, keys: int, asked: Any) -> tuple[int, int | None]:
    """In how many parts one unit can have rows, and the limit that has to be enforced for it, if any.

    Raises
    ------
    PlanError
        What was asked for is no whole number of at least 1, or single rows are the unit.
    """
    natural = min(keys, unit.max_rows) if unit.max_rows is not None else keys
    if asked is None:
        return natural, None
    number = whole_number(asked)
    if number is None or number < 1:
        raise PlanError(
            f"max_parts_per_unit: must be a whole number of at least 1; got {asked!r}; leave it out for all"
        )
    if unit.column is None and number != 1:
        raise PlanError(
            f"max_parts_per_unit: each row is a unit of its own and in one part; got {asked!r}; leave it out"
        )
    return min(number, natural), number if number < natural else None


def parts_to_json(source: TableSource, by: GroupLevel, most: int | None) -> dict[str, Any]:
    """What all parts of a partition share, for the ledger; :func:`part_from_json` reads it."""
    return {"source": msgspec.to_builtins(source), "by": msgspec.to_builtins(by), "max_parts_per_unit": most}


def part_from_json(stored: Mapping[str, Any], key: Key) -> PartSource:
    """The part with a key, of what :func:`parts_to_json` wrote.

    Raises
    ------
    PlanError
        It cannot be read.
    """
    try:
        source, by = msgspec.convert(stored["source"], TableSource), msgspec.convert(stored["by"], GroupLevel)
    except (KeyError, msgspec.ValidationError) as error:
        raise PlanError(f"partition: cannot be read ({error}); launch one under a new name") from None
    return PartSource(source, by, key, stored["max_parts_per_unit"])


def table_of(source: TableSource) -> str:
    """The table that a part is of."""
    while isinstance(source, PartSource):
        source = source.source
    return source if isinstance(source, str) else ""
