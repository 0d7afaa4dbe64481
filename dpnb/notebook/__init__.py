"""The notebook front end: the only package that imports IPython, widgets and comms.

``snapshots``      snapshots of every session of this process, for the browser
``panel``          kernel end of the Lab panel and status item
``widgets``        live gauges below a cell
``picker``         the budget picker below a query; ``picker_state`` computes its state
``plots``          figures of answers, drawn with plotly
``progress_line``  a line in the cell that shows the progress of long operations
``tracebacks``     short tracebacks for dpnb's errors
``cell_context``   which cell makes a request, and whether widgets can be displayed
``cell_runs``      the same for cells that the server runs, whose requests omit the cell
``ledger_watch``   follows other processes that charge the same ledgers
``magics``         ``%dpnb`` and ``%%dpnb``; ``completion`` completes their arguments
``extension``      ``%load_ext dpnb``
"""
