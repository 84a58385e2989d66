"""What the files of a fit hold of the data: the printed ones little, the model file what a prediction needs."""

from typing import Any

from certifit.report import text
from certifit.report.facts import Fit, Table


def held_values(fit: Fit) -> list[str]:
    """What the model file holds in the way of data values, in words."""
    encoder, basis = fit.model.encoder_, fit.model.basis_
    kinds = [] if encoder is None else list(encoder.columns_)
    levels = [kind for kind in kinds if kind.kind == "level"]
    texts = [kind for kind in kinds if kind.kind == "text"]
    filled = [kind.name for kind in kinds if kind.kind in ("number", "date") and kind.takes_gaps]
    found = []
    if levels:
        n_levels = sum(len(kind.levels) for kind in levels)
        found.append(f"{text.plural(n_levels, 'level')} of {_columns([kind.name for kind in levels])}")
    if texts:
        n_words = sum(len(kind.own_names) for kind in texts)
        found.append(f"{text.plural(n_words, 'word')} of {_columns([kind.name for kind in texts])}")
    if filled:
        found.append(f"the means that fill gaps of {_columns(filled)}")
    if basis is not None:
        found.append("the smallest and largest value of each column of the polynomial")
    if fit.by_class is not None:
        found.append(f"the labels of {text.count(len(fit.by_class.classes))} classes")
    return [*found, *fit.words.stores]


def _columns(names: list[str]) -> str:
    return f"{text.plural(len(names), 'column')} ({text.joined(names, 5)})"


def holds_words(context: Table) -> str:
    """The model file in a sentence."""
    model, found = context["files"]["model"], context["model"]["holds"]
    listed = "; ".join(found) if found else "no cell value"
    return (
        f"{text.visible(model, 60)} holds no row. Beside coefficients and sums over the rows it holds what predictions "
        f"need: {listed}. Whoever has the file can read that."
    )


def privacy_words(context: dict[str, Any]) -> str:
    """What the printed files show of single rows."""
    data = context["data"]
    if data["shows_values"]:
        return (
            "No row is stored here, but this was made with --show-values: levels, words, labels and the ends of ranges "
            "may be those of a single row."
        )
    return (
        f"No row is stored here, and no cell value that fewer than {data['fewest']} rows hold: rare levels, words and "
        "labels are counted, not named, ranges are quantiles, pictures of rows are counts on a grid, rows are named "
        "by number."
    )
