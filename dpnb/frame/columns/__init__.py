"""Columns of a view, and expressions of its columns: lazy, and without access to any row.

``series``           one column or expression, also of a grouped view
``aggregations``     its aggregations
``column_expr``      row-wise functions; ``operators`` and ``named_operators`` under their names in pandas
``column_methods``   methods that are neither row-wise functions nor aggregations
``recoding``         ``map``, ``replace``, ``astype`` and the choice between two values
``text_methods``     what ``.str`` returns; ``date_parts`` what ``.dt`` returns
``bins``             bins of numbers and dates, the bins of a bounds finder, and ``column.plot.hist()``
``groups``           keys of groups, shares within groups and tables with margins
"""
