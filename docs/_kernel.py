"""Runs in every kernel that executes a page: plotly's figures use the site's own copy of plotly.js."""

from typing import Any

import plotly.io
from plotly.io.base_renderers import MimetypeRenderer

# A figure is drawn while the page is still being laid out, at a width that the page then changes.
FIT = "window.addEventListener('load', () => Plotly.Plots.resize(document.getElementById('{plot_id}')));"


class SiteRenderer(MimetypeRenderer):
    """HTML that loads the copy of plotly.js in the site, and nothing from the network."""

    def to_mimebundle(self, figure: dict[str, Any]) -> dict[str, str]:
        """The figure as a part of a page; every page with a figure is in a folder of the site."""
        script = "../_static/plotly.min.js"
        html = plotly.io.to_html(
            figure,
            config={"responsive": True},
            include_plotlyjs=script,
            include_mathjax=False,
            post_script=FIT,
            full_html=False,
            validate=False,
        )
        return {"text/html": html}


plotly.io.renderers["site"] = SiteRenderer()
plotly.io.renderers.default = "site"
