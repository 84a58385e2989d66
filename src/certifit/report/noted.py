"""Notices that notes on the folds and the target become, by their words in `certifit.report.text`."""

from certifit.report import text
from certifit.report.text import Table

Notice = dict[str, str]


def notice(level: str, title: str, words: str, action: str) -> Notice:
    """level: bad, warn or note."""
    return {"level": level, "title": title, "text": words, "action": action}


def noted(context: Table, words: str) -> str | None:
    """The note on the folds that has these words."""
    notes = [] if context["validation"] is None else context["validation"]["notes"]
    return next((note for note in notes if words in note), None)


def spelt_alike(context: Table) -> Notice | None:
    """Classes whose labels differ only by capitals or spaces."""
    said = noted(context, text.SPELT_ALIKE)
    if said is None:
        return None
    return notice(
        "bad",
        f"One class is spelt in several ways in {text.visible(context['model']['target'], 40)}",
        text.visible(said, 600),
        "Every spelling is predicted as a class of its own, so accuracy and probabilities are too low.",
    )


def class_weighted(context: Table) -> Notice | None:
    """Probabilities of a fit with class weights."""
    said = noted(context, text.CLASSES_WEIGHTED)
    if said is None:
        return None
    words, _, action = said.removeprefix(f"{text.CLASSES_WEIGHTED}: ").partition(". ")
    return notice("note", text.CLASSES_WEIGHTED, f"{words[:1].upper()}{words[1:]}.", action)


def copies(context: Table) -> Notice | None:
    """Rows that stand in training and validation rows alike."""
    said = noted(context, text.COPIES_SEEN)
    if said is None:
        return None
    how_many, _, warning = said.partition(" Warning: with ")
    share, _, words = warning.partition(" copies, ")
    words, _, action = words.partition(". ")
    return notice("note", f"{share} of the rows are copies of others", f"{how_many} {words.capitalize()}.", action)
