"""The notebook front end: the only package that imports IPython, widgets and comms."""
