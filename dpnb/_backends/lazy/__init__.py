"""Questions put to an engine that holds the rows: everything here is an expression of narwhals until the sums come out.

``engines``          what engines do each in a way of their own, one module for each
``stability``        whether a plan gives the same rows each time
``files``            which local files a table is read from, and whether they have changed
``lazy_columns``     an engine's frame -> columns that the schema describes, without a row being read
``lazy_table``       the tables of a session in an engine
``arithmetic``       arithmetic that gives the same bits on every engine
``calendar``         parts of dates, by such arithmetic
``expressions``      a row-wise expression -> what the engine is asked to compute
``contribution``     which rows and groups of a unit count: windows over the unit
``combine``          joins and parts
``execute``          linear query x table -> exact integer sums
``partitions``       which groups there are, and how many units each
``unit_norms``       how much each unit adds
``unit_budgets``     what each unit has spent, as a table in the engine
"""
