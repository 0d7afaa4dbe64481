"""Above-threshold: which queries of a sequence are above a threshold, for one charge (sparse vector technique)."""
