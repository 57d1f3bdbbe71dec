"""The site that `make docs` builds of this folder with Sphinx.

Pages are Markdown (MyST). A new page needs one line in a `toctree` of index.md or of the page that
it belongs to. What is generated before the build (the rules, the lab's claims, the options, the
reference of the public names) stands in `_site/generated.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent / "src")]

import generated  # noqa: E402

import trueloop  # noqa: E402

project = "Trueloop"
author = "the authors of Trueloop"
project_copyright = "the authors of Trueloop, Apache 2.0"
version = release = trueloop.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["_build", "_site", "rules/README.md"]
# Outputs are shown as they are printed: JSON after other lines, JSON with "…".
suppress_warnings = ["misc.highlighting_failure"]

# Headings have the anchors that GitHub gives them, so links work in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_links_external_new_tab = False

# Docstrings are Google's, with `code` in single backticks.
default_role = "code"
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False

smartquotes = False
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# No font, script or picture comes from elsewhere: the pages open from a folder without a network.
html_theme = "furo"
html_title = "Trueloop"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = (
    False  # it would load the pages found, which no browser does from a folder
)
html_theme_options: dict[str, Any] = {"navigation_with_keys": True, "top_of_page_buttons": []}


def setup(app: Any) -> None:
    generated.write(HERE)
    app.connect("source-read", generated.links_of_the_site)
    app.connect("html-page-context", generated.accessible, priority=900)
