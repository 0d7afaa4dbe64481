"""What pytest must not import: a configuration that JupyterHub executes."""

collect_ignore = ["hub_config.py"]
