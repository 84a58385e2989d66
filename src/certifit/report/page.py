"""The report as one HTML file: no script, no network, everything escaped."""

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from certifit.report import class_tables, tables, text
from certifit.report.gallery import drawings
from certifit.report.holds import holds_words, privacy_words
from certifit.report.style import TEMPLATES, page_style
from certifit.report.tiles import tiles

# Sentences of a check that are shown at once; columns of a table of the data that is not folded.
MOST_SENTENCES, FEW_COLUMNS = 4, 12
FILTERS = ("count", "number", "share", "power", "plural", "joined", "p_value", "percent", "measured", "visible")


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
    made.filters.update({name: getattr(text, name) for name in FILTERS})
    return made


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
            objective=context["model"]["objective"].partition(": ")[2],
            level=tables.interval_level(context),
            has_digits=table is not None and any(row["digits"] is not None for row in table["rows"]),
            has_robust=table is not None and table["robust"] is not None and table["robust"]["holds"],
            tiles=tiles(context),
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
            class_leaders=class_tables.leader_rows(context),
            class_rows=class_tables.class_rows(context),
            cuts=class_tables.cut_rows(context),
            lists=class_tables.deciding_lists(context),
            grid=class_tables.deciding_grid(context),
            grid_labels=class_tables.grid_labels(context),
            weighed=class_tables.weighed(context),
            most_rows=tables.MOST_ROWS,
            most_sentences=MOST_SENTENCES,
            few_columns=FEW_COLUMNS,
        )
    )
