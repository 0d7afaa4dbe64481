"""What comes back: estimates with honest intervals, their cost, and how they look.

``estimates/``  noisy sums -> estimates and intervals (post-processing)
``figures``     numbers with intervals by group, and arithmetic between them
``answer``      a released answer: figures and what they cost
``preview``     what a release would cost and give
``faces``       all of them as text and as HTML
"""
