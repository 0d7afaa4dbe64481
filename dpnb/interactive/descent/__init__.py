"""Private gradient descent: fits a regression step by step, each step charged when it is taken."""
