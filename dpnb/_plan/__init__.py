"""A query as frozen values without data: what is measured, of which rows, for which groups.

``privacy_unit``  the privacy unit, and the limits of its contribution
``constants``     constants that an analyst writes: numbers, strings, dates, and the keys of groups
``expressions/``  expressions of a row, as small trees with bounds
``measurements``  what can be measured, and what can be computed from a measurement
``plan``          the query: a measurement, conditions and groups
``join``          a join of two tables, and the groups of one as separate tables
``regression``    the terms of a regression and their scales
``description``   a query in words
``identity``      when two plans measure the same linear query
``checks``        the check of a plan against the schema; ``structure`` of its form alone
``bounds_grid``   the bins of a bounds finder
``suggestions``   "did you mean ...?"
``unreleased``    the error when a query is used as a number
"""
