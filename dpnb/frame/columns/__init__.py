"""Columns of a view, and expressions of its columns: lazy, and without access to any row."""
