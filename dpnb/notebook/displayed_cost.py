"""The cost that a page displays, which a release by mouse does not exceed.

The page may show an earlier state of the budget than the kernel, or the kernel one than the service that holds the
table.  So a page returns the displayed cost with the target, and a release that would cost more is refused.
"""

from __future__ import annotations

from dpnb.accounting.exact import to_text
from dpnb.results.preview import Preview

AT_MOST = "at_most"
"""Name of the displayed cost in a target."""


def with_cost(target: dict[str, str], preview: Preview) -> dict[str, str]:
    """A target of a release with the cost of its displayed preview, as mu squared."""
    return {**target, AT_MOST: to_text(preview.cost.mu_squared)}
