"""The report as one HTML file: no script, no network, everything escaped."""

import re
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from certifit.report import tables, text
from certifit.report.answer import tiles
from certifit.report.first_screen import picture_of, questions
from certifit.report.formula import mathml, with_formulas
from certifit.report.model import holds_words, privacy_words
from certifit.report.sections import drawings
from certifit.report.svg import TEMPLATES, page_style

# Sentences of a check that are shown at once; columns of a table of the data that is not folded.
MOST_SENTENCES, FEW_COLUMNS = 4, 12
FILTERS = (
    "count",
    "number",
    "share",
    "power",
    "plural",
    "joined",
    "p_value",
    "percent",
    "less_than",
    "measured",
    "visible",
)


@cache  # a process compiles its templates once
def environment(is_html: bool) -> Environment:
    """Templates with the filters that make names and numbers safe to show."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=is_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update({name: getattr(text, name) for name in FILTERS} | {"options": _unbroken_options})
    return made


def _unbroken_options(words: str) -> Markup:
    """HTML in which no line breaks behind the first hyphens of an option."""
    return Markup(re.sub("--[a-z][a-z-]*", r'<span class="option">\g<0></span>', str(escape(words))))


def render(context: dict[str, Any]) -> str:
    """HTML of a context made by `context.build`."""
    table, quality = context["coefficients"], context["quality"]
    return (
        environment(is_html=True)
        .get_template("page.html")
        .render(
            **context,
            # Both are made by code that escapes every name, so they may enter the page as they are.
            style=Markup(page_style()),
            picture={name: Markup(drawing) for name, drawing in drawings(context).items()},
            objective=mathml(context["model"]["objective"].partition(": ")[2] or context["model"]["objective"]),
            theorem=with_formulas(text.visible(context["certificate"]["theorem"], 600)),
            level=tables.interval_level(context),
            has_digits=table is not None and any(row["digits"] is not None for row in table["rows"]),
            has_steps=tables.has_step_ratios(context),
            collinear=tables.collinear_rows(context),
            has_robust=table is not None and table["robust"] is not None and table["robust"]["holds"],
            tiles=tiles(context),
            first_questions=questions(context),
            first_picture=picture_of(context),
            privacy=privacy_words(context),
            holds_words=holds_words(context),
            share=None if context["validation"] is None else context["validation"]["share"],
            items=tables.coefficient_items(context),
            main_table=tables.main_items(context),
            columns=tables.column_rows(context),
            leaders=tables.validation_rows(context),
            steps=tables.step_rows(context),
            influential=tables.influence_rows(context),
            held_back=tables.outlier_rows(context),
            taken=tables.history_rows(context),
            quartiles=tables.aligned([text.number(value) for value in (quality["quartiles"] if quality else [])]),
            class_leaders=tables.leader_rows(context),
            class_rows=tables.class_rows(context),
            cuts=tables.cut_rows(context),
            lists=tables.deciding_lists(context),
            grid=tables.deciding_grid(context),
            grid_labels=tables.grid_labels(context),
            weighed=tables.weighed(context),
            most_rows=tables.MOST_ROWS,
            most_sentences=MOST_SENTENCES,
            few_columns=FEW_COLUMNS,
        )
    )


# The model card: the report's main facts as Markdown, for the page of a repository or a model hub.
#
# Names come from data files, so every character that Markdown or HTML gives a meaning is escaped.

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
    return re.sub(r"^([-+=]|\d+[.)])", lambda marker: f"{marker[1][:-1]}\\{marker[1][-1]}", shown)


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
        class_leaders=tables.leader_rows(context),
        class_rows=tables.class_rows(context)[:MOST_ROWS],
        lists=tables.deciding_lists(context),
        grid=tables.deciding_grid(context)[:MOST_ROWS],
        grid_labels=tables.grid_labels(context),
        weighed=tables.weighed(context),
        leaders=tables.validation_rows(context),
        has_steps=tables.has_step_ratios(context),
        influential=tables.influence_rows(context),
    )
