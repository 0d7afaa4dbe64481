"""Points in time as text, and the local time of a zone, by a table that is declared with a column of dates.

The table has the zone's distances from UTC.  `zoneinfo` is asked for them once, when a column is declared; they are
part of the declaration, and every backend computes local times by comparisons and additions of whole numbers.  So all
have the same local times, and a later version of the tz database changes no meaning.

A local time without a distance from UTC is read by one rule, for every value alone (that of `datetime`, PEP 495): one
that occurs twice, when the clock is put back, is the first; one that is skipped, when it is put forward, is as much
later as the clock was put forward.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from dpnb.errors import SchemaError

MAX_CHANGES = 1000
"""Largest number of changes of the clock between the declared dates: about 500 years."""

MAX_OFFSET = 86_400
"""Largest distance of local time from UTC, in seconds; `datetime` allows less than a day."""

MARGIN = 2 * MAX_OFFSET
"""How far a table reaches beyond the declared dates, in seconds, so that a local time just outside is read rightly."""

DAY = 86_400

STEP = 2 * DAY
"""Seconds between two questions to `zoneinfo`.  Between two changes of any zone are at least three days."""

EPOCH = datetime(1970, 1, 1)

UTC_ZONE = "UTC"
"""The zone of a column that declares none."""

MIDNIGHT, END_OF_DAY = "T00:00:00", "T23:59:59.999999"
"""The time that is added to a date without a time: the beginning or the end of the day."""

Offsets = tuple[tuple[int, int], ...]
"""An instant in seconds since 1970 and the seconds that local time is ahead of UTC from then on; ascending, at least
one.  The first also holds before its instant."""


# --- points in time as text -------------------------------------------------------------------------------------------


def time_text(value: object, what: str) -> str:
    """A date or point in time as ISO text: in UTC with a Z if it has a distance from UTC, otherwise as it is."""
    try:
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        elif hasattr(value, "floor") and hasattr(value, "to_pydatetime"):  # pandas.Timestamp, with nanoseconds
            value = value.floor("us").to_pydatetime()
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime):
            if moment.tzinfo is not None:
                return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
            return moment.date().isoformat() if moment.time() == time() else moment.isoformat()
        if isinstance(moment, date):
            return moment.isoformat()
    except (ValueError, OverflowError):
        pass
    raise SchemaError(f"{what}: must be a date such as '1974-11-01', or a point in time; got {value!r}")


def iso_time(value: object, what: str) -> str:
    """A date or point in time as ISO text in UTC, without a time zone; one without a zone is in UTC."""
    return without_midnight(time_text(value, what).removesuffix("Z"))


def without_midnight(text: str) -> str:
    """An ISO text without the time of a midnight."""
    return text.removesuffix(MIDNIGHT)


def is_date_only(value: object) -> bool:
    """Whether a value that :func:`time_text` accepts is a date without a time."""
    if isinstance(value, str):
        try:
            date.fromisoformat(value)
        except ValueError:
            return False
        return True
    if isinstance(value, np.datetime64):
        return np.datetime_data(value.dtype)[0] == "D"
    return isinstance(value, date) and not isinstance(value, datetime)


def seconds_of(iso: str) -> float:
    """Seconds from the beginning of 1970 to a time, given as a text that :func:`iso_time` returned."""
    return (datetime.fromisoformat(iso) - EPOCH).total_seconds()


# --- the local time of a zone -----------------------------------------------------------------------------------------


class Zone(msgspec.Struct, frozen=True, dict=True):
    """The local time of a zone between the dates of its table."""

    name: str
    offsets: Offsets

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The instants from which the second and further distances hold."""
        return tuple(start for start, _ in self.offsets[1:])

    @cached_property
    def seconds(self) -> tuple[int, ...]:
        """The distance from UTC before the first of `starts`, and from each of them on."""
        return tuple(seconds for _, seconds in self.offsets)

    @cached_property
    def local_starts(self) -> tuple[int, ...]:
        """The local times from which the second and further distances hold, by the rule of the module."""
        changes = zip(self.starts, pairwise(self.seconds), strict=True)
        return tuple(accumulate((start + max(pair) for start, pair in changes), max))

    def ahead(self, instant: float) -> int:
        """The seconds that local time is ahead of UTC at an instant."""
        return self.seconds[bisect_right(self.starts, instant)]

    def instant(self, local: float) -> float:
        """The instant of a local time, by the rule of the module."""
        return local - self.seconds[bisect_right(self.local_starts, local)]

    def last_instant(self, local: float) -> float:
        """The instant of a local time; the second one if there are two."""
        instants = (local - seconds for seconds in self.seconds)
        return max((at for at in instants if at + self.ahead(at) == local), default=self.instant(local))

    def local_range(self, low: float, high: float) -> tuple[float, float]:
        """The first and the last local time between two instants; the last may be before a time that is put back."""
        inside = [start for start in self.starts if low < start <= high]
        ends = [low, high, *inside, *(start - 1 for start in inside)]
        local = [at + self.ahead(at) for at in ends]
        return min(local), max(local)

    def not_before(self, local: int) -> list[tuple[int | None, int | None]]:
        """The intervals of instants, each without its end, whose local times are at least a whole second.

        None for no start or no end: there is one interval, unless the clock is put back past that second.
        """
        found: list[tuple[int | None, int | None]] = []
        starts = [None, *self.starts]
        for start, end, seconds in zip(starts, [*self.starts, None], self.seconds, strict=True):
            first = max(local - seconds, local - seconds if start is None else start)
            if end is not None and first >= end:
                continue
            if found and found[-1][1] == first:
                found[-1] = found[-1][0], end
            else:
                found.append((first, end))
        return found

    def joined(self, other: Zone) -> Zone | None:
        """The zone with the tables of both, for values between the dates of either; None if they are of two zones."""
        distances = dict(self.offsets)
        agree = all(distances.setdefault(start, seconds) == seconds for start, seconds in other.offsets)
        return Zone(self.name, tuple(sorted(distances.items()))) if agree and self.name == other.name else None


