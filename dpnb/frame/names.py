"""The names of columns: a list that also has the conversions of a pandas Index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpnb.errors import UnsupportedError


class ColumnNames(list[str]):
    """The names of a frame's columns."""

    def tolist(self) -> list[str]:
        """The names as a list, as in pandas; also ``to_list``."""
        return list(self)

    to_list = tolist

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnsupportedError(
                f".{name} of the names of columns: is not offered, since they are a list; use "
                "pandas.Index(df.columns), which has all methods of pandas"
            )
