"""The messages between the kernel and the browser as typed structs: fields, types and ranges.

``snapshot``   every session of a kernel process, for the gauges, the panel and the badges
``timeline``   the part of it that shows the budget over time
``connection`` the part of it about the service that has the table
``picker``     the state of one budget picker
``curation``   the state of a table of a service, for the curator's page and commands
``cockpit``    what the page receives beside it
``messages``   the messages that carry them, and what the browser requests
``glossary``   the terms that are explained on the screen

The TypeScript types and guards in ``labextension/src/protocol/`` are generated from these modules by
``python .ci/protocol.py``, with the summary of each struct and the comment above or after each field; a test fails
where they are out of date.  Nothing here imports the rest of dpnb.
"""
