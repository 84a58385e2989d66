"""--help of commands with many options: in groups, the ones that everybody needs first."""

from __future__ import annotations

import click

# Title -> parameters in order. What is named in no group is of one model or another.
GROUPS: dict[str, tuple[str, ...]] = {
    "What is fitted": (
        "target", "out", "goal", "positive", "kind", "columns", "weight", "exposure", "offset", "degree",
    ),
    "How good it is on new rows": (
        "cv", "rule", "nested", "holdout", "group", "copies", "direction", "wanted", "fixed",
    ),
    "How columns are read": (
        "categories", "reference", "unseen", "max_levels", "min_count", "texts", "ngrams", "min_word_count",
    ),
    "How files are read": ("types", "na", "no_header", "delimiter", "encoding", "bad_rows", "sheet"),
    "What is printed": ("show_values", "quiet", "help"),
}  # fmt: skip
OF_MODELS = "Parameters of models"


class GroupedHelp(click.Command):
    """A command whose options are listed in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """All options, each once."""
        records = {
            param.name or "": record
            for param in self.get_params(ctx)
            if (record := param.get_help_record(ctx)) is not None
        }
        grouped = {title: [records.pop(name) for name in names if name in records] for title, names in GROUPS.items()}
        printed = grouped.pop("What is printed")
        for title, rows in {**grouped, OF_MODELS: list(records.values()), "What is printed": printed}.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
