"""The site: the Markdown of docs/, CONTRIBUTING and CHANGELOG as pages. `make docs` builds it into build/site.

The source folder is the repository itself, so that a link is the same on the site and on a forge.
"""

from __future__ import annotations

import re
from typing import Any

from foretest._version import __version__

project = "Foretest"
author = "the Foretest contributors"
copyright = "the Foretest contributors, Apache License 2.0"
version = release = __version__

root_doc = "docs/index"
include_patterns = ["docs/**", "examples/**/*.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
exclude_patterns = [".*", "build", "dist", "src", "tests", "benchmarks", "docs/_site", "**/__pycache__"]
extensions = ["myst_parser", "sphinx_copybutton"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the changelog's headings repeat

nitpicky = True
pygments_style = "default"
highlight_language = "none"
smartquotes = False

# a command is copied without its prompt, and without what it prints; so is an example with >>>
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "Foretest"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["root"]
html_copy_source = False
html_show_sourcelink = False
html_favicon = "static/icon.svg"
html_sidebars = {page: [] for page in ("docs/index", "CONTRIBUTING", "CHANGELOG", "SECURITY", "search")}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "Foretest", "image_light": "_static/icon.svg", "image_dark": "_static/icon.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
    "show_prev_next": True,
}


def add_contents(app: Any, name: str, source: list[str]) -> None:
    """The pages that an index page links to are those below it, in the same order; of those that the landing page links
    to, the parts and the pages about the project."""
    if name.rpartition("/")[2] == "index":
        pages = dict.fromkeys(re.findall(r"\]\(([^):#\s]+)\.md\)", source[0]))
        pages = {page: None for page in pages if name != root_doc or page.endswith("/index") or page.startswith("../")}
        source[0] += "\n".join(["", ":::{toctree}", ":hidden:", *pages, ":::", ""])
    elif name.startswith("examples/"):  # read from the pages that link to them
        source[0] = f"---\norphan: true\n---\n\n{source[0]}"


def setup(app: Any) -> None:
    app.connect("source-read", add_contents)
