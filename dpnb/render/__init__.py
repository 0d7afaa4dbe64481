"""Rendering of values as text and HTML: functions registered for `to_text` and `to_html` of `dpnb.results.display`.

``numbers``       estimates, costs, dates and fractions as text
``tables``        tables and lists of facts, values made of them, and the labels of an answer's numbers
``page``          styles, notices, links, terms and timestamps of all HTML output
``answers``       answers, comparisons of them and bounds finders
``histograms``    counts of ordered groups as static bars; what the numbers of an answer are, for all pictures
``history``       the answers after each observation of a query
``batches``       batches of queries and their previews
``previews``      cost and expected error of a release
``regressions``   summaries of regressions
``selections``    selected groups and their previews; results of above-threshold mechanisms
``schemas``       the declared columns of the tables; explanations
``explanations``  one explanation for each refusal and warning
``report_page``   disclosure statements: in a few lines, and as a page
``sessions``      a session's state, and its connection
``studies``       descriptions of groups, survival curves
"""

from dpnb.render import answers, batches, charts, previews, report_page, sessions, studies

__all__ = ["answers", "batches", "charts", "previews", "report_page", "sessions", "studies"]
