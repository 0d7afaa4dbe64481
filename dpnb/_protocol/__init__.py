"""What the kernel and the browser exchange, as typed structs: the fields, their types and their ranges.

``snapshot``   every session of a kernel process: what the gauges, the panel and the badges show
``timeline``   the part of it that shows the budget over time
``picker``     the state of one budget picker
``messages``   the messages that carry them, and what the browser requests

The TypeScript types and guards in ``labextension/src/protocol/`` are generated from these modules by
``python .ci/protocol.py``; a test fails where they are out of date.  Nothing here imports the rest of dpnb.
"""
