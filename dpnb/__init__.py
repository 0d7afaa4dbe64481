"""dpnb: explore a sensitive table in a notebook under differential privacy, one adaptively chosen budget a query."""

import sys
from typing import Any

import dpnb.notebook.plots
import dpnb.render  # noqa: F401  (both register how values are shown)
from dpnb import errors
from dpnb.accounting.budget import Budget
from dpnb.frame import Frame, GroupBy, Series, crosstab, cut, get_dummies
from dpnb.query.batch import Batch, MarginsQuery
from dpnb.query.largest_groups import LargestGroups
from dpnb.query.query import Query
from dpnb.remote.connect import connect
from dpnb.results.answer import Answer
from dpnb.results.disclosure.parts import StatementText
from dpnb.results.preview import Preview
from dpnb.schema import Bounded, Categories, Dates, Text
from dpnb.session import Session
from dpnb.sources import read_table

__all__ = [  # noqa: RUF022  (in the order of use)
    # What a curator declares
    "Session", "Budget", "Bounded", "Categories", "Dates", "Text", "StatementText", "read_table",
    # What an analyst calls and catches
    "connect", "crosstab", "cut", "get_dummies", "errors",
    # What methods return, for annotations
    "Query", "Frame", "Series", "GroupBy", "Answer", "Preview", "Batch", "MarginsQuery", "LargestGroups",
]  # fmt: skip
__version__: str

if "marimo" in sys.modules:
    from dpnb.notebook.in_marimo import install

    install()


def __getattr__(name: str) -> Any:
    """The version, read from the package's metadata when first used."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    globals()[name] = version("dpnb")
    return globals()[name]


def __dir__() -> list[str]:
    """The public names, and those with underscores that tools look for."""
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})


def load_ipython_extension(shell: Any) -> None:
    """Turn on live gauges, the panel and the ``%dpnb`` magic: ``%load_ext dpnb``."""
    from dpnb.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Turn them off: ``%unload_ext dpnb``."""
    from dpnb.notebook.extension import unload

    unload(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "dpnb"}]
