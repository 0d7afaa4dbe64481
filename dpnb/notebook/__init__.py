"""What a notebook shows: the only place that knows IPython, widgets and comms.

``snapshot``   every session of this process, for the browser
``panel``      kernel end of the Lab panel and status item
``widgets``    live gauges below a cell
``magics``     ``%dpnb``
``extension``  ``%load_ext dpnb``
"""
