"""The schema: the curator's declaration of the columns that an analyst may use."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from dpnb.errors import SchemaError
from dpnb.required import COLUMN_TYPES, meant_column
from dpnb.times import (
    END_OF_DAY,
    MIDNIGHT,
    UTC_ZONE,
    DatesType,
    Offsets,
    Zone,
    declared_times,
    is_date_only,
    refuse_zone_of_bounds,
    seconds_of,
    time_text,
    utc_text,
    zone_of,
)

Key = bool | int | float | str
"""A category, and so a possible key of a group."""

Outside = Literal["clamp", "drop"]
"""How a value outside the bounds counts: as the nearer bound, or as a null."""

MAX_EXACT_INTEGER = 2**53
"""Doubles represent every integer up to this one exactly."""

MAX_MAGNITUDE, MIN_MAGNITUDE = 1e100, 1e-100
"""A number in a schema or a query must be 0, or its absolute value between these: squares, grid steps and the widths
of leaves are then normal doubles, and no step of an evaluation overflows."""

ALLOWED_MAGNITUDES = f"0, or between {MIN_MAGNITUDE:g} and {MAX_MAGNITUDE:g} in absolute value"
"""This rule in words, for error messages."""

MAX_TEXT_LENGTH = 1_000_000
"""Largest declared length of texts."""

MIN_RELATIVE_RANGE = 2.0**-20
"""Bounds must be at least this share of their largest magnitude apart, so that the grid can tell values apart."""


class DeclaredColumn(msgspec.Struct, frozen=True):
    """Base of the column types, so that a type checker sees a dict of several of them as a schema."""


class Bounded(DeclaredColumn, frozen=True, tag="bounded", tag_field="type", omit_defaults=True):
    """A column of numbers, clamped to ``[low, high]`` before anything is computed.

    Parameters
    ----------
    low, high : float
        ``low < high``, each 0, or between 1e-100 and 1e100 in absolute value.  Values that are not finite numbers do
        not count.
    integer : bool, default False
        Whether the column holds whole numbers; a fraction is rounded to the nearest.  Its values can then be groups,
        and its quantiles are whole numbers.
    outside : {"clamp", "drop"}, default "clamp"
        How a value outside the bounds counts.  With ``"clamp"`` it counts as the nearer bound: means are then of
        clamped values, and in a histogram such values accumulate in the first and the last bin.  With ``"drop"`` it
        counts as a null, as if the row had no value in this column; the row still counts where the column is not used.
        The choice is part of the guarantee, so a ledger can be used with only one of the two.

    Raises
    ------
    SchemaError
        A bound is not a number in that range (or not a whole number although `integer` is true), the bounds are
        reversed, equal, or too close together relative to their size; or `outside` is another value.

    Examples
    --------
    >>> import dpnb
    >>> dpnb.Bounded(0, 100, outside="drop")
    Bounded(low=0.0, high=100.0, integer=False, outside='drop')
    """

    low: float
    high: float
    integer: bool = False
    outside: Outside = "clamp"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            msgspec.structs.force_setattr(self, name, _finite(getattr(self, name), name))
        integer: object = self.integer
        if not isinstance(integer, bool) or (integer and not (self.low.is_integer() and self.high.is_integer())):
            raise SchemaError(
                f"Bounded: integer must be True or False, and with True both bounds whole; got integer={integer!r}, "
                f"low={self.low!r}, high={self.high!r}"
            )
        if not self.low < self.high:
            raise SchemaError(
                f"Bounded: low must be below high; got low={self.low!r}, high={self.high!r}; "
                "give two different numbers in ascending order"
            )
        if self.high / 2 - self.low / 2 < MIN_RELATIVE_RANGE * self.magnitude / 2:
            raise SchemaError(
                f"Bounded: high - low must be at least 2**-20 of the larger bound's size; got low={self.low!r}, "
                f"high={self.high!r}; subtract a public constant from the column first"
            )
        msgspec.structs.force_setattr(self, "outside", _checked_outside(self.outside, "Bounded"))

    @property
    def magnitude(self) -> float:
        """Largest absolute value of the clamped column."""
        return max(abs(self.low), abs(self.high))


class Categories(DeclaredColumn, frozen=True, tag="categories", tag_field="type"):
    """A column whose values are in a declared, public list.

    Parameters
    ----------
    values : list of str, int, float or bool
        The categories, in the order of the groups in answers; a number is 0, or between 1e-100 and 1e100 in absolute
        value.  A value of the table that is not listed does not count.

    Raises
    ------
    SchemaError
        The list is empty, contains a duplicate (1, 1.0 and True are one value), a value of another type or a number
        out of range.

    Examples
    --------
    >>> import dpnb
    >>> dpnb.Categories(["north", "south"]).values
    ('north', 'south')
    """

    values: tuple[Key, ...]

    if TYPE_CHECKING:

        def __init__(self, values: Iterable[Key]) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "values", _categories(self.values))

    @property
    def numeric(self) -> bool:
        """Whether every category is a number, so that the categories have an order."""
        return all(isinstance(value, int | float) for value in self.values)


class Text(DeclaredColumn, frozen=True, tag="text", tag_field="type", omit_defaults=True, repr_omit_defaults=True):
    """A column of texts that are not public: names, codes, free text.

    It can be compared with texts that the analyst already knows, searched for them, and grouped by given keys or by
    keys that are discovered under differential privacy.  A number counts as its decimal text; values of other types do
    not count.

    Integers above 2**53 need a column type that preserves them, such as ``Int64`` or ``int64[pyarrow]`` of pandas: in
    a column with nulls or fractions pandas converts them to doubles, whose texts differ.

    Parameters
    ----------
    max_length : int, optional
        Largest number of characters that counts in `.str.len()`; a longer text counts as one of this length there, and
        is not shortened elsewhere.  Without it the lengths have no bound and cannot be queried.

    Raises
    ------
    SchemaError
        `max_length` is not a whole number from 1 to 1,000,000.

    Examples
    --------
    >>> import dpnb
    >>> dpnb.Text(), dpnb.Text(max_length=80)
    (Text(), Text(max_length=80))
    """

    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.max_length is None:
            return
        length = whole_number(self.max_length)
        if length is None or not 1 <= length <= MAX_TEXT_LENGTH:
            raise SchemaError(
                f"Text: max_length must be a whole number from 1 to {MAX_TEXT_LENGTH:,}; got {self.max_length!r}; "
                "leave it out if lengths are not needed"
            )
        msgspec.structs.force_setattr(self, "max_length", length)


class Dates(DeclaredColumn, frozen=True, metaclass=DatesType, tag="dates", tag_field="type", omit_defaults=True):
    """A column of dates or points in time, clamped to ``[first, last]``.

    Parameters
    ----------
    first, last : str or date
        ISO 8601, for example ``"1974-11-01"``; a `datetime.date`, `datetime.datetime` or `pandas.Timestamp` is also
        accepted, if in a named zone only with `zone`.  Without a distance from UTC it is local time of `zone`.  A date
        without a time (a text, or a `datetime.date`) is the whole day: as `first` it means its first instant, as `last`
        its last microsecond.  To end at midnight give the time too, as in ``"1974-11-01T00:00:00"``.  That is also the
        meaning of a date without a time in ledgers made by older versions of dpnb.
    outside : {"clamp", "drop"}, default "clamp"
        How a time outside the bounds counts.  With ``"clamp"`` it counts as the nearer bound: times after `last`
        accumulate in its hour, day and month.  With ``"drop"`` it counts as a null, as if the row had no value in this
        column.  The choice is part of the guarantee, so a ledger can be used with only one of the two.
    zone : str, default "UTC"
        A zone of the tz database, such as ``"Europe/Berlin"``: hours, days and all other parts, periods and constants
        are in its local time.  A value with a distance from UTC, or of a column with a zone of its own, is the same
        instant whatever `zone` is; any other value is local time of `zone`.  A local time that occurs twice is the
        first; one that is skipped is as much later as the clock was put forward.
    offsets : sequence of (int, int), optional
        The distances of local time from UTC, each as an instant in seconds since 1970, and the seconds that local time
        is ahead from then on.  By default those of this machine's tz database between the bounds.  They are part of
        the declaration, so that a later database changes no answer; a ledger is used with one table of them.

    Raises
    ------
    SchemaError
        A bound is not a date, the bounds are reversed or equal, there is no such zone, or its clock changes more than
        1,000 times between the bounds; or another argument is invalid.

    Examples
    --------
    >>> import dpnb
    >>> dpnb.Dates("2024-01-01", "2024-12-31").last
    '2024-12-31T23:59:59.999999'
    >>> dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Berlin")
    Dates(first='2024-01-01', last='2024-12-31T23:59:59.999999', outside='clamp', zone='Europe/Berlin')
    """

    first: str
    last: str
    outside: Outside = "clamp"
    zone: str = UTC_ZONE
    offsets: Offsets = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            first: str | date,
            last: str | date,
            outside: Outside = "clamp",
            zone: str = UTC_ZONE,
            offsets: Iterable[Iterable[int]] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        refuse_zone_of_bounds(self.zone, first=self.first, last=self.last)
        first, last = (time_text(getattr(self, name), f"Dates: {name}") for name in ("first", "last"))
        if len(last) == len("1974-11-01"):
            last += END_OF_DAY if is_date_only(self.last) else MIDNIGHT
        first, last, offsets = declared_times(first, last, self.zone, self.offsets)
        outside, zone = _checked_outside(self.outside, "Dates"), sys.intern(self.zone)
        for name, value in {"first": first, "last": last, "outside": outside, "zone": zone, "offsets": offsets}.items():
            msgspec.structs.force_setattr(self, name, value)
        if not self.low < self.high:
            raise SchemaError(f"Dates: first must be before last; got first={self.first!r}, last={self.last!r}")

    def __repr__(self) -> str:
        zone = "" if self.zone == UTC_ZONE else f", zone={self.zone!r}"  # the table of its offsets may have many lines
        return f"Dates(first={self.first!r}, last={self.last!r}, outside={self.outside!r}{zone})"

    @property
    def clock(self) -> Zone | None:
        """The local time of the zone; None if it is UTC."""
        return zone_of(self.zone, self.offsets) if self.offsets else None

    @property
    def low(self) -> float:
        """The first point in time, in seconds since 1970."""
        return seconds_of(utc_text(self.first, self.clock))

    @property
    def high(self) -> float:
        """The last point in time, in seconds since 1970; rounding to a double never moves it to the next second."""
        last = utc_text(self.last, self.clock, last=True)
        second = seconds_of(last.partition(".")[0])
        return min(seconds_of(last), math.nextafter(second + 1, second))


ColumnType = Bounded | Categories | Text | Dates


Schema = dict[str, ColumnType]

Added = tuple[tuple[str, str], ...]
"""Columns that were added to the schemas of a ledger, in order: the table, empty for a single one, and the name."""


def schema_from(columns: object) -> Schema:
    """Check the curator's mapping of column names to types."""
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError(
            f"schema: must map at least one column name to {COLUMN_TYPES}; "
            f"got {type(columns).__name__}{' (empty)' if isinstance(columns, Mapping) else ''}"
        )
    for name, column in columns.items():
        if not isinstance(name, str) or not name or not encodable(name):
            raise SchemaError(f"schema: a column name must be a non-empty str; got {name!r}; rename the column")
        if not isinstance(column, ColumnType):
            raise SchemaError(f"schema[{name!r}]: must be {COLUMN_TYPES}; got {column!r}{meant_column(column)}")
    return dict(columns)


