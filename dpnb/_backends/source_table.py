"""Data frames that dpnb read from a source, such as a file, and how.  Reads no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from dpnb._backends.reading import Reading


class SourceTable(pd.DataFrame):
    """A data frame that dpnb read, in which missing values are nulls."""

    _metadata: ClassVar[tuple[str, ...]] = ("reading",)  # how pandas knows that this is no column
    reading: Reading


@dataclass
class Unreadable:
    """How many lines a file has, and how many could not be read.  For the curator alone, like all figures from rows."""

    lines: int = 0  # all lines with fields
    fields: int = 0  # lines with fewer or more fields than the first, which are dropped
    quotes: int = 0  # lines with an open or misplaced quotation mark, which are dropped
    values: int = 0  # lines with values that are not in the file's encoding, which are missing


class TextTable(SourceTable):
    """A data frame of texts and None, of a text file of which the declared columns alone were read."""

    _metadata = ("reading", "header", "unreadable")
    header: list[str]  # the names of all columns of the file
    unreadable: Unreadable
