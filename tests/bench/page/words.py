"""What the page says about its figures."""

HEAD = """# Benchmarks

How long queries take in dpnb, pandas, polars, DuckDB and OpenDP on the same tables, and how fast they have to be.
`make bench` measures and writes this page (`tests/bench/speed.py`); do not edit it by hand. Times are milliseconds
unless a unit is given; ratios are of medians of one run.
"""

HOW = """## How it was measured

- **Table**: synthetic, from a fixed seed: two float columns, categories of 50 and of 1,000 keys, texts of 300 words,
  persons with one to five rows each, in random order. pandas holds the categories as `category` and the texts as its
  own `str`, polars as `Enum` and `String`.
- **Query**: each is about the rows where `x` is above a threshold, which differs from release to release: repeating
  the same query would be free. Quantiles are three (0.25, 0.5, 0.75), discovered keys are those of the texts.
- **dpnb**: `Session(...)` with real noise and its ledger on disk; from building the query to the answer. *First* is
  the first query of a new session in a process that has everything imported and compiled; *steady* the median of
  {rounds} more. Nothing is subtracted.
- **pandas, polars**: the same aggregation without privacy, in the same process, taking turns with dpnb; medians of
  as many, or of three where one has taken five seconds by then. Only the columns that are needed are taken. About
  persons they keep the first three rows of each that pass the filter, again in each query; dpnb keeps three rows of
  each before it filters, and remembers which. polars may use all cores.
- **OpenDP**: {opendp}
  It needs one exact release of polars, therefore an environment of its own. Its noise scales are given by hand
  through its measurement API, and its compositor counts them. A mean is a sum and a count, groups are public keys that
  it joins, and quantiles choose among 201 candidates.{more}
  Its Context API would search for the scales, which takes longer, and it sets itself up first: see below.
- **Memory**: a process of its own for each query, whose session declares the columns that the query uses and no
  others; the peak of resident memory above the frame, over set-up and two releases, and its ratio to the size of these
  columns in pandas. numba and what it has compiled are in memory before, and not counted.
- **Set-up** is compared with one copy of every declared column of the frame (for texts of their buffers), and with
  `pandas.read_parquet` of a file of these columns that the system holds in memory.  For persons it also puts the rows
  in the order of their persons and chooses which of them count, which pandas and polars repeat in each query.
"""
