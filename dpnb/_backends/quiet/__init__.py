"""Keep engines quiet: what they print or log may quote a row, or show the progress of a query.

A notebook shows, and saves, what reaches descriptors 1 and 2 of its kernel, from whichever process, thread or library.

``streams``  both standard streams of this process, while an engine works
``loggers``  the loggers of engines, from the first session on
``engines``  what writes elsewhere: the Java machine of Spark, the workers of Dask, progress bars

Nothing is kept in a file, since a kernel's files are not private to the curator.  To find out why a query failed, run
the table's own plan in the engine, in a terminal.
"""

from dpnb._backends.quiet.engines import run_silently

__all__ = ["run_silently"]
