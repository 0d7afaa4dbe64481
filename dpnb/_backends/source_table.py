"""Data frames that dpnb read from a source, such as a file, and how.  Reads no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from dpnb._backends.reading import Reading


class SourceTable(pd.DataFrame):
    """The declared columns of a table that dpnb read, in which missing values are nulls."""

    # How pandas knows that these are no columns.
    _metadata: ClassVar[tuple[str, ...]] = ("reading", "header", "names_units_by_texts")
    reading: Reading
    header: list[str]  # the names of all columns of the source
    names_units_by_texts: bool = False  # whether what identifies a unit is text because it was read so


@dataclass
class Unreadable:
    """How many lines a file has, and how many could not be read.  For the curator alone, like all figures from rows."""

    lines: int = 0  # all lines with fields
    fields: int = 0  # lines with fewer or more fields than the first, which are dropped
    quotes: int = 0  # lines with an open or misplaced quotation mark, which are dropped
    values: int = 0  # lines with values that are not in the file's encoding, which are missing


class TextTable(SourceTable):
    """A data frame of texts and None, of a text file."""

    _metadata = (*SourceTable._metadata, "unreadable")
    unreadable: Unreadable
