"""Settings of the documentation site, which tools/site.py builds with Sphinx."""

import tomllib
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

project = "swarmtest"
with (Path(__file__).parents[1] / "pyproject.toml").open("rb") as file:
    release = version = tomllib.load(file)["project"]["version"]
root_doc = "index"
extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"swarmtest {version}"
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
highlight_language = "text"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

lexers["lark"] = TextLexer()  # Pygments has none
