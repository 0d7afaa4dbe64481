"""The scripts of this folder are read by mypy and never run."""

collect_ignore = ["analyst.py", "mistakes.py"]
