"""What pandas and numpy have and a private table has differently, or not: accepted, translated or refused.

``options``          keyword arguments of pandas that have no effect here
``docstrings``       what many docstrings have in common
``verbs``            names of aggregations, and functions that receive a view: ``agg``, ``pipe``, ``apply``
``numpy_functions``  numpy's functions of columns
``unsupported``      operations that a private table does not offer, also operators of whole tables; ``remedies`` says
                     what to write instead, ``examples`` with which columns, ``callers`` for which function of another
                     library
"""
