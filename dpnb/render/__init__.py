"""Rendering of values as text and HTML: functions registered for `to_text` and `to_html` of `dpnb.results.display`."""

from dpnb.render import answers, batches, charts, previews, report_page, sessions, studies

__all__ = ["answers", "batches", "charts", "previews", "report_page", "sessions", "studies"]
