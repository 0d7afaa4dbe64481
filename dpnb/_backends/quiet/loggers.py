"""The loggers of engines, disabled from the first session on: they quote values, perhaps after a query has ended."""

from __future__ import annotations

import logging
import sys

OF_ENGINES = ("pyspark", "py4j", "distributed", "dask")
"""Disabled with all loggers below them."""

OF_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers with which PySpark repeats the message of a failed query, with the value that caused the failure."""

SHARED = ("asyncio", "tornado.application", "tornado.general", "concurrent.futures")
"""Loggers that the kernel uses too."""

DASK_THREAD = "IO loop"
"""The thread in which a client of Dask, and a cluster in this process, wait for messages."""

NEVER = sys.maxsize
"""No record has this level."""


class _NotOfThread(logging.Filter):
    def __init__(self, thread: str) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return record.threadName != self._thread


_not_of_dask = _NotOfThread(DASK_THREAD)


def silence_thread(thread: str, library: str) -> None:
    """Drop the records of a thread from all loggers of a library, which others may use; called in that thread."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and name.partition(".")[0] == library:
            logger.addFilter(_NotOfThread(thread))


def silence() -> None:
    """Disable the loggers permanently; called before each query, since an engine may have created others."""
    if "pyspark" in sys.modules:
        from pyspark.logger import PySparkLogger

        # Their class takes additional arguments, so `getLogger` below must not create them.
        for name in OF_QUERIES:
            PySparkLogger.getLogger(name)
    for name in OF_ENGINES:
        logging.getLogger(name)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and _is_of_an_engine(name):
            logger.disabled = True
            logger.setLevel(NEVER)  # loggers that are created below it later inherit this level
    for name in SHARED:
        logging.getLogger(name).addFilter(_not_of_dask)


def _is_of_an_engine(name: str) -> bool:
    return name in OF_QUERIES or name.partition(".")[0] in OF_ENGINES
