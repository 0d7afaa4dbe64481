"""A frame on display: its columns with their declared types, and a line to try; never a row."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb.errors import printable
from dpnb.frame.compatibility.examples import examples, type_words
from dpnb.frame.view import TableView
from dpnb.render.page import FAINT, box_html, title_html
from dpnb.render.tables import table_html, table_text

MAX_COLUMNS = 60

HEAD = ("column", "type")
DISPLAYED = "rows are never shown, columns are declared"


class OverviewOnDisplay:
    """Base class of a frame, which is displayed as its columns."""

    __slots__ = ()

    if TYPE_CHECKING:  # of the frame
        _view: TableView

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self))

    def __str__(self) -> str:
        rows = [tuple(map(printable, row)) for row in (HEAD, *_types(self._view))]
        table = table_text(rows, left=range(2), indent="  ")
        return "\n".join([f"{self!r}; {DISPLAYED}", *table, f"  {printable(_line(self._view))}"])

    def _repr_html_(self) -> str:
        rows = [tuple(map(escape, row)) for row in _types(self._view)]
        line = f'<div style="{FAINT}">{escape(_line(self._view))}</div>'
        return box_html(None, title_html(self._title(), DISPLAYED), table_html(HEAD, rows, left=2), line)

    def _title(self) -> str:
        where = self._view.where
        return "private table" if where is None else f"private table where {words(where)}"


def _types(view: TableView) -> list[tuple[str, str]]:
    columns = list(view.columns.items())
    types = [(name, type_words(dtype_of(node, view.schema))) for name, node in columns[:MAX_COLUMNS]]
    more = len(columns) - MAX_COLUMNS
    return [*types, *([("...", f"{more:,} more columns, in df.dtypes")] if more > 0 else [])]


def _line(view: TableView) -> str:
    """A line to try, of the view's own columns."""
    found = examples(view)
    kinds = [dtype_of(node, view.schema) for node in view.columns.values()]
    if not any(isinstance(kind, Numeric) for kind in kinds):
        return "try: df.count()"
    by = f"df.groupby({found['category_name']})" if found["category"].startswith("df[") else "df"
    return f"try: {by}[{found['number_name']}].mean()"
