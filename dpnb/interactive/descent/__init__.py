"""Private gradient descent: fits a regression step by step; each step is charged before it is taken."""
