"""Tables of Dask: every partition holds whole units and is processed on its worker."""
