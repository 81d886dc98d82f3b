"""Sphinx configuration of the site; `make docs` builds it with warnings as errors."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1] / "scheduler"))

project = "Stowage"
author = "The Stowage authors"
version = release = version_of("stowage")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = f"Stowage {version}"
html_copy_source = False

# Pages are Markdown that GitHub shows as well: Mermaid stands in ordinary fences.
source_suffix = {".md": "markdown"}
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4

# Docstrings put names between single backticks.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False


def setup(app: Sphinx) -> None:
    """Have docstrings of attributes read as they are written."""
    app.connect("autodoc-process-docstring", _without_type, priority=400)


def _without_type(*arguments: Any) -> None:
    """Say that no type is given; else Napoleon takes what stands before a colon for the type."""
    _app, what, _name, _obj, _options, lines = arguments
    if what in ("attribute", "data", "property") and lines and ":" in lines[0]:
        lines[0] = f": {lines[0]}"
