"""Questions put to an engine that holds the rows: everything here is an expression of narwhals until the sums come out.

``native``        what engines do each in a way of their own; ``spark_jobs`` those of one request
``stable``        whether a plan gives the same rows each time; ``duckdb_plan`` the syntax tree that DuckDB's is
``files``         which local files a table is read from, and whether they have changed
``table``         an engine's frame -> columns that the schema describes, without a row being read
``arithmetic``    arithmetic that gives the same bits on every engine
``dates``         parts of dates, by such arithmetic
``expressions``   a row-wise expression -> what the engine is asked to compute
``contribution``  which rows and groups of a unit count: windows over the unit
``combine``       joins and parts
``execute``       linear query x table -> exact integer sums
``discover``      which groups there are, and how many units each
``squares``       how much each unit adds
``purses``        what each unit has spent, as a table in the engine
"""
