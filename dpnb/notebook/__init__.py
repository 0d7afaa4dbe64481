"""The notebook front end: the only package that imports IPython, widgets and comms.

``panel``          kernel end of the Lab panel and status item; snapshots of every session of this process
``widgets``        live gauges below a cell
``progress_line``  the line in a cell that shows the progress of a long operation
``picker``         the budget picker below a query; ``picker_state`` computes its state, ``picker_steps`` its steps
``confirmation``   which releases are confirmed
``plots``          figures of answers, drawn with plotly
``cell_context``   which cell makes a request, also where the server runs it
``ledger_watch``   follows other processes that charge the same ledgers
``column_completion``  what Tab offers
``magics``         ``%dpnb`` and ``%%dpnb``
``extension``      ``%load_ext dpnb``, and short tracebacks
"""
