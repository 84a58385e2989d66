"""The sections of a report, in the order of reading. A new one is a row here and a file in templates/sections.

A section is shown where its key of the context holds something: a model that has no path has no section on it.

The pictures of a report, one row per picture: where it stands, what draws it, what it shows in plain words.

A drawing function takes the context and returns SVG text, or "" where the context has nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import unescape

from certifit.report import text
from certifit.report.answer import question_facts
from certifit.report.classes import class_facts, validation_table
from certifit.report.coefficients import coefficient_facts, path_facts
from certifit.report.convergence import draw_gaps, draw_learning, learning_facts
from certifit.report.facts import Fit
from certifit.report.influence import draw_influence, influence_facts, outlier_facts
from certifit.report.lift import draw_lift
from certifit.report.model import certificate_facts, data_facts, history_facts, usage
from certifit.report.pictures.classes import draw_calibration, draw_matrix, draw_precision, draw_roc
from certifit.report.pictures.coefficients import draw_effects, draw_penalty
from certifit.report.pictures.validation import (
    MOST_COLUMNS,
    draw_leaders,
    draw_names,
    draw_path,
    draw_validation,
    draw_variance,
)
from certifit.report.quality import (
    deviance_facts,
    draw_curve,
    draw_fit,
    draw_histogram,
    draw_quantiles,
    draw_residuals,
    quality_facts,
)
from certifit.report.shuffled import draw_shuffled, shuffled_facts
from certifit.report.similarity import draw_gram, similarity_facts
from certifit.report.splits import draw_rounds, draw_shares, draw_tree, split_facts
from certifit.report.text import Table
from certifit.report.what_decides import deciding_facts, draw_deciding, largest_classes
from certifit.report.widths import draw_widths, width_facts


@dataclass(frozen=True)
class Section:
    """name: id on the page and file of the template; key: of the context, made by `build` or `tell`."""

    name: str
    key: str
    title: str | Callable[[Table], str]
    short: str | Callable[[Table], str]
    build: Callable[[Fit], Table | None] | None = None  # from the fit
    tell: Callable[[Table], Table] | None = None  # from the facts of all sections

    def shown(self, context: Table) -> Table:
        """What the page needs to know of it."""
        said = {"title": self.title, "short": self.short}
        words = {key: one if isinstance(one, str) else one(context) for key, one in said.items()}
        return {"name": self.name, "key": self.key} | words


def _proof(context: Table) -> str:
    goal = context["certificate"]["goal"]
    return f"{goal['question']} The {'certificate' if goal['is_derived'] else 'proof'}"


def _converged(context: Table) -> str:
    return str(context["certificate"]["goal"]["question"])


def _coefficients(context: Table) -> str:
    return "Coefficients and p-values" if context["coefficients"]["has_inference"] else "Coefficients"


SECTIONS = (
    Section("validation", "validation", "How well does it predict new rows?", "New rows", validation_table),
    Section("questions", "questions", "Three questions", "Three questions", tell=question_facts),
    Section("classes", "classes", "Which classes does it confuse?", "Classes", class_facts),
    Section("probabilities", "classes", "How good are its probabilities?", "Probabilities"),
    Section("deciding", "deciding", "What decides?", "What decides", deciding_facts),
    Section("splits", "splits", "What does it split on?", "Splits", split_facts),
    Section("shuffled", "shuffled", "What does it lean on?", "Importance", shuffled_facts),
    Section("data", "data", "Data", "Data", data_facts),
    Section("warnings", "notices", "Warnings", "Warnings"),
    Section("coefficients", "coefficients", _coefficients, "Coefficients", coefficient_facts),
    Section("path", "path", "What does the penalty do?", "Penalty", path_facts),
    Section("fit", "quality", "How good is the fit?", "Fit", quality_facts),
    Section("fit", "deviance", "How good is the fit?", "Fit", deviance_facts),
    Section("residuals", "quality", "Residuals", "Residuals"),
    Section("influence", "influence", "Which rows influence it most?", "Influence", influence_facts),
    Section("outliers", "outliers", "Which rows are held back?", "Outliers", outlier_facts),
    Section("similarity", "similarity", "How alike are rows to the kernel?", "Kernel", similarity_facts),
    Section("learning", "learning", "How did it learn?", "Learning", learning_facts),
    Section("widths", "widths", "How wide is its view?", "Width", width_facts),
    Section("proof", "certificate", _proof, _converged, certificate_facts),
    Section("steps", "history", "How did it get there?", "Steps", history_facts),
    Section("use", "usage", "Use the model", "Use the model", tell=usage),
    Section("words", "certificate", "Definitions", "Definitions"),
)


def shown(context: Table) -> list[Table]:
    """The sections that this fit has."""
    return [section.shown(context) for section in SECTIONS if context[section.key]]


FOLDER = "pictures"


@dataclass(frozen=True)
class Picture:
    """draw: from the context to SVG text; caption: words, or a function from the context to words."""

    name: str
    section: str
    draw: Callable[[Table], str]
    title: str | Callable[[Table], str]
    caption: str | Callable[[Table], str]

    @property
    def file(self) -> str:
        """Its name beside the report."""
        return f"{FOLDER}/{self.name}.svg"

    def words(self, context: Table) -> Table:
        """Title and caption."""
        said = {"title": self.title, "caption": self.caption}
        return {key: one if isinstance(one, str) else one(context) for key, one in said.items()}


def _selection(context: Table) -> str:
    more = ", the first 26" if len(context["selection"]["steps"]) > MOST_COLUMNS else ""
    return f"From top to bottom, the column that comes in and the error with it{more}."


def _compared(context: Table) -> str:
    base = next((row for row in context["validation"]["rows"] if row["is_baseline"]), None)
    far = "" if base is None else f" The baseline, {base['name']} alone: {text.amount(base['error'], 3)}."
    return f"Dots are errors on rows that no model saw, lines one standard error; the ring is the model used here.{far}"


def _validation(context: Table) -> str:
    curve = context["validation"]["curve"]
    weaker = f"Too little {curve['label'].removesuffix(' alpha')} fits noise, too much flattens everything."
    reading = _READINGS.get(curve["parameter"], weaker)
    return f"Of {text.visible(curve['model'], 40)}. {reading} The ring is the choice."


# parameter that makes a model more flexible -> how its curve is read
_READINGS = {
    "n_estimators": "Too few rounds miss what is there, too many fit noise.",
    "max_depth": "A tree too shallow misses what is there, one too deep fits noise.",
}


def _against(context: Table) -> str:
    return f"Error against the {context['validation']['curve']['label']}."


def _matrix(context: Table) -> str:
    left_out = context["classes"]["matrix"]["n_left_out"]
    more = f" {text.plural(left_out, 'smaller class', 'smaller classes')} not drawn." if left_out else ""
    words = "Each row is a class; the stronger the colour of a cell, the larger its share of the row."
    return f"{words} The framed diagonal is right.{more}"


def _calibration(context: Table) -> str:
    classes = context["classes"]
    whiskers = any(one["low"] is not None for one in classes["calibration"]["bins"])
    interval = f" Whiskers: {text.number(100 * classes['level'])} % intervals." if whiskers else ""
    tenth = "a tenth of the scale" if classes["calibration"]["is_even"] else "a tenth of the rows"
    return f"On the line, what is given 70 % happens in 70 of 100 rows. Each dot is {tenth}.{interval}"


def _roc(context: Table) -> str:
    curves = context["classes"]["curves"]
    if len(curves) > 1:
        return f"{_each(context)}, with its area. The nearer to the upper left corner, the better."
    return "The nearer to the upper left corner, the better; on the dotted line it guesses."


def _precision(context: Table) -> str:
    curves = context["classes"]["curves"]
    if len(curves) > 1:
        return f"{_each(context)}, with its average. The nearer to the upper right corner, the better."
    return "The nearer to the upper right corner, the better; the dotted line is guessing."


def _each(context: Table) -> str:
    n_drawn, n_classes = len(context["classes"]["curves"]), context["classes"]["n_classes"]
    which = "Each class" if n_drawn == n_classes else f"Each of the {n_drawn} largest classes"
    return f"{which} against the rest"


def _deciding(context: Table) -> str:
    deciding_facts, positive = context["deciding"], context["classes"]["positive"]
    if deciding_facts["what"] == "spreads" or positive is None:
        n_drawn = len(largest_classes(deciding_facts, context["classes"]))
        which = "every class" if n_drawn == len(deciding_facts["labels"]) else f"the {n_drawn} largest classes"
        return f"Mean (dot) and standard deviation (line) of {which}. The further apart, the more a column tells."
    label, other = (text.visible(deciding_facts["labels"][k], 30) for k in (positive, 1 - positive))
    return f"To the right speaks for {label}, to the left for {other}; 0.69 doubles the odds, 2.3 is ten times."


def _tree(context: Table) -> str:
    last = "its classes" if context["classes"] is not None else "where its mean lies between the least and the largest"
    return (
        "Each line is a node: what its rows have in common (thresholds to three digits), its answer, its share of the "
        f"weight, and {last}."
    )


def _shares(context: Table) -> str:
    rows, other = context["splits"]["columns"], context["splits"]["n_other"]
    more = f" {text.plural(other, 'smaller column')} not drawn." if other else ""
    whiskers = " Whiskers: 95 % intervals of the mean over the trees." if rows[0]["low"] is not None else ""
    return f"The share of all that splits take from impurity or loss, on the rows of the fit.{whiskers}{more}"


def _shuffled(context: Table) -> str:
    facts = context["shuffled"]
    more = f" {text.plural(facts['n_other'], 'smaller column')} not drawn." if facts["n_other"] else ""
    rows = text.plural(facts["n_rows"], "row")
    return f"The values of one column are shuffled among {rows} of the fit, the others stay.{more}"


def _rounds(context: Table) -> str:
    lines = context["splits"]["rounds"]
    if "bound on it" in lines:
        return "The share of wrong rows of the fit stays under its proven bound."
    if "loss on rows held out" in lines:
        return "Where the loss on the rows held out rises, further rounds fit noise."
    return "On the rows of the fit it falls with every round; new rows decide how many are worth having."


def _learning(context: Table) -> str:
    if "loss on rows held out" in context["learning"]["lines"]:
        return "Where the loss on the rows held out rises, further epochs fit noise."
    return "The mean of the losses as the rows were met, and the penalty."


def _variance(context: Table) -> str:
    n_draws = context["validation"]["decomposition"]["n_draws"]
    return (
        "Variance is how much predictions change with the rows drawn; bias and noise cannot be told apart. "
        f"{n_draws} draws."
    )


def _penalty(context: Table) -> str:
    other = context["path"]["n_other"]
    more = f" {text.plural(other, 'smaller line')} not drawn." if other else ""
    return (
        "From left to right the penalty gets weaker and columns come in; the numbers above count those with a "
        f"coefficient. The dashed line is the alpha of this fit.{more}"
    )


def _lift(context: Table) -> str:
    lift = context["deviance"]["lift"]
    groups = (
        f"Rows by their predicted {'rate' if lift['is_rate'] else 'mean'}, in {len(lift['groups'])} groups of equal"
    )
    what = "exposure" if lift["is_rate"] else "size"
    return f"{groups} {what}. On the line, what is predicted is what happened. Whiskers: 95 % intervals."


def _against_observed(context: Table) -> str:
    return f"Observed against predicted, {_whose_rows(context['deviance']['lift']['is_new'])}."


def _against_actual(context: Table) -> str:
    return f"Predicted against actual, {_whose_rows(context['pictures']['fit']['is_new'])}."


def _whose_rows(is_new: bool) -> str:
    return "new rows: each predicted by the folds without it" if is_new else "rows of the fit"


def _effects(context: Table) -> str:
    table = context["coefficients"]
    interval = f", with its {text.number(100 * table['level'])} % interval" if table["has_inference"] else ""
    groups = " Joined rings: a category, whose levels move it by about that much either way." if table["groups"] else ""
    what = "prediction" if table["ratio"] is None else "logarithm of the prediction"
    words = f"The change of the {what} when a column rises by one standard deviation and the others stay"
    groups += "" if table["ratio"] is None else " 0.1 is about a tenth more; 0.69 doubles it."
    return f"{words}{interval}.{groups}"


def _outside(key: str, words: str) -> Callable[[Table], str]:
    def caption(context: Table) -> str:
        outside = context["pictures"][key]["outside"]
        return words + (f" {text.plural(outside, 'row')} far out not drawn." if outside else "")

    return caption


PICTURES = (
    Picture("leaders", "validation", draw_leaders, "Every model that was compared.", _compared),
    Picture("path", "validation", draw_path, "Error against the number of columns.",
            "The ring is the choice; the band is one standard error."),
    Picture("names", "validation", draw_names, "Columns along the path.", _selection),
    Picture("validation", "validation", draw_validation, _against, _validation),
    Picture("variance", "validation", draw_variance, "Bias and variance.", _variance),
    Picture("matrix", "classes", draw_matrix, "Confusion matrix.", _matrix),
    Picture("calibration", "probabilities", draw_calibration, "Calibration.", _calibration),
    Picture("roc", "probabilities", draw_roc, "ROC curve.", _roc),
    Picture("precision", "probabilities", draw_precision, "Precision and recall.", _precision),
    Picture("deciding", "deciding", draw_deciding, "What decides.", _deciding),
    Picture("tree", "splits", draw_tree, "The tree.",
            _tree),
    Picture("shares", "splits", draw_shares, "Importance: what each column gains.", _shares),
    Picture("rounds", "splits", draw_rounds, "Round by round.", _rounds),
    Picture("shuffled", "shuffled", draw_shuffled, "Importance by shuffling: how far predictions move.", _shuffled),
    Picture("penalty", "path", draw_penalty, "Coefficients against the penalty alpha.", _penalty),
    Picture("curve", "fit", draw_curve, "The fit.",
            "Dots are rows, counted on a grid; the line is the prediction."),
    Picture("fit", "fit", draw_fit, _against_actual,
            _outside("fit", "The closer to the line, the better.")),
    Picture("lift", "fit", draw_lift, _against_observed, _lift),
    Picture("effects", "fit", draw_effects, "How much each column moves the prediction.", _effects),
    Picture("residuals", "residuals", draw_residuals, "Against predictions.",
            _outside("spread", "A sound fit is a flat band of equal width round zero.")),
    Picture("histogram", "residuals", draw_histogram, "Histogram.", "Bars that follow the curve are normal."),
    Picture("quantiles", "residuals", draw_quantiles, "Normal quantiles.",
            "Ends that leave the line are heavy tails: more extreme errors than normal noise has."),
    Picture("influence", "influence", draw_influence, "Leverage and residual of every row.",
            "Far right: unusual in its columns. Far up or down: unusual in the target. Both: it moves the fit. The "
            "numbered rows have the largest Cook's distance."),
    Picture("gram", "similarity", draw_gram, "The kernel between rows.",
            "Darker is more alike. A sharp diagonal: only near rows share what is learned; one shade: the width is too "
            "large. Each cell is the mean over two groups of 5 rows or more."),
    Picture("learning", "learning", draw_learning, "Epoch by epoch.", _learning),
    Picture("widths", "widths", draw_widths, "Error against the width tau.",
            "By leave-one-out. Too narrow a width fits noise, too wide a one flattens everything. The ring is the "
            "choice."),
    Picture("gaps", "steps", draw_gaps, "Excess over the best, step by step.",
            "By the solver's own reckoning; the proof above does not rely on it."),
)  # fmt: skip


def drawings(context: Table) -> dict[str, str]:
    """SVG text of every picture that this context has, by name."""
    drawn = {picture.name: picture.draw(context) for picture in PICTURES}
    return {name: drawing for name, drawing in drawn.items() if drawing}


def figures(context: Table) -> list[Table]:
    """Title, caption and file of every picture that this context has."""
    drawn: Mapping[str, str] = drawings(context)
    return [
        {
            "name": picture.name,
            "section": picture.section,
            "description": _description(drawn[picture.name]),
            "file": picture.file,
        }
        | picture.words(context)
        for picture in PICTURES
        if picture.name in drawn
    ]


def _description(drawing: str) -> str:
    match = re.search(r"<desc[^>]*>(.*?)</desc>", drawing, re.DOTALL)
    return "" if match is None else unescape(match[1])
