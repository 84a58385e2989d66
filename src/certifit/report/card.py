"""The model card: the report's main facts as Markdown, for the page of a repository or a model hub.

Names come from data files, so every character that Markdown or HTML gives a meaning is escaped.
"""

import re
from typing import Any

from certifit.report import class_tables, tables, text
from certifit.report.holds import holds_words, privacy_words
from certifit.report.page import environment

# What Markdown (GitHub's too: tables, strike-through, mathematics, mentions) may read as markup.
MARKUP = re.compile(r"([\\`*_\[\]|~#$@])")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
MOST_ROWS = 40


def escaped(words: object, limit: int | None = None) -> str:
    """Text that stands in a line or a cell as it is.

    >>> escaped("a|b <i> `x` http://y")
    'a\\\\|b &lt;i&gt; \\\\`x\\\\` http&#58;//y'
    """
    shown = MARKUP.sub(r"\\\1", text.visible(words, limit))
    shown = "".join(ENTITIES.get(letter, letter) for letter in shown)
    # Addresses would become links; a mark of a list or a heading only counts where a line begins.
    shown = shown.replace("://", "&#58;//").replace("www.", "www&#46;")
    return re.sub(r"^([-+=]|\d+[.)])", lambda found: f"{found[1][:-1]}\\{found[1][-1]}", shown)


def code(lines: list[str]) -> str:
    """A block of code in a fence longer than any that it holds."""
    body = "\n".join(text.visible(line) for line in lines)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{body}\n{fence}"


def card(context: dict[str, Any]) -> str:
    """Markdown of a context made by `context.build`."""
    made = environment(is_html=False)
    made.filters.update(escaped=escaped, code=code)
    table = context["coefficients"]
    rows = [] if table is None else [row for row in table["rows"] if row["estimate"] != 0]
    rows = rows if len(rows) <= MOST_ROWS else tables.ranked(table, rows)[:MOST_ROWS]
    return made.get_template("card.md").render(
        **context,
        level=tables.interval_level(context),
        share=None if context["validation"] is None else context["validation"]["share"],
        privacy=privacy_words(context),
        holds_words=holds_words(context),
        task="regression" if context["classes"] is None else "classification",
        shown=tables.coefficient_rows(rows),
        class_leaders=class_tables.leader_rows(context),
        class_rows=class_tables.class_rows(context)[:MOST_ROWS],
        lists=class_tables.deciding_lists(context),
        grid=class_tables.deciding_grid(context)[:MOST_ROWS],
        grid_labels=class_tables.grid_labels(context),
        weighed=class_tables.weighed(context),
        leaders=tables.validation_rows(context),
        influential=tables.influence_rows(context),
    )
