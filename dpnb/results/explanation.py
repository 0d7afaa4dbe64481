"""Facts as text, as `explain` returns them."""

from __future__ import annotations

from dataclasses import dataclass

from dpnb.results.display import Displayed


@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
    """A list of facts with a title.

    Parameters
    ----------
    words : str
        The title.
    facts : list of (str, str)
        Name and text of each fact.
    notice : str, optional
        Warning that the session is a rehearsal or not private.

    Examples
    --------
    >>> print(str(session.explain()).splitlines()[1])
    clinic: guarantee and budget
    """

    words: str
    facts: list[tuple[str, str]]
    notice: str | None = None
