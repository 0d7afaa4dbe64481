"""Values that are missing beside nulls, as the declaration lists them: the same in every format.  Reads rows.

A text is missing if it is in the list.  A number is missing if some text of the list writes it, and a date or a time
likewise in ISO 8601; a truth value never is.  Each value is compared alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from dpnb._plan.constants import DECIMAL, MAX_DIGITS


class MissingValues:
    """The values that a list of texts declares as missing."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = frozenset(texts)
        self._numbers = [text for text in texts if DECIMAL.fullmatch(text) and len(text) <= MAX_DIGITS]
        self._times: list[datetime] = []
        for text in texts:
            with suppress(ValueError):
                self._times.append(datetime.fromisoformat(text))
        numbers = {number for text in self._numbers for number in (Decimal(text), float(text))}
        days = {moment.date() for moment in self._times if moment.time() == time() and moment.tzinfo is None}
        self._values = frozenset[object]({*numbers, *days, *self._times})

    def __bool__(self) -> bool:
        return bool(self._texts)

    def has(self, value: Any) -> bool:
        """Whether a single value is missing; it is a text, a number, a date or any object."""
        if isinstance(value, str):
            return value in self._texts
        return isinstance(value, int | float | Decimal | date) and not isinstance(value, bool) and value in self._values

    def nulls_of(self, column: Any) -> Any:
        """A column of Arrow with nulls for the values that are missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = column.type
        encoded = pa.types.is_dictionary(kind)
        values = self._of(kind.value_type if encoded else kind)
        if not len(values):
            return column

        def without(chunk: Any) -> Any:
            if encoded:
                of_codes = pc.is_in(chunk.dictionary, values)
                codes = pc.if_else(of_codes.take(chunk.indices), pa.scalar(None, chunk.indices.type), chunk.indices)
                return pa.DictionaryArray.from_arrays(codes, chunk.dictionary)
            return pc.if_else(pc.is_in(chunk, values), pa.scalar(None, kind), chunk)

        return pa.chunked_array([without(chunk) for chunk in column.chunks], kind)

    def _of(self, kind: Any) -> Any:
        """The missing values of an Arrow type, as an array of it."""
        import pyarrow as pa

        candidates: Sequence[object] = ()
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            candidates = sorted(self._texts)
        elif pa.types.is_floating(kind):
            candidates = [*map(float, self._numbers)]
        elif pa.types.is_integer(kind):
            candidates = [int(number) for number in map(Decimal, self._numbers) if number == number.to_integral_value()]
        elif pa.types.is_decimal(kind):
            candidates = [*map(Decimal, self._numbers)]
        elif pa.types.is_date(kind):
            candidates = [moment.date() for moment in self._times if moment.time() == time()]
        elif pa.types.is_timestamp(kind):
            candidates = [moment for moment in self._times if (moment.tzinfo is None) == (kind.tz is None)]
        values = []
        for value in candidates:
            with suppress(pa.ArrowInvalid, OverflowError):  # beyond the type: no value is equal to it
                values.append(pa.scalar(value, kind))
        return pa.array([one.as_py() for one in values], kind)
