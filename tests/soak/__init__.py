"""Long runs that kill, load, fork and interrupt: ``python -m soak``; and the tests that wait, again and again.

Not collected by pytest.  What is violated is an error; the figures are stated and not asserted.
"""
