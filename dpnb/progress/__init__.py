"""Progress of long work: its stage and the elapsed time, never how much of it is done.

A stage is one of a fixed list, so nothing computed from rows can be shown; timing is outside the guarantee.

``stage``      the list of stages
``clock``      a task and its stages, shown by a separate thread once it has lasted a second
``terminal``   the line in a terminal; a notebook has its own (`dpnb.notebook.progress_line`)
"""

from dpnb.progress.clock import ProgressTask, ShowText, at, show_by, work
from dpnb.progress.stage import Stage

__all__ = ["ProgressTask", "ShowText", "Stage", "at", "show_by", "work"]
