"""Reads a curator's tables from where they are, with the types of the declaration.  Reads rows.

``source``     where a table is, as one text: a file, a table in a file, or a URL
``formats``    which reader reads which files: a table of suffixes
``reading``    reads the tables of a session, and computes the digests of their files
``text_file``, ``columnar``, ``cellwise``, ``statistics_file``  the readers of files
``missing``    which values are missing, and ``columns``, a source's columns as a data frame
``dialect``    how a CSV file is probably written

What one row is read as never depends on another row: no reader infers the type of a column from its values.  A reader
returns the types that its source declares, or values one by one; `dpnb._backends` decides what counts as declared.
Nothing that a library says about a file is shown, since it may quote rows.
"""
