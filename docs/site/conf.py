"""Sphinx settings of the site. `python docs/site/build.py` lays the pages out and runs it."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

project = "certifit"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "certifit"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse to pages of a folder
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
pygments_style = "friendly"
nitpicky = True

# MathML needs no script and no font from elsewhere.
_DISPLAY = {True: "block", False: "inline"}


def _formula(is_block: bool) -> Any:
    def visit(translator: Any, node: Any) -> None:
        text = convert(node.astext(), display=_DISPLAY[is_block])
        text = re.sub(r' xmlns="[^"]*"', "", text)
        translator.body.append(f'<div class="formula">{text}</div>' if is_block else text)
        from docutils.nodes import SkipNode

        raise SkipNode

    return visit


def setup(app: Any) -> None:
    """Formulas are MathML."""
    app.add_html_math_renderer("mathml", (_formula(False), None), (_formula(True), None))
