"""What long work is doing, for whoever looks on: its stage and for how long, never how far it is.

A stage is one of a fixed list, so nothing computed from rows can be told; time is outside the promise.

``stage``      the list
``clock``      a piece of work and its stages, told by a thread of its own once it has lasted a second
``terminal``   the line in a terminal; a notebook has its own (`dpnb.notebook.progress_line`)
"""

from dpnb.progress.clock import ProgressTask, Tell, at, show_by, work
from dpnb.progress.stage import Stage

__all__ = ["ProgressTask", "Stage", "Tell", "at", "show_by", "work"]
