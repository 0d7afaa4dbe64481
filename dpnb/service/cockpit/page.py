"""The document of the cockpit, and its script and style, which are built from ``labextension/src/cockpit/``."""

from __future__ import annotations

from pathlib import Path

from dpnb.errors import InvalidValueError

STATIC = Path(__file__).parents[1] / "static"

DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>dpnb cockpit</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/cockpit.css">
<script type="module" src="/cockpit.js"></script>
</head>
<body>
<div id="cockpit"></div>
<noscript><p>This page needs JavaScript.</p></noscript>
</body>
</html>
"""


def read_static(name: str) -> bytes:
    """The content of a built file; `InvalidValueError` if it was not built."""
    try:
        return (STATIC / name).read_bytes()
    except OSError:
        pass
    raise InvalidValueError(
        f"cockpit: its page was not built: {name} is missing in this installation; run `make serve` once in the clone, "
        "or install a release"
    )
