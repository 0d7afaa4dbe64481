"""dpnb: explore a sensitive table in a notebook under differential privacy, one adaptively chosen budget a query."""

from importlib.metadata import version as _version
from typing import Any

import dpnb.notebook.plots
import dpnb.render  # noqa: F401  (both register how values are shown)
from dpnb import errors
from dpnb._plan.schema import Bounded, Categories, Dates, Text
from dpnb.accounting.budget import Budget
from dpnb.frame import cut
from dpnb.session import Session

__all__ = ["Bounded", "Budget", "Categories", "Dates", "Session", "Text", "cut", "errors"]
__version__ = _version("dpnb")


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
