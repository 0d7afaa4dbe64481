"""What a release returns: values with intervals and costs, which can be copied and pickled.

``estimates/``   noisy sums -> estimates and intervals (post-processing)
``observations`` the observations of one linear query, and their combination
``answer``       a released answer: estimates and what they cost; its history
``tables/``      the table of an answer: numbers with intervals by group, and what can be done with them
``testing/``     hypothesis tests of what was released
``batch``        a released batch of queries, and a table with its margins
``reconciled``   answers that add up
``bounds``       the answer of a bounds finder
``selection``    the selected groups
``survival/``    survival curves
``regression``   the result of a regression, with the methods of statsmodels
``fit``          the coefficients of a regression fitted by gradient descent
``preview``      cost and expected error of a release
``schema``       the declared columns of a session's tables
``disclosure/``  disclosure statements and their parts
``display``      generic functions for text, HTML and figures, which the layers above implement; facts as text
"""
