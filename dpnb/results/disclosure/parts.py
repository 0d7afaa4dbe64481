"""The parts of a disclosure statement, and what the curator states: frozen values of JSON.

Numbers of losses and guarantees are rounded up.  A number that is null does not exist, or no number bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dpnb.errors import InvalidValueError
from dpnb.schema import ColumnType, Key

KIND = "dpnb disclosure statement"
FORMAT = 2
"""Number of the JSON format; it rises with any change of what the schema accepts."""

TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
VERSION = r"^[0-9][0-9A-Za-z.+-]{0,39}$"
"""What does not follow from the ledger has a narrow form, so that no other text can be put into a statement."""

DivisionMode = Literal["not divided", "pooled", "reserved"]
ReleaseStatus = Literal["released", "reserved", "failed"]


def _about(text: str) -> Meta:
    return Meta(description=text)


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the statement was written, and by which program.  This is all that does not follow from the ledger."""

    time: Annotated[str, Meta(pattern=TIME, description="UTC, ISO 8601.")]
    program: Annotated[Literal["dpnb"], _about("Name of the program.")]
    version: Annotated[
        str,
        Meta(
            pattern=VERSION, description="Version of the program that wrote the statement, not of those that charged."
        ),
    ]


class Subject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the statement is about."""

    session: Annotated[str, _about("Name of the session, as the curator declared it.")]
    analyst: Annotated[str | None, _about("The analyst whose reserved part it is about; null for the whole ledger.")]
    answers: Annotated[bool, _about("Whether the released answers are included.")]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sentences of the statement, below one heading."""

    title: Annotated[str, _about("The heading.")]
    paragraphs: Annotated[tuple[str, ...], _about("Plain text.")]


