"""Names that an answer does not have: refused with what to use instead, in the end `to_pandas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpnb._plan.suggestions import closest
from dpnb.errors import AnswerAttributeError
from dpnb.results.index import COLUMNS

RELEASED_ONLY = frozenset(
    ["cost", "cost_fraction", "n_observations", "plan", "proportions", "refine", "time", "total_loss", "view"]
)
"""Attributes that only a released answer has."""

MEANT = {"value": "estimate", "values": "estimate", "result": "estimate", "ci": "interval", "conf_int": "interval"}
"""Names that analysts try, and the attribute."""


class UnknownNames:
    """Refuses unknown attributes with an `AttributeError` that names a replacement."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            own = dir(type(self))
            if name.startswith("_") or name in own or name in self.__dataclass_fields__:
                raise AttributeError(name)  # also while a debugger shows an object whose `__init__` has not finished
            what = f".{name} of {self.description}"
            if name in RELEASED_ONLY:
                raise AnswerAttributeError(
                    f"{what}: belongs to a released answer; use it on the answer that this was computed from"
                )
            close = MEANT.get(name) or closest(name, [public for public in own if not public.startswith("_")])
            hint = f"did you mean .{close}? .to_pandas()" if close else ".to_pandas()"
            raise AnswerAttributeError(
                f"{what}: is not offered by an answer; {hint} gives a pandas DataFrame with the columns "
                f"{', '.join(COLUMNS)}{_pandas_example(name)}"
            )


def _pandas_example(name: str) -> str:
    import pandas as pd  # imported when first used

    offered = getattr(pd.Series, name, None)
    call = "(...)" if callable(offered) and not isinstance(offered, type) else ""
    return f", for example .to_pandas()['estimate'].{name}{call}" if offered is not None else ""
