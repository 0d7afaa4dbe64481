"""What comes back: values with intervals and costs, which can be copied and pickled.

``estimates/``   noisy sums -> estimates and intervals (post-processing)
``observations`` the looks at one linear query, and what they say together
``table``        numbers with intervals by group, and arithmetic between them
``answer``       a released answer: figures and what they cost; its history
``fit``          the coefficients of a descent
``threshold``    what an above-threshold mechanism says of one question
``preview``      what a release would cost and give
``explanation``  facts in words
``display``      text, HTML and pictures of all of them, which the layers above implement
"""
