"""The declaration that a curator completes, as TOML: a function of column names and types alone.

Analysts may open the file, and nothing in it is charged to a budget.  So :func:`draft_toml` sees names and storage
types only, and a value that the curator must supply has a placeholder.  Whole numbers and fractions get the same lines,
since pandas stores whole numbers with a null as fractions.

Parquet and Arrow files state the type of each column.  pandas infers one where it reads integers with a null as
doubles, so that one value could decide it: the types here come from the file's own schema.  A text file has none.  What
`dpnb.curator.draft` proposes for it follows from a share of the values, so that one row rarely changes it, and each
line that has it says so: the curator confirms it from the documentation of the table before others see the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from types import MappingProxyType
from typing import Literal, get_args

from dpnb._backends.column_types import NUMBERS, StorageType
from dpnb._backends.reading import USUAL, Reading
from dpnb.errors import printable
from dpnb.schema import encodable
from dpnb.session.declaration import PLACEHOLDER

ProbableType = Literal["bounded", "integer", "categories", "dates", "text"]
"""What most of the values of a column without a type look like; ``"integer"`` is bounded, with whole numbers."""

ColumnKind = StorageType | ProbableType | None
"""What is known of a column: its storage type, or one that its values look like; None for nothing."""

StorageTypes = Mapping[str, ColumnKind]
"""What is known of the columns of a table, by name."""

Zones = Mapping[str, str]
"""The zones of columns of times, of those that have one other than UTC."""


OPEN = f'"{PLACEHOLDER}"'
GUIDE = "https://github.com/dpnb/dpnb/blob/main/docs/how-to/curator.md"

HEAD = """\
# The curator's declaration of a table.  Replace every {open}, then run
#
#     python -m dpnb check {file} {tables}
#
# in the curator's own terminal; check names what is still missing, and compares the declaration with the table.  Then
#
#     session = dpnb.Session.from_toml("{file}", {given})
#
# opens the session in a notebook.
#
# Analysts may read this file.  It was drafted from {types}.
# Keep it so: bounds and categories must come from knowledge outside the table (a codebook, a law, a questionnaire, a
# unit), because they are public and not charged to any budget.  To hide a column, delete its section: queries cannot
# use a column that is not declared.
#
# The guide: {guide}

name = "{name}"
version = "1"    # of the table; change it whenever the table changes
{reading}
# --- the privacy unit: whom the guarantee protects ---
# The column that identifies a person (or household, patient, firm).  Delete its section below: it cannot be queried.
# Delete the next two lines only if no person can have more than one row; each row is then a unit.
privacy_unit = {open}
max_rows_per_unit = {rows}    # how many rows of a unit count; from the design of the data, such as 12 months

# --- public numbers, used to predict errors: optional, never computed from the table ---
# public_size = 10000    # number of units
# public_rows = 10000    # number of rows
# sampled = 0.1          # the fraction of the population that was drawn at random, or "census"; else a large population

# --- what the disclosure statement says in your words: optional, and can be changed at any time ---
# unit_label = "patient"    # a word for one privacy unit, used instead of the name of its column
# [statement]
# title = "Stays in hospitals"
# controller = "..."     # who is responsible for the data; also purpose, legal_basis, data, analysts, publication,
#                        # assessment and contact; roles rather than names, since everybody may read them

# --- the budget of all releases together; see the guide for values that others have published ---
[budget]
epsilon = {open}    # for example 1.0
delta = {open}      # much less than 1 / the number of units, for example 1e-6

# --- the columns ---
# A section can also be
#     type = "bounded"       numbers between low and high; add integer = true if they are whole
#     type = "categories"    one of values = [1, 2, 3] or ["north", "south"]; a long published list may be in a file
#                            with one on each line, values_file = "codes.txt"
#     type = "dates"         dates between first = "2024-01-01" and last = "2024-12-31"; texts in ISO 8601 count too;
#                            add zone = "Europe/Berlin", for example, unless all hours and days are those of UTC
#     type = "text"          names, free text, many codes: texts that are not public; add max_length = 200, for example,
#                            if lengths may be queried (a longer text counts as 200 characters)
# A number or date outside its bounds counts as the nearer bound; with outside = "drop" it does not count.
"""

BOUNDS = """\
type = "bounded"     # or "categories", if the numbers are codes
low = {open}      # the smallest possible value, from a codebook, a law or a unit, not from the table
high = {open}     # the largest possible value, likewise; prefer narrow to wide bounds
"""
CATEGORIES = """\
type = "categories"    # or "text" (without values; with max_length if lengths may be queried), or "dates"
values = {open}     # the list of all possible values, from a codebook, not from the table
"""
TRUTH_VALUES = """\
type = "categories"
values = [false, true]
"""
DATES = """\
type = "dates"
first = {open}    # the earliest possible date, such as "2024-01-01", from the design of the data, not from the table
last = {open}     # the latest possible date, likewise
"""
IN_ZONES = ("dates or times", "dates")
IN_ZONE = "hours, days and times without a zone are its local time"
UTC_LINE = f'# zone = "Europe/Berlin"    # if {IN_ZONE}; without it, UTC\n'
PROBABLY = "read from the table: confirm from its documentation"
"""What is said of a type that was proposed from values."""

BOUNDS_OF_TEXTS = BOUNDS.replace('or "categories", if the numbers are codes', PROBABLY)
WHOLE = f"integer = true       # {PROBABLY}\n"
CATEGORIES_OF_TEXTS = f'type = "categories"    # {PROBABLY}\n' + CATEGORIES.partition("\n")[2]
DATES_OF_TEXTS = DATES.replace('type = "dates"', f'type = "dates"       # {PROBABLY}')
TEXT = f'type = "text"    # {PROBABLY}; "categories", if all values are in a public list\n'
UNKNOWN = """\
type = {open}    # no type is known: write one of those above, with its other keys; take no value from the table
"""
NOT_QUERYABLE = "# {kind}: cannot be queried; derive another column from it.\n"

BY_TYPE: dict[StorageType | ProbableType | None, str] = {
    **dict.fromkeys(NUMBERS, BOUNDS),
    "texts": CATEGORIES,
    "truth values": TRUTH_VALUES,
    "dates or times": DATES,
    "bounded": BOUNDS_OF_TEXTS,
    "integer": BOUNDS_OF_TEXTS + WHOLE,
    "categories": CATEGORIES_OF_TEXTS,
    "dates": DATES_OF_TEXTS,
    "text": TEXT,
    None: UNKNOWN,
}

STATED_TYPES = "the column names and storage types alone, without the values in the rows"
PROBABLE_TYPES = """\
the column names, the way its file is written, and types that
# most of the values look like: confirm each of these, and delete its remark.  Nothing else here is from the rows"""


