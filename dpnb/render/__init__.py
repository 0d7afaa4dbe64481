"""From values to text and HTML: pure functions, registered for `to_text` and `to_html` of `dpnb.results.display`.

``numbers``      estimates, costs and shares as text
``tables``       tables and lists of facts
``page``         styles, notices, links and times of all HTML
``labels``       the numbers of an answer with their labels
``answers``      answers and what is computed from them
``history``      the looks at a question, one after the other
``previews``     what a release would cost and give
``thresholds``   what an above-threshold mechanism says
``facts``        explanations
``explanations`` one sentence for each refusal and warning
``sessions``     a session's state
"""

from dpnb.render import answers, facts, history, previews, thresholds

__all__ = ["answers", "facts", "history", "previews", "thresholds"]
