"""What a release returns: values with intervals and costs, which can be copied and pickled.

``estimates/``   noisy sums -> estimates and intervals (post-processing)
``observations`` the observations of one linear query, and their combination
``table``        numbers with intervals by group
``operators``    arithmetic between them, and their comparison with numbers
``comparison``   the result of a comparison: yes, no, or too close to say
``pandas_methods``  sorting, rounding, selecting rows, iterating; ``unknown_names`` refuses all others
``dates``        points in time as values of pandas
``plot``         figures, also under the names that pandas has for them
``exports``      CSV, JSON, dict and Markdown
``answer``       a released answer: estimates and what they cost; its history
``fit``          the coefficients of a regression fitted by gradient descent
``threshold``    the result of one query to an above-threshold mechanism
``preview``      cost and expected error of a release
``explanation``  facts as text
``report``       disclosure statements; ``report_parts`` their parts
``display``      generic functions for text, HTML and figures, which the layers above implement
"""
