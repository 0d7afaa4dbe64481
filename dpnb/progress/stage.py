"""The stages of a task."""

from enum import Enum


class Stage(Enum):
    """What a task is doing, in texts that are the same for every table."""

    READING = "reading the table"
    PREPARING = "preparing columns"
    SERVICE = "waiting for the service"
    LEDGER = "reading the ledger"
    WAITING = "waiting for the interrupted query to end"
    CHARGING = "charging"
    JOINING = "joining tables"
    PART = "selecting the rows of a part"
    REPLAYING = "recomputing what units have paid"
    ADDING = "adding up rows"
    UNITS = "adding up by unit"
    GROUPS = "discovering groups"
    NOISE = "drawing noise"
    WRITING = "writing the answer"
