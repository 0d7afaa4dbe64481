"""Suppression of the output of engines, which may quote a row or show the progress of a query.

A notebook shows and saves everything that is written to descriptors 1 and 2 of its kernel, by any process, thread or
library.

``streams``  both standard streams of this process, while an engine works
``loggers``  the loggers of engines, from the first session on
``engines``  other output: the Java virtual machine of Spark, the workers of Dask, progress bars

The output is not written to a file either, since a kernel's files are not private to the curator.  To find out why a
query failed, run the table's plan in the engine, in a terminal.
"""

from dpnb._backends.quiet.engines import run_silently

__all__ = ["run_silently"]
