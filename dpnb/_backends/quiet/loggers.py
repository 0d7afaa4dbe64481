"""The loggers of engines, silent from the first session on: they quote values, and may do so late."""

from __future__ import annotations

import logging
import sys

OF_ENGINES = ("pyspark", "py4j", "distributed", "dask")
"""Silenced with all loggers below them."""

OF_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers with which PySpark repeats the message of a failed query, and the value that it failed on."""

SHARED = ("asyncio", "tornado.application", "tornado.general", "concurrent.futures")
"""Loggers that the kernel uses too."""

DASKS_THREAD = "IO loop"
"""The thread in which a client of Dask, and a cluster in this process, wait for messages."""

NEVER = sys.maxsize
"""No record has this level."""


class _NotOfDask(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.threadName != DASKS_THREAD


_not_of_dask = _NotOfDask()


def silence() -> None:
    """Switch the loggers off permanently; again before each query, since an engine may have made others."""
    if "pyspark" in sys.modules:
        from pyspark.logger import PySparkLogger

        # Their class takes arguments that others do not, so `getLogger` below must not be the one to make them.
        for name in OF_QUERIES:
            PySparkLogger.getLogger(name)
    for name in OF_ENGINES:
        logging.getLogger(name)
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and _is_of_an_engine(name):
            logger.disabled = True
            logger.setLevel(NEVER)  # those that are made below it later take it from here
    for name in SHARED:
        logging.getLogger(name).addFilter(_not_of_dask)


def _is_of_an_engine(name: str) -> bool:
    return name in OF_QUERIES or name.partition(".")[0] in OF_ENGINES
