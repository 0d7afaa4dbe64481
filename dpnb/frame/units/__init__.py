"""A view grouped by its privacy unit: one row for each unit, and values computed from the rows of one unit.

Both depend on the rows of one unit alone, so they are as private as the rows; see `dpnb._compile.within`.
"""
