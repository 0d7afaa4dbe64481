"""What a notebook shows: the only package that knows IPython, widgets and comms.

``snapshots``      every session of this process, for the browser
``panel``          kernel end of the Lab panel and status item
``widgets``        live gauges below a cell
``picker``         the budget picker below a query; ``picker_state`` works out what it shows
``plots``          figures of answers, in plotly
``progress_line``  a line in the cell that says what long work is doing
``tracebacks``     short tracebacks of dpnb's errors
``cell_context``   which cell makes a request, and whether widgets can be seen
``magics``         ``%dpnb`` and ``%%dpnb``; ``completion`` says what may follow
``extension``      ``%load_ext dpnb``
"""
