"""Facts in words, as `explain` gives them."""

from __future__ import annotations

from dataclasses import dataclass

from dpnb.results.display import Displayed


@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
    """Facts in words.

    Parameters
    ----------
    words : str
        What they are about.
    facts : list of (str, str)
        Name and text of each.
    notice : str, optional
        Says loudly if the session is not real or not private.
    """

    words: str
    facts: list[tuple[str, str]]
    notice: str | None = None
