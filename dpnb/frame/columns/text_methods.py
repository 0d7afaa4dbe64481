"""The text methods of a column: what ``.str`` returns.

On declared categories every method is computed from the public list, so it is a table of the plan, and categories that
become equal are one group.  On a text column only what every engine evaluates alike is offered: whether a text starts
with, ends with or contains another one, its case, and its length if the curator declared a maximal one.

Texts to be found are literal.  pandas takes the text of ``contains`` as a regular expression by default, so a text with
a character that has a meaning there is refused unless ``regex=False``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Generic, TypeVar

from dpnb._plan.constants import flag
from dpnb._plan.expressions.choices import RELATIONS
from dpnb._plan.expressions.dtypes import Categorical, String, described
from dpnb._plan.expressions.letters import Case, changed_case
from dpnb._plan.expressions.nodes import ChangeCase, Expression, FillNull, IsIn, MatchText, Or, TextLength, TextRelation
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import operand, words
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.coerce import literal_text, position, text_argument, text_arguments
from dpnb.frame.columns.recoding import is_null, recoded
from dpnb.frame.compatibility.unsupported import UnsupportedOperations
from dpnb.schema import Key, Schema, whole_number

Slice = slice
C = TypeVar("C")
"""The column that a method returns."""


class TextMethods(UnsupportedOperations, Generic[C]):
    """The text methods of a column of categories or texts.

    Parameters
    ----------
    new : callable
        Makes a column of an expression.
    node : expression
        The categories or texts.
    schema : dict
        The columns of the table.

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"trade": dpnb.Categories(["Retail", "retail ", "Farming"]), "note": dpnb.Text(max_length=80)},
    ... )
    >>> df = session.frame
    >>> df["trade"].str.strip().str.lower().value_counts().description
    "count of rows by trade.map({'Retail': 'retail', 'retail ': 'retail', 'Farming': 'farming'})"
    >>> df[df["note"].str.contains("refund")].count().description
    "count of rows where note.str.contains('refund')"
    >>> df["note"].str.len().mean().description
    'mean of note.str.len()'
    """

    __slots__ = ("_new", "_schema", "_text")

    def __init__(self, new: Callable[[Expression], C], node: Expression, schema: Schema) -> None:
        self._new, self._text, self._schema = new, node, schema

    def _description(self) -> str:
        return f"{words(self._text)}.str"

    @property
    def _values(self) -> tuple[Key, ...] | None:
        """The declared categories; None for a text column.  Checked when a method is called, as `.dt` does."""
        kind = dtype_of(self._text, self._schema)
        if isinstance(kind, Categorical) and any(isinstance(value, str) for value in kind.values):
            return kind.values
        if isinstance(kind, String):
            return None
        raise PlanError(
            f"{self._description()}: only texts have these methods; this is {described(kind)}; .astype(str) converts "
            "categories to texts"
        )

    # --- other texts -------------------------------------------------------------------------------------------

    def lower(self) -> C:
        """In lower case; of a text column only letters below U+0590, each of which stays one letter.

        Examples
        --------
        >>> df["plan"].str.lower().unique()
        ['free', 'paid']
        """
        return self._in_case("lower", str.lower)

    def upper(self) -> C:
        """In upper case; of a text column only letters below U+0590, each of which stays one letter.

        Examples
        --------
        >>> df["plan"].str.upper().unique()
        ['FREE', 'PAID']
        """
        return self._in_case("upper", str.upper)

    def casefold(self) -> C:
        """Categories for comparison without case.

        Examples
        --------
        >>> df["plan"].str.casefold().unique()
        ['free', 'paid']
        """
        return self._category("casefold()", str.casefold)

    def title(self) -> C:
        """Categories with each word capitalised.

        Examples
        --------
        >>> df["plan"].str.title().unique()
        ['Free', 'Paid']
        """
        return self._category("title()", str.title)

    def capitalize(self) -> C:
        """Categories with the first letter capitalised.

        Examples
        --------
        >>> df["plan"].str.capitalize().unique()
        ['Free', 'Paid']
        """
        return self._category("capitalize()", str.capitalize)

    def swapcase(self) -> C:
        """Categories with lower and upper case exchanged.

        Examples
        --------
        >>> df["plan"].str.swapcase().unique()
        ['FREE', 'PAID']
        """
        return self._category("swapcase()", str.swapcase)

    def strip(self, to_strip: str | None = None) -> C:
        """Categories without white space, or without some characters, at both ends.

        Parameters
        ----------
        to_strip : str, optional
            The characters to leave out; by default white space.

        Examples
        --------
        >>> df["plan"].str.strip().unique()
        ['free', 'paid']
        """
        return self._stripped("strip", str.strip, to_strip)

    def lstrip(self, to_strip: str | None = None) -> C:
        """Categories without white space, or without some characters, at the start.

        Parameters
        ----------
        to_strip : str, optional
            The characters to leave out; by default white space.

        Examples
        --------
        >>> df["plan"].str.lstrip("f").unique()
        ['ree', 'paid']
        """
        return self._stripped("lstrip", str.lstrip, to_strip)

    def rstrip(self, to_strip: str | None = None) -> C:
        """Categories without white space, or without some characters, at the end.

        Parameters
        ----------
        to_strip : str, optional
            The characters to leave out; by default white space.

        Examples
        --------
        >>> df["plan"].str.rstrip("e").unique()
        ['fr', 'paid']
        """
        return self._stripped("rstrip", str.rstrip, to_strip)

    def slice(self, start: int | None = None, stop: int | None = None, step: int | None = None) -> C:
        """A part of each category, as ``.str[start:stop]``.

        Parameters
        ----------
        start, stop, step : int, optional
            As in ``text[start:stop:step]``.

        Examples
        --------
        >>> df["plan"].str.slice(0, 1).unique()
        ['f', 'p']
        """
        part = Slice(*(position(index) for index in (start, stop, step)))
        if part.step == 0:
            raise PlanError(f"{self._description()}: the step of a slice must not be 0")
        bounds = [("" if index is None else str(index)) for index in (part.start, part.stop, part.step)]
        return self._category(f"[{':'.join(bounds if part.step is not None else bounds[:2])}]", lambda text: text[part])

    def get(self, i: int) -> C:
        """One character of each category, as ``.str[i]``; missing where the category is shorter.

        Parameters
        ----------
        i : int
            The position, from 0; from the end if negative.

        Examples
        --------
        >>> df["plan"].str.get(0).unique()
        ['f', 'p']
        """
        at = position(i)
        if at is None:
            raise PlanError(f"{self._description()}: takes a whole number or a slice; got {i!r}")
        return self._category(f"[{at}]", lambda text: text[at] if -len(text) <= at < len(text) else None)

    def __getitem__(self, key: int | Slice) -> C:
        return self.slice(key.start, key.stop, key.step) if isinstance(key, Slice) else self.get(key)

    def replace(
        self,
        pat: str,
        repl: str | None = None,
        n: int = -1,
        case: bool | None = None,
        flags: int = 0,
        regex: bool = False,
    ) -> C:
        """Categories with each occurrence of a literal text replaced.

        Parameters
        ----------
        pat : str
            The text to be replaced.
        repl : str
            The new text; required.
        n : int, default -1
            The maximum number of replacements in each category; all if negative.
        case : None
            Must be None.
        flags : int, default 0
            Must be 0, unless `regex` is False.
        regex : bool, default False
            Must not be True if `pat` has a character that has a meaning in regular expressions.

        Examples
        --------
        >>> df["plan"].str.replace("free", "none", regex=False).unique()
        ['none', 'paid']
        """
        old, new = literal_text(pat, "replace", self._text, regex=regex, flags=flags), text_argument(repl, "replace")
        most = whole_number(n)
        if most is None or case is not None:
            raise PlanError(f"{self._description()}.replace: n must be a whole number, and case is not offered")
        return self._category(f"replace({old!r}, {new!r})", lambda text: text.replace(old, new, most))

    def len(self) -> C:
        """Number of characters; of a text column at most the ``max_length`` that the curator declared.

        Examples
        --------
        >>> df["plan"].str.len()
        <private column: plan.str.len()>
        """
        if self._values is None:
            return self._new(TextLength(self._text))
        return self._category("len()", len)

    # --- conditions --------------------------------------------------------------------------------------------

    def startswith(self, pat: str | tuple[str, ...], na: object = None) -> C:
        """Whether the text starts with another one, or with one of several; `na` as for `contains`.

        Parameters
        ----------
        pat : str or tuple of str
            The text, or several.
        na : bool, optional
            As for `contains`.

        Examples
        --------
        >>> df["plan"].str.startswith("f")
        <condition: plan.isin(['free'])>
        """
        return self._match("startswith", text_arguments(pat, "startswith"), na)

    def endswith(self, pat: str | tuple[str, ...], na: object = None) -> C:
        """Whether the text ends with another one, or with one of several; `na` as for `contains`.

        Parameters
        ----------
        pat : str or tuple of str
            The text, or several.
        na : bool, optional
            As for `contains`.

        Examples
        --------
        >>> df["plan"].str.endswith("e")
        <condition: plan.isin(['free'])>
        """
        return self._match("endswith", text_arguments(pat, "endswith"), na)

    def contains(self, pat: str, case: bool = True, flags: int = 0, na: object = None, regex: bool | None = None) -> C:
        """Whether the text contains a literal one.

        Parameters
        ----------
        pat : str
            A text without characters that have a meaning in regular expressions, unless `regex` is False.
        case : bool, default True
            Whether upper and lower case differ.
        flags : int, default 0
            Must be 0, unless `regex` is False.
        na : bool, optional
            The result for a missing text.  Without it, the result is missing too, so that its row is selected neither
            by the condition nor by its negation.
        regex : bool, optional
            Must not be True if `pat` has a character that has a meaning in regular expressions.

        Raises
        ------
        UnsupportedError
            A regular expression.

        Examples
        --------
        >>> df["note"].str.contains("flu", regex=False)
        <condition: note.str.contains('flu')>
        """
        text = literal_text(pat, "contains", self._text, regex=regex, flags=flags)
        return self._match("contains", [text], na, fold=not flag(case, "contains: case"))

    # --- construction ------------------------------------------------------------------------------------------

    def _in_case(self, case: Case, change: Callable[[str], str]) -> C:
        if self._values is None:
            return self._new(ChangeCase(case, self._text))
        return self._category(f"{case}()", change)

    def _stripped(self, name: str, strip: Callable[[str, str | None], str], to_strip: object) -> C:
        letters = None if to_strip is None else text_argument(to_strip, name)
        shown = "" if letters is None else repr(letters)
        return self._category(f"{name}({shown})", lambda text: strip(text, letters))

    def _category(self, call: str, change: Callable[[str], Key | None]) -> C:
        """The categories changed by a function of Python, which is called for the public list alone."""
        values = self._values
        if values is None:
            raise UnsupportedError(
                f"{self._description()}.{call}: is offered for declared categories, and this is a text column; it has "
                ".str.lower(), .str.upper(), .str.startswith(), .str.endswith() and .str.contains()"
            )
        at = "str" if call.startswith("[") else "str."
        name = f"{operand(self._text)}.{at}{call}"
        changed: dict[Key, Key | None] = {value: change(value) for value in values if isinstance(value, str)}
        return self._new(recoded(self._text, values, name, changed.get))

    def _match(self, relation: TextRelation, texts: list[str], na: object, *, fold: bool = False) -> C:
        condition = self._matching(relation, texts, fold)
        return self._new(condition if is_null(na) else FillNull(condition, flag(na, "na")))

    def _matching(self, relation: TextRelation, texts: list[str], fold: bool) -> Expression:
        values = self._values
        if values is None:
            inner = ChangeCase("lower", self._text) if fold else self._text
            literal = [changed_case(text, "lower") for text in texts] if fold else texts
            found: list[Expression] = [MatchText(relation, inner, text) for text in literal]
            return reduce(Or, found)
        related, change = RELATIONS[relation], str.lower if fold else str
        categories = [value for value in values if isinstance(value, str)]
        matching = [value for value in categories if any(related(change(value), change(text)) for text in texts)]
        return IsIn(self._text, tuple(matching))
