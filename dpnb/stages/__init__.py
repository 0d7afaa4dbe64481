"""What long work is doing, for whoever looks on: its stage and for how long, never how far it is.

A stage is one of a fixed list, so nothing computed from rows can be told; time is outside the promise.

``stage``      the list
``clock``      a piece of work and its stages, told by a thread of its own once it has lasted a second
``terminal``   the line in a terminal; a notebook has its own (`dpnb.notebook.progress`)
"""

from dpnb.stages.clock import Tell, Work, at, show_by, work
from dpnb.stages.stage import Stage

__all__ = ["Stage", "Tell", "Work", "at", "show_by", "work"]
