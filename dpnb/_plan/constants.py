"""Public constants of a plan: numbers, strings, dates, lists of them, keys of groups, the bins of a bounds finder.

*Categories.*  A value counts as a declared category whether its column holds texts or numbers: readers choose a
column's type from all of its values, and one text turns a column of the numbers 0, 25, 50 into texts.  So 25, 25.0 and
``"25"`` are one category, unless two declared categories would then be one value; these are matched as they are
written.  The values are a finite, public list, so every engine looks them up in the same way.

*Bins.*  A bounds finder counts rows between 1, 2 and 5 times each power of ten, on both sides of zero.  A value belongs
to the bin of its magnitude, so one histogram covers a declared range of any width.  The edges follow from the declared
bounds alone.  The bins grow like those of ApproxBounds in R. J. Wilson et al., *Differentially Private SQL with Bounded
User Contribution*, PoPETs 2020(2), which are powers of a base; 1-2-5 gives readable bounds.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Duration, String, Timestamp
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.expressions.text import MAX_LISTED
from dpnb._plan.plan import GroupLevel
from dpnb._plan.unreleased import Unreleased, did_you_mean
from dpnb.errors import PlanError, SchemaError
from dpnb.schema import (
    MAX_EXACT_INTEGER,
    MIN_MAGNITUDE,
    MIN_RELATIVE_RANGE,
    Key,
    Schema,
    encodable,
    has_allowed_magnitude,
    plain,
    text_of,
)
from dpnb.times import time_text

# --- values of declared categories ------------------------------------------------------------------------------------


DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?", re.ASCII)

TRUTH = {"True": 1, "true": 1, "TRUE": 1, "False": 0, "false": 0, "FALSE": 0}
"""The texts of truth values that readers recognise, as numbers."""

MAX_DIGITS = 100
"""Longer texts are not numbers."""


class CategoryValues(NamedTuple):
    """The code of each value that counts, for columns of texts and of numbers; truth values are the numbers 0 and 1."""

    texts: dict[str, int]
    numbers: dict[int | float, int]


def values_of(categories: Iterable[Key]) -> CategoryValues:
    """The values that count as each category, by its index."""
    exact: dict[Key, int] = {key: code for code, key in enumerate(categories)}
    claims: dict[Key, set[int]] = {}
    for key, code in exact.items():
        number = _number(key) if isinstance(key, str) else key
        for value in () if number is None else (number, *_texts(number)):
            claims.setdefault(value, set()).add(code)
    codes = {value: next(iter(by)) for value, by in claims.items() if len(by) == 1} | exact
    return CategoryValues(
        {value: code for value, code in codes.items() if isinstance(value, str)},
        {value: code for value, code in codes.items() if not isinstance(value, str)},
    )


def _number(text: str) -> int | float | None:
    """The number that a reader makes of a text; None if it makes none, or one that cannot be a category."""
    if text in TRUTH or not DECIMAL.fullmatch(text) or len(text) > MAX_DIGITS:
        return TRUTH.get(text)
    try:
        number: int | float = int(text)
    except ValueError:
        number = float(text)
    return number if abs(number) < 2**63 and has_allowed_magnitude(number) else None


def _texts(number: int | float) -> list[str]:
    """How a number is written: as an integer, and as a library writes a double."""
    texts = [repr(float(number))] if isinstance(number, float) or abs(number) <= MAX_EXACT_INTEGER else []
    if number == number // 1:
        texts.append(str(int(number)))
    return texts + [text for text, truth in TRUTH.items() if truth == number]


# --- public constants of a plan ---------------------------------------------------------------------------------------


def constant(value: object, where: str) -> Key:
    """A constant that a plan can hold: a finite number, a truth value, a string, or a date as an ISO string.

    Raises `NotReleasedError` for a query, and `PlanError` for anything else.
    """
    if isinstance(value, Unreleased):
        value._refuse()
    value = value if isinstance(value, np.datetime64) else plain(value)
    if isinstance(value, date | np.datetime64):
        try:
            value = plain(time_text(value, where))
        except SchemaError as error:
            raise PlanError(str(error)) from None
    if isinstance(value, bool) or (isinstance(value, str) and encodable(value)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise PlanError(
        f"{where}: a constant is a finite number of at most 64 bits, a truth value, a str or a date; got "
        f"{_shown(value)}; rows without a value never count; .isna() finds them"
    )


def _shown(value: object) -> str:
    """The repr of a value, or a description of an int that has too many digits for one."""
    try:
        return repr(value)
    except ValueError:
        return "a number of thousands of digits"


def number(value: object, where: str) -> float:
    """A finite number; raises `PlanError` for anything else."""
    checked = constant(value, where)
    if isinstance(checked, bool | str):
        raise PlanError(f"{where}: must be a finite number; got {value!r}")
    return float(checked)


def listed(values: object, where: str) -> tuple[Key, ...]:
    """The constants of a list, in order; raises `PlanError` for anything else."""
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise PlanError(f"{where}: must be a list of values, in a fixed order; got {values!r}")
    constants = tuple(constant(value, where) for value in values)
    if not constants:
        raise PlanError(f"{where}: must contain at least one value; got an empty list")
    return constants


def flag(value: object, name: str) -> bool:
    """A truth value, of Python or numpy; raises `PlanError` for anything else."""
    value = plain(value)
    if isinstance(value, bool):
        return value
    raise PlanError(f"{name}: must be True or False; got {value!r}")


def group_key_table(keys: object, by: tuple[GroupLevel, ...], schema: Schema) -> tuple[tuple[Key, ...], ...]:
    """The public keys of groups, given as a list of keys, a table, or the answer of a discovery.

    Refuses a key that does not have one value for each level, occurs twice, or has a value that its column cannot have.
    """
    names = [group.name for group in by]
    answer_keys = getattr(keys, "keys", None)
    rows: Iterable[Any]
    source: Any = keys
    if is_into_dataframe(source):
        columns = public_columns(source, "keys")
        missing = [name for name in names if name not in columns]
        if missing:
            raise PlanError(f"keys: the table of keys must have the columns {names!r}; it lacks {missing!r}")
        rows = list(zip(*(columns[name] for name in names), strict=True))
    elif isinstance(answer_keys, tuple):  # an answer
        if list(source.names) != names:
            raise PlanError(f"keys: the answer must have the groups {names!r}; it has {list(source.names)!r}")
        rows = answer_keys
    elif isinstance(keys, str | bytes | Mapping | Set) or not isinstance(keys, Iterable):
        both = f"; write groupby({[*names, keys]!r}) to group by both" if isinstance(keys, str) else ""
        raise PlanError(
            f"keys: must be a list of keys, a table of keys, or the answer of .discover(); got {keys!r}{both}"
        )
    else:
        rows = [key if isinstance(key, tuple | list) else (key,) for key in keys]
    checked, readers = [], [_key_reader(group, schema) for group in by]
    for row in rows:
        if len(row) != len(by):
            raise PlanError(f"keys: each must have {len(by)} values, one for each of {names!r}; got {row!r}")
        checked.append(tuple(read(part) for read, part in zip(readers, row, strict=True)))
    if not checked:
        raise PlanError("keys: must contain at least one key; got none")
    if len(set(checked)) != len(checked):
        twice = Counter(checked).most_common(1)[0][0]
        raise PlanError(f"keys: must differ; got {twice!r} twice")
    return tuple(checked)


def _key_reader(group: GroupLevel, schema: Schema) -> Callable[[object], Key]:
    """What reads one part of a key as a value of its column."""
    kind, possible = dtype_of(group.expression, schema), public_keys_of(group.expression, schema) or ()
    declared: dict[object, Key] = {value: value for value in possible}

    def read(value: object) -> Key:
        part = constant(value, "keys")
        if isinstance(kind, String):
            return text_of(part) or ""
        if isinstance(kind, Timestamp | Duration):
            raise PlanError(
                f"keys: {group.name!r} holds dates; group by a part of them, such as .dt.year; got {part!r}"
            )
        if part not in declared or (isinstance(part, bool) and not isinstance(kind, Boolean | Categorical)):
            shown = ", ".join(map(repr, possible[:MAX_LISTED])) + (", ..." if len(possible) > MAX_LISTED else "")
            raise PlanError(
                f"keys: {part!r} is not a value that {group.name!r} can have{did_you_mean(part, possible)}; its values "
                f"are {shown}"
            )
        return declared[part]

    return read


def public_columns(table: Any, where: str) -> dict[str, list[Any]]:
    """The columns of a public table, by name; the names must be unique strings."""
    names = list(table.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise PlanError(f"{where}: the public table's column names must be unique strings; got {names!r}")
    frame = nw.from_native(table, eager_only=True)
    return {name: frame.get_column(name).to_list() for name in names}


DECADES = 12
"""Magnitudes this many powers of ten below the declared bounds are told apart; smaller ones count as near zero."""

STEPS = (1, 2, 5)

Range = tuple[float, float]


@dataclass(frozen=True)
class BoundsGrid:
    """The bins of a declared range."""

    edges: tuple[float, ...]  # ascending; a bin includes its upper edge, the first one also its lower edge
    labels: tuple[str, ...]  # a name for each bin
    # The numbers of each bin as they are read: below zero, an edge is the next number below a step, so that a bin there
    # includes the step of larger magnitude, as above zero.
    ranges: tuple[Range, ...]


def bounds_grid(low: float, high: float, *, whole: bool) -> BoundsGrid:
    """The bins between two finite bounds, ``low < high``; the smallest step is 1 if the values are whole numbers."""

    def is_inside(edge: float) -> bool:
        """Whether the edge is far enough from both bounds that the bins there could be declared as bounds."""
        least = 2 * MIN_RELATIVE_RANGE * abs(edge)
        return edge - low > least and high - edge > least

    shown = {low: low, high: high}
    for step in _steps(max(abs(low), abs(high)), whole=whole):
        shown |= {edge: value for edge, value in ((step, step), (_below(-step, whole), -step)) if is_inside(edge)}
    if low < 0 <= high:  # zero has a bin of its own
        shown |= {edge: 0.0 for edge in (_below(0.0, whole), 0.0) if low < edge <= high}
    edges = sorted(shown)
    ranges = [(shown[a], shown[b]) for a, b in pairwise(edges)]
    labels = [_label(part, first=index == 0, last=index == len(ranges) - 1) for index, part in enumerate(ranges)]
    return BoundsGrid(tuple(edges), tuple(labels), tuple(ranges))


def _steps(magnitude: float, *, whole: bool) -> list[float]:
    top = math.floor(math.log10(magnitude)) + 1
    bottom = max(top - DECADES, 0 if whole else math.ceil(math.log10(MIN_MAGNITUDE)) + 1)
    return [float(f"{step}e{power}") for power in range(bottom, top + 1) for step in STEPS]


def _below(number: float, whole: bool) -> float:
    """The largest number that a column can have below `number`, or below which all numbers count as 0."""
    if whole:
        return min(number - 1, math.nextafter(number, -math.inf))  # above 2**53 doubles are further apart
    return math.nextafter(number, -math.inf) if number else -MIN_MAGNITUDE


def _label(part: Range, *, first: bool, last: bool) -> str:
    low, high = part
    if low == high:
        return _text(low)
    start = "[" if first or low < 0 else "("
    end = ")" if high <= 0 and low < 0 and not last else "]"
    return f"{start}{_text(low)}, {_text(high)}{end}"


def _text(number: float) -> str:
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
