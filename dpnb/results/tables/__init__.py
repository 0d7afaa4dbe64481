"""The table of an answer: numbers with noise intervals by group."""
