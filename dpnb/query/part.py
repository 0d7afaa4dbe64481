"""The rows of one group, as a table of their own: what a partition asks about.

With a limit, a unit that has rows in more groups counts in the first `most` of them by the hash of `contribution`,
before any filter: the choice depends on the unit's own rows alone, and is the same in every part and question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from dpnb.errors import PlanError
from dpnb.query.contribution import first_groups
from dpnb.query.expressions.evaluate import Rows, level_codes
from dpnb.query.expressions.kinds import MOST_KEYS, keys_of
from dpnb.query.expressions.nodes import Expression
from dpnb.query.expressions.words import words
from dpnb.query.plan import Group, PartOf, Source
from dpnb.query.prepare import Prepared
from dpnb.query.schema import Key, Schema, whole_number
from dpnb.query.unit import PrivacyUnit


def part_keys(by: Expression, schema: Schema) -> tuple[Key, ...]:
    """The public keys of a partition.

    Raises
    ------
    PlanError
        They are not public, or too many.
    """
    keys = keys_of(by, schema)
    if keys is None:
        raise PlanError(
            f"partition: the values of {words(by)} are texts, and which there are is private; partition by a column of "
            "dpnb.Categories, or by a condition"
        )
    if len(keys) > MOST_KEYS:
        raise PlanError(f"partition: {words(by)} has {len(keys):,} values, and {MOST_KEYS:,} are the most; .cut() it")
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


def part(table: Prepared, schema: Schema, which: PartOf) -> Prepared:
    """The rows of a part: a private value."""
    with np.errstate(all="ignore"):
        rows = Rows(table, schema)
        codes, _ = level_codes(which.by.of, rows)
    place = part_keys(which.by.of, schema).index(which.key)
    chosen = np.flatnonzero(codes >= 0)
    if which.most is not None:
        groups = codes[chosen].astype(np.int64)
        chosen = chosen[first_groups(rows.units[chosen], rows.names[chosen], groups, groups, which.most)]
    return table.taken(chosen[codes[chosen] == place])


def parts_to_json(source: Source, by: Group, most: int | None) -> dict[str, Any]:
    """What all parts of a partition share, for the ledger; :func:`part_from_json` reads it."""
    return {"source": msgspec.to_builtins(source), "by": msgspec.to_builtins(by), "most": most}


def part_from_json(stored: Mapping[str, Any], key: Key) -> PartOf:
    """The part with a key, of what :func:`parts_to_json` wrote.

    Raises
    ------
    PlanError
        It cannot be read.
    """
    try:
        source, by = msgspec.convert(stored["source"], Source), msgspec.convert(stored["by"], Group)
    except (KeyError, msgspec.ValidationError) as error:
        raise PlanError(f"partition: cannot be read ({error}); launch one under a new name") from None
    return PartOf(source, by, key, stored["most"])


def table_of(source: Source) -> str:
    """The table that a part is of."""
    while isinstance(source, PartOf):
        source = source.source
    return source if isinstance(source, str) else ""