def whole_number(value: object) -> int | None:
    """A Python or numpy integer as an int; None for any other value, including bools."""
    value = plain(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def encodable(text: str) -> bool:
    """Whether a text can be encoded as UTF-8; half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_of(value: object) -> str | None:
    """A value of a text column as text: a number as its shortest decimal, so that 7 and 7.0 are equal; else None."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() else value
    return str(value) if isinstance(value, bool | int | float | str) else None


def has_allowed_magnitude(number: float) -> bool:
    """Whether a number is 0, or its absolute value is between `MIN_MAGNITUDE` and `MAX_MAGNITUDE`; false for NaN."""
    return number == 0 or MIN_MAGNITUDE <= abs(number) <= MAX_MAGNITUDE


def plain(value: Any) -> Any:
    """A numpy scalar, or an instance of a subclass of str, int or float, as a Python value; other values unchanged."""
    # A backend that compares a constant with values of rows must not call an `__eq__` that the analyst wrote.
    item = getattr(value, "item", None)
    value = item() if callable(item) and getattr(value, "shape", None) == () else value
    own: Any = str.__str__ if isinstance(value, str) else float.__float__ if isinstance(value, float) else int.__int__
    return own(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else value


def _checked_outside(outside: object, what: str) -> str:
    """One string object for each value: msgspec leaves a default out of the JSON only if it is the same object."""
    if not isinstance(outside, str) or outside not in get_args(Outside):
        raise SchemaError(f"{what}: outside must be 'clamp' or 'drop'; got {outside!r}; the default is 'clamp'")
    return sys.intern(outside)


def _finite(value: Any, name: str) -> float:
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if has_allowed_magnitude(number):
            return number
    raise SchemaError(
        f"Bounded: {name} must be a finite number, {ALLOWED_MAGNITUDES}; got {value!r}; give the column's public limit"
    )


def _categories(values: object) -> tuple[Key, ...]:
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        raise SchemaError(f"Categories: must be a list of values in a fixed order; got {values!r}")
    keys = tuple(plain(value) for value in values)
    if not keys:
        raise SchemaError("Categories: must contain at least one value; got an empty list")
    for key in keys:
        invalid = (isinstance(key, float) and not math.isfinite(key)) or (isinstance(key, str) and not encodable(key))
        if invalid or not isinstance(key, bool | int | float | str):
            raise SchemaError(
                f"Categories: each value must be a str, a bool or a finite number; got {key!r}; "
                "rows with a null in the column do not count and need no category"
            )
        if isinstance(key, int) and abs(key) >= 2**63:
            raise SchemaError(f"Categories: an int must fit 64 bits; got {key!r}; use text for longer codes")
        if isinstance(key, float) and not has_allowed_magnitude(key):
            raise SchemaError(
                f"Categories: a number must be {ALLOWED_MAGNITUDES}; got {key!r}; use text for other codes"
            )
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            raise SchemaError(
                f"Categories: values must differ; got {key!r} twice; remove one (1, 1.0 and True are one)"
            )
        seen.add(key)
    return keys
