"""Queries on tables that stay in an engine: expressions of narwhals, of which the engine returns only the sums.

``engines``          the operations that differ between engines, one module for each
``stability``        whether a plan returns the same rows each time
``files``            the local files from which a table is read, and whether they have changed
``lazy_table``       an engine's frame -> columns that the schema describes, without reading a row
``lazy_backend``     the tables of a session in an engine
``arithmetic``       arithmetic that gives the same bits on every engine
``calendar``         parts of dates, by such arithmetic
``expressions``      a row-wise expression -> an expression of narwhals
``public_tables``    lookups of public values, by joins with small tables
``row_limits``       the first rows of each unit of a table
``contribution``     the rows and groups of a unit that count: windows over the unit
``combine``          joins and parts
``execute``          linear query x table -> exact integer sums
``group_discovery``  the groups that exist, and their numbers of units
``unit_norms``       the norm of each unit's contribution
``unit_budgets``     the spending of each unit, as a table in the engine
"""
