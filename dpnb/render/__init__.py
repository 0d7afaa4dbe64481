"""Rendering of values as text and HTML: functions registered for `to_text` and `to_html` of `dpnb.results.display`.

``numbers``      estimates, costs and fractions as text
``tables``       tables and lists of facts
``page``         styles, notices, links and timestamps of all HTML output
``labels``       the numbers of an answer with their labels
``answers``      answers and estimates computed from them
``histograms``   counts of ordered groups as static bars
``quantities``   what the numbers of an answer are, for all pictures
``scale``        ticks of an axis
``batches``      batches of queries and their previews
``bounds``       the answer of a bounds finder
``history``      the answers after each observation of a query
``comparisons``  comparisons of answers with numbers
``previews``     cost and expected error of a release
``selections``   selected groups and their previews
``thresholds``   results of above-threshold mechanisms
``facts``        explanations
``explanations`` one explanation for each refusal and warning
``reports``      disclosure statements; ``report_page`` as a page, ``report_style`` its style sheet
``schemas``      the declared columns of the tables
``sessions``     a session's state
"""

from dpnb.render import answers, batches, history, previews, report_page, schemas, selections

__all__ = ["answers", "batches", "history", "previews", "report_page", "schemas", "selections"]