class Implied(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A guarantee in (epsilon, delta) that another guarantee implies, to compare it with others."""

    epsilon: Annotated[float, _about("In nats, rounded up.")]
    delta: Annotated[float, _about("The delta for which epsilon was computed, rounded up.")]


class Guarantee(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The guarantee that the ledger was created for."""

    words: Annotated[str, _about("The guarantee in a sentence, with a factor that bounds each probability.")]
    short: Annotated[str, _about("The guarantee in a few words.")]
    fixed_beforehand: Annotated[bool, _about("Whether it was fixed before the first answer; false without a budget.")]
    epsilon: Annotated[float | None, _about("Epsilon of the budget, in nats.")]
    delta: Annotated[float | None, _about("Delta of the budget.")]
    mu: Annotated[float | None, _about("Mu of the Gaussian part that the filter enforces; null for other filters.")]
    pure_epsilon: Annotated[float, _about("The reserve for mechanisms in pure differential privacy; 0 for none.")]
    discovery_delta: Annotated[float, _about("The part of delta that is set aside to discover groups; 0 for none.")]
    factor: Annotated[float | None, _about("e to the epsilon; null without an epsilon, or above 1e12.")]
    implied: Annotated[Implied | None, _about("If the budget is in Gaussian differential privacy, what that implies.")]
    accounting: Annotated[
        Literal["worst-case", "individual"],
        _about("Whether every unit is charged the same, or each only for the queries that use its data."),
    ]
    on_exhausted: Annotated[str | None, _about("Under individual accounting, what happens to a unit that cannot pay.")]


class ReportedFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule that refuses a request which would exceed the budget."""

    name: Annotated[str, _about("Name of the filter, as in Session(filter=...); none without a budget.")]
    label: Annotated[str, _about("Its name in words.")]
    enforces: Annotated[str, _about("What the filter enforces, in its own measure.")]
    theorem: Annotated[str, _about("The theorem, with its source.")]
    spent: Annotated[str, _about("What was charged and the budget, in the filter's measure.")]
    spent_share: Annotated[str | None, _about("The share of the budget that was charged, rounded up.")]
    left_share: Annotated[str | None, _about("The share that is left, rounded down.")]


class CitedCategories(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="cited categories"
):
    """A long list of declared categories, which is not repeated: everybody who has the list can check its digest."""

    count: Annotated[int, _about("The number of categories.")]
    first: Annotated[tuple[Key, ...], _about("The first of them.")]
    digest: Annotated[
        str,
        _about(
            "SHA-256 of the list in the declared order as JSON in UTF-8, without blanks between its elements and with "
            "characters beyond ASCII as they are; in hexadecimal."
        ),
    ]


class ReportedColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column that queries may use, as the curator declared it."""

    name: Annotated[str, _about("Name of the column.")]
    kind: Annotated[str, _about("Its type in words.")]
    values: Annotated[str, _about("Its bounds or categories in words; long lists are cited.")]
    outside: Annotated[str, _about("What happens to values outside the bounds.")]
    missing: Annotated[str, _about("What counts as missing.")]
    declared: Annotated[ColumnType | CitedCategories, _about("The declaration; a long list of categories is cited.")]


class ReportedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A private table: its privacy unit, the limits of one unit's contribution, and its columns."""

    name: Annotated[str, _about("Name of the table; empty for a single one.")]
    unit: Annotated[str, _about("The privacy unit and its limits, in words.")]
    unit_column: Annotated[str | None, _about("The column that names the unit of a row; null if each row is a unit.")]
    max_rows: Annotated[int | None, _about("At most this many rows of a unit count.")]
    max_groups: Annotated[int | None, _about("At most this many groups of a unit count.")]
    max_rows_per_group: Annotated[int | None, _about("At most this many rows of a unit count in one group.")]
    max_norm: Annotated[float | None, _about("Norm of a unit's contribution, in multiples of the longest row.")]
    columns: Annotated[tuple[ReportedColumn, ...], _about("The declared columns, by name.")]


class Unit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is protected."""

    words: Annotated[str, _about("The privacy unit in words.")]
    neighbours: Annotated[str, _about("When two tables are neighbours.")]
    relation: Annotated[Literal["add or remove one unit"], _about("The relation of neighbouring tables: unbounded.")]
    public_units: Annotated[int | None, _about("The number of units, if the curator declared it to be public.")]
    sampled: Annotated[str, _about("What the units are: a sample of a large population, a census, or a fraction.")]


class ReportedPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the budget for a project or an analyst."""

    row: Annotated[int, _about("Row of the ledger that made it.")]
    level: Annotated[Literal["project", "analyst"], _about("Whose part it is.")]
    name: Annotated[str, _about("Name of the project or analyst.")]
    project: Annotated[str | None, _about("The project that it is taken from.")]
    ceiling: Annotated[str | None, _about("In reserved mode its budget, which is fixed.")]
    cap: Annotated[str | None, _about("The limit of its charges now, which the curator may move.")]
    spent: Annotated[str, _about("What was charged to it.")]
    revoked: Annotated[bool, _about("Whether the curator has revoked it: nothing more can be charged to it.")]


class Division(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the budget is divided among analysts, and what that assumes."""

    mode: Annotated[DivisionMode, _about("Whether each analyst has a guarantee (reserved), or all share one (pooled).")]
    assumptions: Annotated[tuple[str, ...], _about("What follows from that, and what it assumes.")]
    parts: Annotated[tuple[ReportedPart, ...], _about("The parts of projects and analysts.")]


class ReportedRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request that was charged.  A request whose answer was computed from recorded answers has no row."""

    row: Annotated[int, _about("Row of the ledger.")]
    time: Annotated[str, _about("When it was charged; UTC, ISO 8601.")]
    kind: Annotated[str, _about("release, comparison, selection or launch.")]
    query: Annotated[str, _about("What was requested, in words.")]
    analyst: Annotated[str | None, _about("Who requested it at a service; null in a notebook with the table.")]
    inside: Annotated[str | None, _about("The mechanism inside which it was requested.")]
    paid_by: Annotated[int | None, _about("The launch that paid for it; null if it was charged to the budget.")]
    loss: Annotated[str, _about("Its loss in words, rounded up.")]
    mu: Annotated[
        float | None, _about("What was charged, as the mu of Gaussian noise; null if the loss implies no mu.")
    ]
    delta: Annotated[float, _about("The delta of the loss.")]
    charged: Annotated[str | None, _about("What the filter was charged, if that is not the loss.")]
    share: Annotated[str | None, _about("Its share of the budget, rounded up.")]
    table_version: Annotated[str, _about("Version of the table, as the curator declared it.")]
    status: Annotated[
        ReleaseStatus, _about("reserved: charged without an answer yet; failed: charged without an answer.")
    ]
    error: Annotated[str | None, _about("Half-width of its intervals, if answers are included: it may depend on them.")]
    answer: Annotated[str | None, _about("The released answer in words, if answers are included.")]


class ReportedMechanism(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An interactive mechanism: several answers for a loss that was charged at its launch, or as they are given."""

    row: Annotated[int, _about("Row of the ledger that launched it.")]
    kind: Annotated[str, _about("Its kind, such as sub-session or above-threshold.")]
    name: Annotated[str, _about("Its name, which the analyst chose.")]
    analyst: Annotated[str | None, _about("Who launched it at a service.")]
    inside: Annotated[str | None, _about("The mechanism inside which it was launched.")]
    closed_by: Annotated[int | None, _about("Row that closed it; null while it is open.")]


class ReportedAct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision of the curator's about the budget, or an analyst's request for one, which is a row of the ledger."""

    row: Annotated[int, _about("Row of the ledger.")]
    time: Annotated[str, _about("When; UTC, ISO 8601.")]
    actor: Annotated[str | None, _about("Who decided or requested it.")]
    words: Annotated[str, _about("The decision or the request in words.")]


class ReportedVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version of the table that was queried."""

    version: Annotated[str, _about("Its name, as the curator declared it.")]
    requests: Annotated[int, _about("Number of charged requests about it.")]
    first: Annotated[str, _about("Time of the first of them.")]
    last: Annotated[str, _about("Time of the last of them.")]
    tables: Annotated[
        tuple[ReportedTable, ...] | None,
        _about("Its columns and limits, by table; null if they are among those that are declared now."),
    ]


class Readings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What has been lost so far.  The two kinds of readings are different statements and cannot be combined."""

    time_uniform: Annotated[
        str | None, _about("The odometer that was chosen when the ledger was created; null once it has stopped.")
    ]
    paused: Annotated[str | None, _about("Why it has stopped.")]
    accumulator: Annotated[str, _about("What was charged, against budgets that were fixed in advance.")]
    participation: Annotated[str | None, _about("Under individual accounting, which units certainly took part.")]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows from which the statement was computed."""

    rows_of: Annotated[
        Literal["ledger", "redacted", "copy"],
        _about(
            "ledger: all rows of the file. redacted: the same without answers and names. copy: those that one analyst "
            "may see, numbered among themselves."
        ),
    ]
    rows: Annotated[int, _about("Number of rows.")]
    head: Annotated[str, _about("Hash of the last row, which depends on all of them and on the declaration.")]
    first: Annotated[str | None, _about("Time of the first row.")]
    last: Annotated[str | None, _about("Time of the last row.")]


MAX_CHARACTERS = 2_000
"""Characters of one text."""

MAX_LABEL = 60
"""Characters of a label of the unit."""

STATED = {
    "title": "Title",
    "controller": "Controller",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "data": "Data",
    "analysts": "Analysts",
    "publication": "Publication of answers",
    "assessment": "Assessment",
    "contact": "Contact",
}
"""The keys, in the order in which they are shown, and their names in words."""


class StatementText(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a curator states in the disclosure statement of a table; everyone who gets the statement reads it.

    Nothing is computed from it.  White space in a text is written as single blanks.

    Parameters
    ----------
    title : str, optional
        Title of the study or of the data.
    controller : str, optional
        Who is responsible for the data: the controller of the GDPR.
    purpose : str, optional
        What the answers are for.
    legal_basis : str, optional
        What allows the processing, such as an article of a law.
    data : str, optional
        What the table has, and where it comes from.
    analysts : str, optional
        Who may ask: roles or institutions.
    publication : str, optional
        Whether answers may be published, and on which conditions.
    assessment : str, optional
        The reference of a data protection impact assessment, or of the vote of an ethics board.
    contact : str, optional
        Who answers questions about the statement.

    Raises
    ------
    InvalidValueError
        If a text is empty, longer than 2,000 characters, or not printable.

    Examples
    --------
    >>> import dpnb
    >>> dpnb.StatementText(title="Stays in hospitals", controller="Statistics office").title
    'Stays in hospitals'
    """

    title: Annotated[str | None, _about("Title of the study or of the data.")] = None
    controller: Annotated[str | None, _about("Who is responsible for the data.")] = None
    purpose: Annotated[str | None, _about("What the answers are for.")] = None
    legal_basis: Annotated[str | None, _about("What allows the processing.")] = None
    data: Annotated[str | None, _about("What the table has, and where it comes from.")] = None
    analysts: Annotated[str | None, _about("Who may ask.")] = None
    publication: Annotated[str | None, _about("Whether answers may be published, and on which conditions.")] = None
    assessment: Annotated[str | None, _about("The reference of an assessment or of a vote.")] = None
    contact: Annotated[str | None, _about("Who answers questions.")] = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: object = getattr(self, name)  # the annotation is not trusted
            if value is None:
                continue
            text = " ".join(value.split()) if isinstance(value, str) else ""
            if not text or len(text) > MAX_CHARACTERS or not text.isprintable():
                raise InvalidValueError(
                    f"{name}: must be 1 to {MAX_CHARACTERS:,} printable characters; got {_shown(value)}; leave the "
                    "key out to state nothing"
                )
            msgspec.structs.force_setattr(self, name, text)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The names and the texts, in the order in which they are shown."""
        return [(words, text) for name, words in STATED.items() if (text := getattr(self, name)) is not None]


class Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The curator's own words about a table, as the ledger has them."""

    text: Annotated[StatementText, _about("The texts of the section [statement] of the declaration.")]
    unit_label: Annotated[str | None, _about("A word for one privacy unit; null for the name of its column.")]
    times: Annotated[
        tuple[str, ...],
        _about("When these words and all earlier ones were declared, the first one first; UTC, ISO 8601."),
    ]


def checked_text(value: object) -> StatementText | None:
    """The argument `statement` of a session."""
    if value is None or isinstance(value, StatementText):
        return value
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidValueError(
            "statement: must be a dpnb.StatementText, or a dict with its keys; got "
            f"{_shown(value)}; for example {{'title': 'Stays in hospitals'}}"
        )
    unknown = [name for name in value if name not in STATED]
    if unknown:
        raise InvalidValueError(
            f"statement: {unknown[0]!r} is not a key; the keys are {', '.join(STATED)}; correct it or remove it"
        )
    try:
        return StatementText(**value)
    except InvalidValueError as error:
        message = str(error)
    raise InvalidValueError(f"statement: {message}")


def checked_label(value: object) -> str | None:
    """The argument `unit_label` of a session: one or a few words in the singular."""
    if value is None:
        return None
    if isinstance(value, str) and 0 < len(value) <= MAX_LABEL and value.isprintable() and value == value.strip():
        return value
    raise InvalidValueError(
        f"unit_label: must be a word for one privacy unit in the singular, of at most {MAX_LABEL} printable "
        f"characters; got {_shown(value)}; for example 'patient'"
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 3]}..."
