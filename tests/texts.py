"""The characters of texts; `st.text()` finds them by encoding every number, which takes a second of each process."""

from __future__ import annotations

from hypothesis import strategies as st

characters = st.characters(exclude_categories=["Cs"])
"""All that UTF-8 can encode."""
