"""Reads a curator's tables from where they are, with the types of the declaration.  Reads rows.

What one row is read as never depends on another row: no reader infers the type of a column from its values.  A reader
returns the types that its source declares, or values one by one; `dpnb._backends` decides what counts as declared.
Nothing that a library says about a file is shown, since it may quote rows.
"""
