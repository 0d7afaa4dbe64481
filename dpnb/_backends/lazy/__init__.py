"""Queries on tables that stay in an engine: expressions of narwhals, of which the engine returns only the sums.

``engines``          the operations that differ between engines, one module for each
``files``            the local files from which a table is read, and whether a plan returns the same rows each time
``lazy_table``       an engine's frame -> columns that the schema describes, without reading a row
``lazy_backend``     the tables of a session in an engine, their joins and parts
``arithmetic``       arithmetic that gives the same bits on every engine, also for dates
``expressions``      a row-wise expression -> an expression of narwhals
``row_limits``       the first rows of each unit of a table
``contribution``     the rows and groups of a unit that count: windows over the unit
``execute``          linear query x table -> exact integer sums
``group_discovery``  the groups that exist, and their numbers of units
``unit_budgets``     the spending of each unit, as a table in the engine, and the norm of its contribution
"""
