"""What comes back: estimates with honest intervals, their cost, and how they look.

``estimate``   noisy sums -> estimates and intervals (post-processing)
``answer``     a released answer
``preview``    what a release would cost and give
``faces``      both as text and as HTML
"""
