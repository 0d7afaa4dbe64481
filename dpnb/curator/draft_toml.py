"""The declaration that a curator completes, as TOML: a function of column names and storage types alone.

Analysts may open the file, and nothing in it is charged to a budget.  So :func:`draft_toml` sees names and storage
types only, and a value that the curator must supply has a placeholder.  Whole numbers and fractions get the same lines,
since pandas stores whole numbers with a null as fractions.

Parquet and Arrow files state the type of each column.  A text file states none: a reader infers it from the rows, so
that one value could decide it.  pandas does the same where it reads integers with a null as doubles.  So the types here
come from the file's own schema, and are unknown where it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpnb._backends.column_types import NUMBERS, StorageType
from dpnb.errors import printable
from dpnb.schema import encodable
from dpnb.session.declaration import PLACEHOLDER

StorageTypes = Mapping[str, StorageType | None]
"""The storage types that a source states, by column; None for one of which it states none."""

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
#     session = dpnb.Session.from_toml("{file}", table)
#
# opens the session in a notebook.
#
# Analysts may read this file.  It was drafted from the column names and storage types alone, without the values in the
# rows.  Keep it so: bounds and categories must come from knowledge outside the table (a codebook, a
# law, a questionnaire, a unit), because they are public and not charged to any budget.  To hide a column, delete its
# section: queries cannot use a column that is not declared.
#
# The guide: {guide}

name = "{name}"
version = "1"    # of the table; change it whenever the table changes

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
#     type = "categories"    one of values = [1, 2, 3] or ["north", "south"]
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
IN_ZONE = "hours, days and times without a zone are its local time"
UTC_LINE = f'# zone = "Europe/Berlin"    # if {IN_ZONE}; without it, UTC\n'
UNKNOWN = """\
type = {open}    # the file states no type: write one of those above, with its other keys; take no value from the table
"""
NOT_QUERYABLE = "# {kind}: cannot be queried; derive another column from it.\n"

BY_TYPE: dict[StorageType | None, str] = {
    **dict.fromkeys(NUMBERS, BOUNDS),
    "texts": CATEGORIES,
    "truth values": TRUTH_VALUES,
    "dates or times": DATES,
    None: UNKNOWN,
}


def draft_toml(
    name: str,
    file: str,
    tables: Mapping[str, StorageTypes],
    sources: Mapping[str, str],
    zones: Mapping[str, Zones] = MappingProxyType({}),
) -> str:
    """The declaration to complete, from the storage types of the columns, and the name of the file, of each table.

    `zones` has the zones that the file states for columns of times.
    """
    several = list(tables) != [""]
    rows = ", ".join(f"{_key(table)} = {OPEN}" for table in tables)
    text = HEAD.format(
        open=OPEN,
        file=_in_comment(file),
        tables=_in_comment(" ".join(f"{table}={source}" if table else source for table, source in sources.items())),
        guide=GUIDE,
        name=name,
        rows=f"{{ {rows} }}" if several else OPEN,
    )
    for table, columns in tables.items():
        for column, kind in columns.items():
            zone = zones.get(table, {}).get(column)
            text += _section([table, column] if several else [column], kind, zone)
    return text


def can_declare(column: object) -> bool:
    """Whether a column of this name can be declared."""
    return isinstance(column, str) and bool(column) and encodable(column)


def _section(keys: list[str], kind: StorageType | None, zone: str | None) -> str:
    head = f"[schema.{'.'.join(map(_key, keys))}]\n"
    if kind not in BY_TYPE:
        return f"\n# {head}{NOT_QUERYABLE.format(kind=kind)}"
    zone_line = UTC_LINE if zone is None else f"zone = {_quoted(zone)}    # as the file states it; {IN_ZONE}\n"
    return f"\n{head}{BY_TYPE[kind].format(open=OPEN)}{zone_line if kind == 'dates or times' else ''}"


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
