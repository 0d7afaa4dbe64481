"""Tables of Dask: every partition holds whole units and is worked on where it is."""
