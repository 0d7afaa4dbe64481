"""Sphinx configuration; ``make docs`` builds the site from a copy of this folder and of the example notebooks."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parent))

import dpnb

project, author, copyright = "dpnb", "The dpnb founders", "The dpnb founders"
version = release = dpnb.__version__

extensions = [
    "_reference",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
exclude_patterns = ["_templates", "README.md"]  # which says how pages are written
smartquotes = False  # prose quotes code
templates_path = ["_templates"]

# --- pages and notebooks ---------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_excludepatterns = os.environ.get("DPNB_DOCS_NOT_RUN", "").split()
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_output_stderr = "warn"  # the code on the site runs without warnings

html_math_renderer = "mathml"  # drawn by the browser, so that formulas need no script from the network

# --- reference -------------------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings state the types
autodoc_use_type_comments = False  # there are none; looking for them parses every source again
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the templates list the members
suppress_warnings = ["ref.citation"]  # a docstring with references is also on a page of proofs
default_role = "py:obj"  # in docstrings; names that are not public stay without a link

# --- theme -----------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "dpnb"
html_static_path = ["_static"]
html_css_files = ["outputs.css"]
html_show_sourcelink = False
html_sidebars = {"tutorials/[0-9]*": [], "comparison": []}  # long lines of code, and a wide table
html_theme_options = {
    "github_url": "https://github.com/dpnb/dpnb",
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_toc_level": 2,
}
copybutton_prompt_text = "$ "


def _inline_math(translator: Any, node: Any) -> None:
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def _displayed_math(translator: Any, node: Any) -> None:
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div style="margin: 1rem 0; overflow-x: auto">{formula}</div>')
    raise SkipNode


def setup(app: Any) -> None:
    """Draw formulas as MathML; search for garbage seldom, since what a build makes stays until its end."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    app.add_html_math_renderer("mathml", (_inline_math, None), (_displayed_math, None))
