"""The parts of a partition, each a separate table: their keys, their number per unit, and their JSON in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import MAX_KEYS, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.join import schema_of, unit_of
from dpnb._plan.plan import GroupLevel, Join, PartSource, TableSource
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.schema import Key, Schema, whole_number
from dpnb.errors import PlanError


def part_keys(by: Expression, schema: Schema) -> tuple[Key, ...]:
    """The public keys of a partition; raises `PlanError` if the keys are not public or too many."""
    keys = public_keys_of(by, schema)
    if keys is None:
        raise PlanError(
            f"partition: the values of {words(by)} are texts, and the set of texts is private; partition by a column "
            "of dpnb.Categories, or by a condition"
        )
    if len(keys) > MAX_KEYS:
        raise PlanError(
            f"partition: {words(by)} has {len(keys):,} values; at most {MAX_KEYS:,} are possible; .cut() it"
        )
    return keys


def parts_of_unit(unit: PrivacyUnit, keys: int, requested: Any) -> tuple[int, int | None]:
    """The number of parts in which one unit can have rows, and the limit that must be enforced, if any."""
    possible = min(keys, unit.max_rows) if unit.max_rows is not None else keys
    if requested is None:
        return possible, None
    number = whole_number(requested)
    if number is None or number < 1:
        raise PlanError(
            f"max_parts_per_unit: must be a whole number of at least 1; got {requested!r}; leave it out for all"
        )
    if unit.column is None and number != 1:
        raise PlanError(f"max_parts_per_unit: each row is a unit and in one part; got {requested!r}; leave it out")
    return min(number, possible), number if number < possible else None


def parts_to_json(source: TableSource, by: GroupLevel, max_parts: int | None) -> dict[str, Any]:
    """The fields that all parts of a partition have in common, for the ledger; :func:`part_from_json` reads them."""
    return {"source": msgspec.to_builtins(source), "by": msgspec.to_builtins(by), "max_parts_per_unit": max_parts}


def part_from_json(stored: Mapping[str, Any], key: Key) -> PartSource:
    """The part with a key, from the fields that :func:`parts_to_json` wrote."""
    try:
        source, by = msgspec.convert(stored["source"], TableSource), msgspec.convert(stored["by"], GroupLevel)
    except (KeyError, msgspec.ValidationError) as error:
        raise PlanError(f"partition: cannot be read ({error}); launch one under a new name") from None
    return PartSource(source, by, key, stored["max_parts_per_unit"])


def table_of(source: TableSource) -> str:
    """The name of the table that contains a part; empty for a join."""
    while isinstance(source, PartSource):
        source = source.source
    return source if isinstance(source, str) else ""


def check_parts(source: TableSource, schemas: dict[str, Schema], units: dict[str, PrivacyUnit]) -> None:
    """Refuse a source with a part that no partition of its table has.

    The groups of a part must be public, its key one of them, and its limit on the parts of a unit that of a partition.
    """
    if isinstance(source, Join):
        check_parts(source.left, schemas, units)
        check_parts(source.right, schemas, units)
    elif isinstance(source, PartSource):
        check_parts(source.source, schemas, units)
        keys = part_keys(source.by.expression, schema_of(source.source, schemas))
        limit = source.max_parts_per_unit
        if source.key not in keys or parts_of_unit(unit_of(source.source, units), len(keys), limit)[1] != limit:
            raise PlanError("partition: has no such part; take one of the parts of session.partition()")


def is_within(source: TableSource, part: PartSource) -> bool:
    """Whether a table contains rows of units in a part only: the part, a part of it, or a join with it.

    A join has pairs of rows of one unit, so that a unit without rows in the part has none.
    """
    if source == part:
        return True
    if isinstance(source, PartSource):
        return is_within(source.source, part)
    return isinstance(source, Join) and (is_within(source.left, part) or is_within(source.right, part))
