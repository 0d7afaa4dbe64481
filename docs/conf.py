"""Sphinx configuration; ``make docs`` builds the site from a copy of this folder and of the example notebooks."""

from __future__ import annotations

import sys
from pathlib import Path

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
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]

# --- pages and notebooks ---------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

# --- reference -------------------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings state the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the templates list the members
default_role = "py:obj"  # in docstrings; names that are not public stay without a link

# --- theme -----------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "dpnb"
html_static_path = ["_static"]
html_show_sourcelink = False
html_sidebars = {"comparison": []}
html_theme_options = {
    "github_url": "https://github.com/dpnb/dpnb",
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_toc_level": 2,
}
copybutton_prompt_text = "$ "
