"""Tables in memory: columns prepared once, then exact integer sums.  Everything here reads rows.

``prepare/``         data frames to columns on the grid
``memory_backend``   the tables of a session
``blocks``           rows in pieces of whole units, on all cores, what the pieces share, and how many rows they have
``row_mask``         the rows that count in a query
``evaluate``         an expression over prepared columns
``coarse``           comparisons that read 16 bits of a value
``execute``          a linear query over prepared columns, to exact integer sums
``kernels``          its inner sums, compiled or in numpy
``per_unit``         the same unit by unit; ``unit_norms`` computes the norms alone
``gradient``         gradients of a regression, unit by unit
``group_discovery``  the groups that exist, and their numbers of units
``join_pairs``       the pairs of rows of a join, a block at a time
"""