UTC_TIME = Zone(UTC_ZONE, ((0, 0),))
"""The local time of a column that declares no zone."""


def zone_of(name: str, offsets: Offsets) -> Zone:
    """A zone by its table; the same value for equal arguments, so that what is computed from the table is kept."""
    return _zone_of(name, tuple(offsets))


@lru_cache(maxsize=256)
def _zone_of(name: str, offsets: Offsets) -> Zone:
    return Zone(name, offsets)


def is_utc(zone: str) -> bool:
    """Whether a zone that a table states is UTC, under one of its names."""
    return zone in ("UTC", "Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "GMT", "Etc/GMT", "+00:00", "Z")


def distance_text(ahead: int) -> str:
    """A distance from UTC as ISO text, such as ``+02:00``; with seconds where local time was not in whole minutes."""
    hours, rest = divmod(abs(ahead), 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{'-' if ahead < 0 else '+'}{hours:02d}:{minutes:02d}{f':{seconds:02d}' if seconds else ''}"


@lru_cache(maxsize=256)
def zone_info(name: str, what: str) -> ZoneInfo:
    """A zone of the tz database; raises `SchemaError` if there is none of this name."""
    try:
        return ZoneInfo(name)
    except Exception:  # noqa: BLE001  (no such file, a folder, a name outside the database: each is another type)
        raise SchemaError(
            f"{what}: must be a zone of the tz database, such as 'Europe/Berlin' or 'UTC'; got {name!r}"
        ) from None


def named_zone(zone: object) -> str | None:
    """The name of a zone of the tz database other than UTC, of a time or of a type; None for any other."""
    name = str(zone)
    if zone is None or is_utc(name):
        return None
    try:
        return zone_info(name, "zone").key
    except SchemaError:  # a distance from UTC
        return None


def refuse_zone_of_bounds(zone: str, **bounds: object) -> None:
    """Refuse bounds of a column in UTC that are times of another zone: its days would begin at another hour."""
    for name, bound in bounds.items():
        own = named_zone(getattr(bound, "tzinfo", None))
        if own is not None and zone == UTC_ZONE:
            raise SchemaError(
                f"Dates: {name} is a time of {own}, and without zone= the column has UTC, so the days would begin at "
                f"another hour; write zone={own!r}, or convert {name} to UTC"
            )


class DatesType(msgspec.StructMeta):
    """The type of a declaration with a zone, which answers an argument under the name that pandas has for it."""

    def __call__(self, *values: Any, **options: Any) -> Any:
        """Make a declaration."""
        if "tz" in options:
            raise SchemaError(f"Dates: has no tz=; write zone={options['tz']!r}, a zone of the tz database")
        return super().__call__(*values, **options)


@lru_cache(maxsize=256)
def zone_between(name: str, low: int, high: int, what: str) -> Zone:
    """The local time of a zone between two instants in seconds since 1970, and a margin on both sides.

    Raises `SchemaError` if there is no such zone, or the clock changes too often in between.
    """
    info = zone_info(name, what)

    def ahead(instant: int) -> int:
        try:
            local = info.fromutc((EPOCH + timedelta(seconds=instant)).replace(tzinfo=info))
        except OverflowError:  # in the first or the last days that `datetime` knows
            return offsets[-1][1] if offsets else 0
        offset = local.utcoffset()
        return 0 if offset is None else offset // timedelta(seconds=1)

    offsets: list[tuple[int, int]] = []
    first = low - MARGIN
    offsets.append((first, ahead(first)))
    for at in range(first + STEP, high + MARGIN + STEP, STEP):
        seconds = ahead(at)
        if seconds == offsets[-1][1]:
            continue
        before, after = at - STEP, at
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if ahead(middle) == offsets[-1][1] else (before, middle)
        offsets.append((after, seconds))
        if len(offsets) > MAX_CHANGES:
            raise SchemaError(
                f"{what}: the clock of {name!r} changes more than {MAX_CHANGES:,} times between the declared dates; "
                "declare fewer years, and times outside them count as the nearer bound, or with outside='drop' as null"
            )
    return Zone(name, tuple(offsets))


# --- texts of a zone --------------------------------------------------------------------------------------------------


def utc_text(text: str, zone: Zone | None, *, last: bool = False) -> str:
    """A text of `time_text` as ISO text in UTC; one without a distance from UTC is local time of the zone.

    With `last` it is the second of two instants.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    elif zone is not None:
        local = _whole_seconds(moment)
        moment += timedelta(seconds=(zone.last_instant if last else zone.instant)(local) - local)
    return moment.isoformat()


def local_text(iso: str, zone: Zone, *, last: bool = False) -> str:
    """A time in UTC as local time, with its distance from UTC if `utc_text` would read another instant without it."""
    moment = datetime.fromisoformat(iso)
    ahead = zone.ahead(_whole_seconds(moment))
    local = (moment + timedelta(seconds=ahead)).isoformat()
    same = utc_text(local, zone, last=last) == moment.isoformat()
    return local if same else local + distance_text(ahead)


def constant_text(text: str, zone: Zone | None, between: tuple[float, float], what: str) -> str:
    """A text of `time_text`, a constant beside values of a column, with its distance from UTC; a Z if the zone is UTC.

    `between` are the bounds of the column, as far as its table reaches; beyond them the tz database is asked.
    """
    if zone is None or text.endswith("Z"):
        utc = datetime.fromisoformat(text).replace(tzinfo=None).isoformat()
        if zone is None:
            return f"{utc}Z"
    try:
        local = _whole_seconds(datetime.fromisoformat(text).replace(tzinfo=None))
        if not between[0] - MAX_OFFSET <= local <= between[1] + MAX_OFFSET:
            zone = zone_between(zone.name, local - local % DAY, local - local % DAY + DAY, what)
        moment = datetime.fromisoformat(utc_text(text, zone))
        ahead = zone.ahead(_whole_seconds(moment))
        return (moment + timedelta(seconds=ahead)).isoformat() + distance_text(ahead)
    except OverflowError:
        raise SchemaError(f"{what}: must be in the years 2 to 9998; got {text!r}") from None


NO_TABLE: tuple[object, ...] = ((), [])
"""A table that is left out, in Python and in a declaration."""


def declared_times(first: str, last: str, name: object, offsets: object) -> tuple[str, str, Offsets]:
    """The bounds of a column of dates as they are stored, and the table of its zone.

    `first` and `last` are texts of `time_text`; without a table that of the tz database is taken.
    """
    if name == UTC_ZONE:
        if offsets not in NO_TABLE:
            raise SchemaError(f"Dates: offsets must be left out where the zone is UTC; got {offsets!r}")
        return without_midnight(utc_text(first, None)), utc_text(last, None), ()
    if not isinstance(name, str):
        raise SchemaError(f"Dates: zone must be a text such as 'Europe/Berlin'; got {name!r}")
    try:
        table = () if offsets in NO_TABLE else _checked(offsets)
        zone = zone_of(name, table or _table(name, first, last))
        first, last = (
            local_text(utc_text(text, zone, last=end), zone, last=end) for text, end in ((first, False), (last, True))
        )
        # By the days of the local bounds, however they were written, so that equal declarations have one table.
        return without_midnight(first), last, table or _table(name, first[:19], last[:19])
    except OverflowError:
        raise SchemaError(
            f"Dates: first and last must be in the years 2 to 9998 in a zone other than UTC; got {first!r} and {last!r}"
        ) from None


def _table(name: str, first: str, last: str) -> Offsets:
    low, high = (_whole_seconds(datetime.fromisoformat(text).replace(tzinfo=None)) for text in (first, last))
    return zone_between(name, low - low % DAY, high - high % DAY + DAY, "Dates: zone").offsets


def _checked(offsets: object) -> Offsets:
    """A table that was declared or stored."""
    try:
        table = msgspec.convert(offsets, Offsets)
    except msgspec.ValidationError:
        table = ()
    starts = [start for start, _ in table]
    ascending = starts == sorted(set(starts)) and len(starts) <= MAX_CHANGES + 1
    if not table or not ascending or any(abs(ahead) > MAX_OFFSET for _, ahead in table):
        raise SchemaError(
            "Dates: offsets must be ascending pairs of whole numbers, an instant in seconds since 1970 and the seconds "
            f"that local time is ahead of UTC from then on; got {len(table):,} such pairs; leave it out to take those "
            "of the tz database"
        )
    return table


def _whole_seconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(seconds=1)
