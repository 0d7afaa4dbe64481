"""Tables in memory: columns prepared once, then exact integer sums.  Everything here reads rows."""
