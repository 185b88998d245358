"""Sphinx: pages in Markdown (MyST), the API from the docstrings, and the page of commands made by the build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import shoal  # noqa: E402

project = "shoal"
author = copyright = "The shoal developers"
version = release = shoal.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "notebooks", "_static"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what each argument is
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    "inherited-members": "BaseEstimator, object, tuple, str, dict, Exception, ValueError",
}
napoleon_numpy_docstring, napoleon_google_docstring = True, False
napoleon_use_ivar, napoleon_use_param = True, False
suppress_warnings = ["ref.python"]  # "shape" in the type of an argument is no reference to some class's field
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True

html_theme = "pydata_sphinx_theme"
html_title = "shoal"
html_static_path = ["_static", "_pictures"]
html_css_files = ["shoal.css"]
html_show_sourcelink = False
html_sidebars = {page.stem: [] for page in HERE.glob("*.md")}  # pages without pages below them
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def setup(app: Any) -> None:
    """Make what is generated before Sphinx looks for pages."""
    import api_docstrings
    import commands_page
    import pictures

    app.connect("autodoc-skip-member", api_docstrings.without_sklearn)
    app.connect("autodoc-process-docstring", api_docstrings.quote_learned, priority=600)  # after napoleon
    pictures.make_missing(HERE / "_pictures")
    commands_page.write(HERE / "commands.md")