def draft_toml(
    name: str,
    file: str,
    tables: Mapping[str, StorageTypes],
    sources: Mapping[str, str],
    zones: Mapping[str, Zones] = MappingProxyType({}),
    reading: Reading = USUAL,
) -> str:
    """The declaration to complete, from the storage types of the columns, and the name of the file, of each table.

    `zones` has the zones that the file states for columns of times, `reading` how CSV files are read.
    """
    several = list(tables) != [""]
    probable = any(is_probable(kind) for columns in tables.values() for kind in columns.values())
    rows = ", ".join(f"{_key(table)} = {OPEN}" for table in tables)
    text = HEAD.format(
        open=OPEN,
        file=_in_comment(file),
        tables=_in_comment(arguments_of(sources)),
        given=given_tables(sources),
        guide=GUIDE,
        name=name,
        types=PROBABLE_TYPES if probable else STATED_TYPES,
        reading=_reading(reading),
        rows=f"{{ {rows} }}" if several else OPEN,
    )
    for table, columns in tables.items():
        for column, kind in columns.items():
            zone = zones.get(table, {}).get(column)
            text += _section([table, column] if several else [column], kind, zone)
    return text


READING_WORDS = {
    "separator": "between the fields of the CSV file",
    "decimal": "the decimal mark of its numbers",
    "encoding": "of its texts",
    "date_format": "of its dates",
}


def _reading(reading: Reading) -> str:
    lines = [f"{key} = {_quoted(value)}    # {READING_WORDS[key]}" for key, value in reading.to_dict().items()]
    return "".join(f"{line}\n" for line in ["", *lines]) if lines else ""


def is_probable(kind: ColumnKind) -> bool:
    """Whether a type was proposed from values, and not stated by a file."""
    return kind in get_args(ProbableType)


def can_declare(column: object) -> bool:
    """Whether a column of this name can be declared."""
    return isinstance(column, str) and bool(column) and encodable(column)


def arguments_of(sources: Mapping[str, str]) -> str:
    """The sources of tables as arguments of a command, in a shell."""
    return " ".join(quote(f"{table}={source}" if table else source) for table, source in sources.items())


def given_tables(sources: Mapping[str, str]) -> str:
    """The sources of tables as an argument in Python."""
    given = {table: _quoted(_in_comment(source)) for table, source in sources.items()}
    return given.get("") or f"{{{', '.join(f'{_quoted(table)}: {source}' for table, source in given.items())}}}"


def _section(keys: list[str], kind: ColumnKind, zone: str | None) -> str:
    head = f"[schema.{'.'.join(map(_key, keys))}]\n"
    if kind not in BY_TYPE:
        return f"\n# {head}{NOT_QUERYABLE.format(kind=kind)}"
    zone_line = UTC_LINE if zone is None else f"zone = {_quoted(zone)}    # as the file states it; {IN_ZONE}\n"
    return f"\n{head}{BY_TYPE[kind].format(open=OPEN)}{zone_line if kind in IN_ZONES else ''}"


def _in_comment(text: str) -> str:
    """A text without characters that would end a comment, or that a file cannot hold."""
    return printable(text).encode(errors="replace").decode()


def _key(name: str) -> str:
    """A key of TOML: bare where that is allowed, otherwise in quotes."""
    bare = name and all(char.isascii() and (char.isalnum() or char in "_-") for char in name)
    return name if bare else _quoted(name)


def _quoted(text: str) -> str:
    escaped = (f"\\u{ord(char):04X}" if char in '"\\' or ord(char) < 32 or ord(char) == 127 else char for char in text)
    return f'"{"".join(escaped)}"'
