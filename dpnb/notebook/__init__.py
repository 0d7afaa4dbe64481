"""What a notebook shows: the only place that knows IPython, widgets and comms.

``snapshot``   every session of this process, for the browser
``panel``      kernel end of the Lab panel and status item
``widgets``    live gauges below a cell
``picker``     the budget picker below a question; ``ladder`` works out what it shows
``plots``      pictures of answers, in plotly; ``plot_marks``, ``plot_history`` and ``plot_style`` draw for it
``progress``   a line in the cell that says what long work is doing
``tracebacks``  errors of dpnb's, shown shortly
``place``      which cell is asking, and whether anybody can see a widget
``magics``     ``%dpnb`` and ``%%dpnb``; ``completion`` says what may follow
``extension``  ``%load_ext dpnb``
"""
