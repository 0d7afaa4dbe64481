"""What the curator states about a table in its disclosure statement: who is responsible, why, and on which basis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from dpnb.errors import InvalidValueError

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


def _about(text: str) -> Meta:
    return Meta(description=text)


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
