"""The values that a drafted declaration leaves open, until the curator has filled them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpnb.session.toml_lines import KeyPath

PLACEHOLDER = "FILL IN"
"""What ``python -m dpnb draft`` writes in place of a value that must come from knowledge outside the table."""

REMEDIES = {
    "low": "the smallest value that the column can have",
    "high": "the largest value that the column can have",
    "first": "the earliest date that the column can have, such as 2024-01-01",
    "last": "the latest date that the column can have, such as 2024-12-31",
    "values": 'the list of its categories, such as ["north", "south"], or type = "text" without this line',
    "type": '"bounded", "categories", "dates" or "text", with the other keys of that type',
    "privacy_unit": "the column that identifies the privacy unit, or delete the line if every row is a unit",
    "max_rows_per_unit": "how many rows of a unit count, or delete the line if every row is a unit",
    "epsilon": "the total privacy budget, such as 1.0",
    "delta": "a number much less than 1 / the number of units, such as 1e-6",
}
"""What to write instead, by the key."""


def placeholders(content: Mapping[str, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    """The keys whose values are still placeholders, in the order of the file."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from placeholders(value, (*above, key))
        elif value == PLACEHOLDER or (isinstance(value, list) and PLACEHOLDER in value):
            yield (*above, key)


def remedy(keys: KeyPath) -> str:
    """What to write instead of one placeholder."""
    at = next((key for key in (keys[-1], keys[0]) if key in REMEDIES), None)
    what = "the value" if at is None else REMEDIES[at]
    source = " (from public knowledge such as a codebook, not from the table)" if keys[0] == "schema" else ""
    return f"write {what}{source}"
