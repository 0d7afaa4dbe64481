"""The table of an answer: numbers with noise intervals by group.

``table``           the table
``operators``       arithmetic between tables, and their comparison with numbers
``comparison``      the result of a comparison: yes, no, or too close to say
``pandas_methods``  sorting, rounding, selecting rows, iterating
``index``           columns and index of the pandas table; names that an answer does not have
``regression_methods``  coefficients with the methods of statsmodels
``hypothesis_methods``  hypothesis tests of numbers with population intervals
``exports``         CSV, JSON, dict, Markdown and figures
"""
