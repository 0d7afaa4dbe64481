"""pandas operations that a private table does not offer: refused by name, with what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from dpnb._plan.unreleased import closest
from dpnb.copying import NotCopyable
from dpnb.errors import PlanError, UnsupportedError
from dpnb.frame.compatibility.callers import refusal_for_caller, refuse_request_for_rows
from dpnb.frame.compatibility.calls import REMEDIES, SHOWS_ROWS
from dpnb.frame.compatibility.examples import examples

# --- operators of whole tables ----------------------------------------------------------------------------------------


REFLECTED = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"},
    **{"and": "&", "or": "|", "xor": "^"},
}
"""The operators that have a reflected method, by the names of their methods."""

OTHERS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neg": "-", "abs": "abs", "invert": "~"}
"""The other operators."""


class NoOperators:
    """Base class of frames and groups, which have columns; these have operators."""

    __slots__ = ()

    def _column_named(self: Any, name: str) -> Any:
        return self[name] if name in self._view.columns or name == self._view.unit else None

    def _column_names(self: Any) -> list[str]:
        return list(self._view.columns)

    _ipython_key_completions_ = _column_names

    if TYPE_CHECKING:  # of each subclass

        def _description(self) -> str: ...
        def _example(self, template: str) -> str: ...

    else:

        def __eq__(self, other: object) -> bool:
            """Identity; a comparison with a constant is refused."""
            if isinstance(other, bool | int | float | str):
                _refuse(self, "==")
            return NotImplemented

        __hash__ = object.__hash__


def _refuse(table: Any, symbol: str) -> NoReturn:
    raise PlanError(
        f"{table._description()} {symbol}: is not offered for a whole table; write it for a column, as in "
        + table._example("{number} * 2 or {number} > 1")
    )


def _refusal(symbol: str) -> Callable[..., NoReturn]:
    def method(self: NoOperators, *_: object) -> NoReturn:
        _refuse(self, symbol)

    return method


for _name, _symbol in REFLECTED.items():
    setattr(NoOperators, f"__r{_name}__", _refusal(_symbol))
for _name, _symbol in {**REFLECTED, **OTHERS}.items():
    setattr(NoOperators, f"__{_name}__", _refusal(_symbol))


# --- pandas operations that a private table does not offer ------------------------------------------------------------


MAX_LISTED = 25
"""The most names that a refusal lists: of more, none is found by reading."""


class NoLengthError(PlanError, TypeError):
    """The number of rows is private; also a `TypeError`, so that ``list(frame)`` gives the names of columns."""


class UnsupportedOperations(NotCopyable):
    """Base of the pandas-like classes: an unsupported name is refused with a remedy; it never acts as an array."""

    __slots__ = ()

    def _description(self) -> str:
        """Name of the object in error messages; by default that of its class."""
        return f"<private {type(self).__name__}>"

    def _examples(self) -> Mapping[str, str]:
        """The columns that error messages use in examples; those of the object's view if it has one."""
        return examples(getattr(self, "_view", None))

    def _example(self, template: str) -> str:
        """A text with the analyst's columns in place of ``{number}``, ``{category}``, ..."""
        return template.format_map(self._examples())

    def _column_named(self, name: str) -> Any:
        """The column that attribute access returns; None if the object has no columns, or none of that name."""
        del name
        return None

    def _column_names(self) -> list[str]:
        """The columns that attribute access can return."""
        return []

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(name for name in self._column_names() if name.isidentifier())})

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            refuse_request_for_rows(name, self._examples)
            if name.startswith("_"):
                raise AttributeError(name)
            column = self._column_named(name)
            remedy = REMEDIES.get(name)
            if remedy is not None:
                also = f"; the column of this name is df[{name!r}]" if column is not None else ""
                text = self._example(remedy)
                raise UnsupportedError(f".{name} of {self._description()}: {text}{also}")
            if column is not None:
                return column
            verbs = [verb for verb in dir(type(self)) if not verb.startswith("_")]
            columns = self._column_names()
            meant = closest(name, [*columns, *verbs])
            if meant in columns:
                raise UnsupportedError(
                    f".{name} of {self._description()}: there is no such column; did you mean df[{meant!r}]?"
                )
            if meant is not None:
                raise UnsupportedError(f".{name} of {self._description()}: is not offered; did you mean .{meant}?")
            listed = f"it offers: {', '.join(verbs)}" if len(verbs) <= MAX_LISTED else "dir() of it lists what is"
            raise UnsupportedError(f".{name} of {self._description()}: is not offered; {listed}")

    def __iter__(self) -> NoReturn:
        refusal_for_caller(self._examples())
        raise PlanError(
            f"{self._description()}: cannot be iterated, since its rows are never shown; release a summary such as "
            + self._example("{number}.mean() or {category}.value_counts()")
        )

    def __len__(self) -> NoReturn:
        refusal_for_caller(self._examples())
        raise NoLengthError(
            f"{self._description()}: has no len(), since the number of rows is private; release .count() instead"
        )

    def __bool__(self) -> NoReturn:
        raise PlanError(f"{self._description()}: its truth value is ambiguous; release an aggregate of it instead")

    def __float__(self) -> NoReturn:
        raise PlanError(
            f"{self._description()}: is not a number; release an aggregate of it instead, such as "
            + self._example("{number}.mean()")
        )

    __int__ = __float__
    __index__ = __float__
    __complex__ = __float__

    def __round__(self, decimals: int = 0) -> Any:
        del decimals
        self.__float__()

    def __format__(self, spec: str) -> str:
        if spec:  # the format of a number
            self.__float__()
        return str(self)

    def __array__(self, *_: object, **__: object) -> NoReturn:
        refusal_for_caller(self._examples())
        raise UnsupportedError(
            f"{self._description()}: cannot be converted to an array, which {self._example(SHOWS_ROWS)}"
        )

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            if name.startswith("_"):
                object.__setattr__(self, name, value)
            elif name == "columns":
                raise PlanError(
                    f"{self._description()}: its columns are renamed by df = df.rename(columns="
                    f"{{{self._examples()['number_name']}: 'new'}})"
                )
            else:
                raise PlanError(
                    f"{self._description()}: a column is set by its name in brackets, as in "
                    + self._example(f"df[{name!r}] = {{number}} * 2")
                )

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Refuse: ``df.wage()`` is meant as ``df.wage``."""
            raise PlanError(
                f"{self._description()}: is not a function, so no parentheses follow it; write for example "
                + self._example("{number}.mean()")
            )

    def __setitem__(self, key: object, value: object) -> None:
        raise PlanError(
            f"{self._description()}: its values cannot be changed; a new column is set by "
            + self._example("df['new'] = {number} * 2, and values are replaced by {number}.where({mask}, 0)")
        )

    def __delitem__(self, key: object) -> None:
        raise PlanError(f"{self._description()}: its rows cannot be deleted; select the rows to keep by a condition")

    def __contains__(self, item: object) -> bool:
        raise PlanError(
            f"in: whether rows of {self._description()} have a value is private; compare with == and release .sum(), "
            "as in " + self._example("{condition}.sum(); df.columns lists the columns")
        )
