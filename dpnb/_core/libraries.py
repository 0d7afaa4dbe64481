"""Libraries that take long to import, so the modules that use them import them when first used."""

from __future__ import annotations


def import_libraries() -> None:
    """Import them before a session charges anything, so that no import delays a release or fails after its charge."""
    import mpmath  # noqa: F401
    import pandas  # noqa: F401
    import scipy.special  # noqa: F401
