"""What a reader must know before using the numbers: worst first, each with what to do."""

from dataclasses import dataclass

from certifit.models.learner import ROWS_KEPT, SUPPORT_KEPT
from certifit.report import text
from certifit.report.checks import FEW_ROWS, suspects, told, too_good
from certifit.report.classes import DIRECTIONS
from certifit.report.collinear import collinear_notice
from certifit.report.first_screen import ends_of_share
from certifit.report.noted import Notice, class_weighted, copies, noted, notice, spelt_alike
from certifit.report.quality import SPREADS_MORE
from certifit.report.text import Table


def find_notices(context: Table) -> list[Notice]:
    """Every check of CHECKS that has something to say."""
    return [found for check in CHECKS if (found := check(context)) is not None]


def _computed(context: Table) -> Notice | None:
    """A target that is made from the columns, or predicted so well that it may be."""
    relation, score = context["relation"], too_good(context)
    target = text.visible(context["model"]["target"], 40)
    held_out = f" On rows it did not see, {score}." if score else ""
    if relation is not None:
        return notice(
            "bad",
            f"{target} is computed from other columns: {relation['formula']}",
            f"All {text.count(relation['n_rows'])} rows obey this relation, to rounding: the model has learnt a sum, "
            f"not how to predict {target}.{held_out}",
            f"If one of these columns is known only when {target} is, leave it out (--drop) and fit again. If all "
            "are known before, no model is needed.",
        )
    if score is None:
        return None
    return notice(
        "bad",
        f"Too good to be true: {score} on rows it did not see",
        "Real targets are hardly ever predicted so well. Nearly always a column, or several together, are made from "
        f"{target} or known only after it, or the same rows come more than once.",
        f"Ask of every column whether it is known before {target}; leave out (--drop) those that are not.",
    )


def _not_certified(context: Table) -> Notice | None:
    certificate, what = context["certificate"], context["model"]["minimised"]
    if certificate["holds"]:
        return None
    if certificate["fault"] is not None:
        return notice(
            "bad",
            "The fit is not proven to be the best",
            f"There is no bound on how far it is from that. {text.visible(certificate['fault'], 600)}",
            certificate["remedy"],
        )
    short = SHORT[certificate["goal"]["better"]]
    excess = short.excess.format(value=text.power(certificate["value"]), unit=certificate["goal"]["unit"])
    return notice(
        "bad",
        f"{short.title}: it is not proven to be the best",
        f"The {what} {excess}, and {text.power(certificate['tolerance'])} was asked for. {short.touched} may be wrong.",
        "Look for columns of very different size or nearly repeated columns, or ask for less (--tol).",
    )


def _separated(context: Table) -> Notice | None:
    """A model without a penalty was passed over, for its likelihood has no maximum."""
    separated = (context["validation"] or {}).get("separated")
    if separated is None:
        return None
    return notice(
        "warn",
        f"Without a penalty there is no best fit: {separated['model']} was passed over",
        text.visible(separated["sentence"], 600),
        "This fit has a penalty, so there is a best one, and its weights are finite. Ask what the columns named have "
        f"to do with {text.visible(context['model']['target'], 40)}: leave out (--drop) one known only after it.",
    )


@dataclass(frozen=True)
class Short:
    """How a fit that falls short is told: its excess, and the numbers that it touches."""

    title: str
    excess: str
    touched: str


# which way is better -> words
SHORT = {
    "smaller": Short(
        "The fit did not converge",
        "may exceed the smallest possible by {value} of its size",
        "Coefficients, p-values and predictions",
    ),
    "larger": Short(
        "The fit stopped short", "may be {value} {unit} below the largest possible", "Probabilities and predictions"
    ),
}


def _no_better(context: Table) -> Notice | None:
    """A model that may do no better on new rows than the baseline."""
    validation, classes = context["validation"], context["classes"]
    if classes is not None:
        auc = classes["metrics"]["auc"]
        if not classes["is_new"] or auc["low"] is None or auc["low"] > 0.5:
            return None
        is_sure, than = auc["value"] <= 0.5, "guessing"
        words = f"The AUC on rows it did not see is {text.number(auc['low'], 3)} to {text.number(auc['high'], 3)}"
    else:
        rows = [] if validation is None else validation["rows"]
        base = next((row for row in rows if row["is_baseline"]), None)
        if base is None or validation["holdout"] is not None:
            return None
        chosen, ends = next(row for row in rows if row["is_chosen"]), ends_of_share(validation)
        is_sure, than = chosen["error"] >= base["error"], f"the {base['name']} alone"
        if not (is_sure or (ends is not None and ends[0] <= 0)):
            return None
        shown = [] if ends is None else [text.hundredths(end).replace("-", "−") for end in ends]
        between = f", {' to '.join(shown)} % explained" if shown else ""
        words = f"The {validation['measure']} on rows it did not see is {text.amount(chosen['error'])}{between}"
        words += f", that of {than} {text.amount(base['error'])}"
    return notice(
        "warn",
        f"It {'is' if is_sure else 'may be'} no better than {than}",
        f"{words}.",
        "Do not rely on its predictions: more rows, or columns that tell more, are needed.",
    )


def _knows_the_answer(context: Table) -> Notice | None:
    suspected = suspects(context)
    if not suspected:
        return None
    shares = [f"{text.visible(column['name'], 40)} {text.percent(column['alone'])}" for column in suspected[:5]]
    return notice(
        "warn",
        f"Suspect: {text.joined([column['name'] for column in suspected], 5)} may know the answer",
        f"Alone, of the {told(context)}: {', '.join(shares)}. Such a column is often made from the target, or "
        "known only after it.",
        "Is it known when a prediction is needed? If not, the fit is worth nothing: leave it out (--drop).",
    )


def _one_column(context: Table) -> Notice | None:
    """One of several columns that tells far more of the target than any other, and not all."""
    used = [column for column in context["data"]["columns"] if column["kind"] != "set aside"]
    alone = sorted(((column["alone"] or 0, column["name"]) for column in used), reverse=True)
    if len(alone) < _SEVERAL or alone[0][0] < 0.5 or alone[1][0] > alone[0][0] / 4 or suspects(context):
        return None
    (share, name), (second, other) = ((share, text.visible(name, 40)) for share, name in alone[:2])
    return notice(
        "note",
        f"One column tells most: {name}",
        f"Alone, of the {told(context)}: {name} {text.percent(share)}, the next, {other}, {text.percent(second)}.",
        f"Is {name} known when a prediction is needed? If not, leave it out (--drop).",
    )


def _skipped_rows(context: Table) -> Notice | None:
    skipped = context["data"]["skipped"]
    if not skipped:
        return None
    said = [line for line in context["data"]["file_notes"] if "skipped" in line]
    return notice(
        "note",
        f"{text.plural(skipped, 'bad row')} left out",
        " ".join(text.visible(line, 600) for line in said),
        "See that they are not rows of one kind: the fit knows nothing of them.",
    )


def _dependent(context: Table) -> Notice | None:
    certificate = context["certificate"]
    missing = _n_redundant(certificate)
    if missing <= 0 or context["model"]["is_sparse"]:
        return None
    dependent = certificate["dependent"]
    relations = "; ".join(text.visible(relation, 200) for relation in dependent[:10])
    more = len(dependent) - 10
    relations += f"; and {more} more" if more > 0 else ""
    constant = " A constant column repeats the intercept." if any(map(_is_constant, dependent)) else ""
    verb = "repeats" if missing == 1 else "repeat"
    title = f"{text.plural(missing, 'column')} of {text.count(certificate['n_columns'])} {verb} what others say"
    if context["coefficients"] is None:
        done = "They were left out: they say nothing more about the class. Predictions are not affected."
        return notice("note", title, f"{relations}.", done)
    return notice(
        "warn",
        title,
        f"{relations}.{constant}" if relations else "The relation could not be written in small numbers.",
        "Predictions are not affected. The coefficients of these columns are one choice among many (the "
        "smallest). "
        "To read them one by one, leave out one column of each relation.",
    )


def _n_redundant(certificate: Table) -> int:
    """How many columns repeat others; 0 where nothing is known of a rank."""
    return 0 if certificate["rank"] is None else int(certificate["n_columns"] - certificate["rank"])


def _is_constant(relation: str) -> bool:
    """Whether a relation is 'name = number'."""
    try:
        float(relation.rpartition(" = ")[2])
    except ValueError:
        return False
    return True


def _few_digits(context: Table) -> Notice | None:
    if context["coefficients"] is None:
        return None
    # A coefficient that is zero but for rounding has no digits, and needs none.
    least = 1e-9 * (context["data"]["target"]["sd"] or 0)
    rows = [row for row in context["coefficients"]["rows"] if row["digits"] is not None and row["digits"] < 3]
    weak = [row["name"] for row in rows if abs(row["effect"] or row["estimate"]) > least]
    if not weak or _n_redundant(context["certificate"]) > 0:
        return None
    return notice(
        "warn",
        f"{text.plural(len(weak), 'coefficient')} known to fewer than 3 digits",
        f"The rounding of the data alone moves {text.joined(weak)}.",
        "Columns are nearly repeated, or far from zero compared with their spread. "
        "Subtract a typical value from such columns, or leave one out.",
    )


def _after_selection(context: Table) -> Notice | None:
    if context["selection"] is None or not _has_inference(context):
        return None
    return notice(
        "note",
        "The same rows chose the columns",
        "The p-values and intervals take the columns as given from the start. Columns that were chosen because they "
        "fit these rows look surer than they are.",
        "For p-values that can be relied on, fit the chosen columns to rows that took no part in the choice.",
    )


def _end_of_grid(context: Table) -> Notice | None:
    """The best alpha is the first or the last that was tried, so a better one may lie beyond."""
    validation = context["validation"]
    curve = None if validation is None else validation["curve"]
    if curve is None or curve["model"] != validation["chosen"] or curve["best"] != curve["chosen"]:
        return None
    if validation.get("separated") is not None:  # without a penalty there is no fit that weaker ones could come near
        return None
    values = curve["values"]
    ends = {max(values): ("strongest", "stronger"), min(values): ("weakest", "weaker")}
    if values[curve["chosen"]] not in ends or curve["label"] not in GRIDS:
        return None
    word, beyond = ends[values[curve["chosen"]]]
    what, option = GRIDS[curve["label"]]
    weakest = context["model"]["weaker"]
    return notice(
        "note",
        f"The best {what} is the {word} that was tried",
        f"The error on new rows may get smaller with a {beyond} one than alpha = "
        f"{text.number(values[curve['chosen']])}.",
        f"Give it with {option}" + (f", or {weakest}." if weakest and word == "weakest" else "."),
    )


# label of a curve -> what is tried, its option
GRIDS = {"penalty alpha": ("penalty", "--alpha"), "smoothing alpha": ("smoothing", "--smoothing")}


def _unequal_spread(context: Table) -> Notice | None:
    quality = context["quality"]
    if not _has_inference(context) or quality is None or quality["exact"] or quality["spread_ratio"] is None:
        return None
    ratio = quality["spread_ratio"]
    if ratio < 3:
        return None
    return notice(
        "note",
        "Errors are not equally large everywhere",
        f"The middle half of the residuals is {text.number(ratio, 2)} times wider at some "
        "predictions than at others. "
        "Standard errors, p-values and intervals assume equal width.",
        "Use the robust errors beside them. A transformed target (its logarithm, say) often helps.",
    )


def _overdispersed(context: Table) -> Notice | None:
    """Counts that spread more than their family says."""
    deviance = context["deviance"]
    if deviance is None or (deviance["spread"] or 0) <= SPREADS_MORE:
        return None
    spread, robust = deviance["spread"], context["coefficients"]["robust"]
    beside = " The robust errors beside them are not touched." if robust is not None and robust["holds"] else ""
    return notice(
        "warn",
        f"{text.visible(context['model']['target'], 40)} spreads more than its family says ({deviance['family']})",
        f"Pearson's sum is {text.number(spread, 3)} times its degrees of freedom, where about 1 is expected. Standard "
        f"errors that allow for it are {text.number(spread**0.5, 2)} times as large, and p-values larger.{beside}",
        "Predictions are not touched. For standard errors with this spread, load the model and call "
        "summary(dispersion='pearson').",
    )


def _heavy_tails(context: Table) -> Notice | None:
    quality = context["quality"]
    if not _has_inference(context) or quality is None or quality["exact"] or quality["largest"] is None:
        return None
    largest = quality["largest"]
    if largest < 6:
        return None
    return notice(
        "note",
        "A few rows are far from the fit",
        f"The largest residual is {text.number(largest, 2)} times the typical error; normal noise would "
        "hardly pass 5. Prediction intervals are then too narrow for the extremes, and such rows pull the "
        "coefficients.",
        "Look at those rows first: a typing error, another unit, or cases of another kind.",
    )


def _has_inference(context: Table) -> bool:
    return context["coefficients"] is not None and bool(context["coefficients"]["has_inference"])


def _unequal_classes(context: Table) -> Notice | None:
    """A model that always says the most frequent class is right in so many rows."""
    classes, facts = context["data"]["target"]["classes"], context["classes"]
    if classes is None or facts is None:
        return None
    largest = max(classes, key=lambda one: one["share"])
    if largest["share"] < IMBALANCED:
        return None
    label = text.visible(largest["label"], 40)
    return notice(
        "note",
        f"{text.percent(largest['share'])} of the rows are {label}",
        f"Always predicting {label} has that accuracy, so accuracy says little here.",
        "Look at precision and recall of the rare classes, and at the precision-recall curve.",
    )


def _small_classes(context: Table) -> Notice | None:
    classes = context["data"]["target"]["classes"]
    few = [one for one in classes or [] if one["rows"] < FEW_ROWS]
    if not few:
        return None
    names = text.joined([one["label"] for one in few], 5)
    return notice(
        "warn",
        f"{names}: fewer than {FEW_ROWS} rows of {'this class' if len(few) == 1 else 'each class'}",
        "So few rows do not tell what the class looks like, nor how well it is predicted.",
        "Collect more of them, join them with another class, or leave them out.",
    )


def _right_as_often(context: Table) -> Notice | None:
    """Labels that are right no more often than the most frequent class, of a model that ranks rows better."""
    classes = context["classes"]
    if classes is None or not classes["is_new"] or classes["baseline"]["accuracy"] >= IMBALANCED:
        return None
    right, base, auc = classes["metrics"]["accuracy"]["value"], classes["baseline"], classes["metrics"]["auc"]
    if right > base["accuracy"] or auc["low"] is None or auc["low"] <= 0.5 or noted(context, text.CLASSES_WEIGHTED):
        return None
    label = text.visible(base["label"], 20)
    return notice(
        "note",
        f"Its labels are right no more often than always {label}",
        f"Accuracy on rows it did not see is {text.percent(right)}, that of always predicting {label} "
        f"{text.percent(base['accuracy'])}. Its probabilities say more: they rank rows with an AUC of "
        f"{text.number(auc['value'], 3)}.",
        "Use the probabilities, or another threshold than 0.5 (certifit predict --threshold).",
    )


def _never_predicted(context: Table) -> Notice | None:
    classes = context["classes"]
    never = [row for row in (classes["rows"] if classes else []) if row["rows"] > 0 and row["predicted"] == 0]
    if not never:
        return None
    names = text.joined([row["label"] for row in never], 5)
    n_rows, is_one = sum(row["rows"] for row in never), len(never) == 1
    rows = "Its only row: another class was more probable."
    if n_rows != 1:
        whose = "it" if is_one else "them"
        rows = f"{text.count(n_rows)} rows are of {whose}, and another class was more probable for every one."
    its, it = ("its probability", "it") if is_one else ("their probabilities", "them")
    return notice(
        "warn",
        f"Never predicted: {names}",
        rows,
        f"Use {its} with a lower threshold, or look for columns that tell {it} apart.",
    )


def _miscalibrated(context: Table) -> Notice | None:
    """Probabilities that differ from what happens by more than chance gives, and by too much to use them."""
    verdict = None if context["classes"] is None else context["classes"]["calibration"]["verdict"]
    if verdict is None or verdict["level"] != "wrong" or noted(context, text.CLASSES_WEIGHTED):
        return None
    return notice(
        "warn",
        f"Its probabilities are {verdict['words']}",
        f"{verdict['sentence']} {DIRECTIONS[verdict['direction']][1]}",
        "Which class is the most probable is hardly touched. Do not use the probabilities as they are: read off the "
        "calibration curve what they mean.",
    )


# The share of one class that is worth a word.
IMBALANCED = 0.8
_SEVERAL = 5  # columns of which one that tells most is worth a word


def _keeps_rows(context: Table) -> Notice | None:
    """A model whose file has rows of the data."""
    keeps = {ROWS_KEPT: ("its rows", "the rows of the fit"), SUPPORT_KEPT: ("support vectors", "some rows of the fit")}
    title, what = next((words for key, words in keeps.items() if key in context["model"]["holds"]), ("", ""))
    if not title:
        return None
    return notice(
        "note",
        f"The model keeps {title}",
        f"Its predictions are sums over {what}, so the model file holds them.",
        "Share the file as you would share the data.",
    )


def _sum_row(context: Table) -> Notice | None:
    """A row below the others that sums them up."""
    said = [line for line in context["data"]["notes"] if "named as sums are" in line]
    if not said:
        return None
    return notice(
        "bad",
        "A row may be the total of others",
        text.visible(said[0], 400),
        "Such a row pulls the fit to it, and makes errors and R² look other than they are. Remove it, and fit again.",
    )


CHECKS = (
    _sum_row,
    spelt_alike,
    _computed,
    _not_certified,
    _separated,
    _knows_the_answer,
    _no_better,
    _small_classes,
    _never_predicted,
    _right_as_often,
    _miscalibrated,
    class_weighted,
    copies,
    _unequal_classes,
    _skipped_rows,
    _dependent,
    collinear_notice,
    _one_column,
    _few_digits,
    _after_selection,
    _end_of_grid,
    _overdispersed,
    _unequal_spread,
    _heavy_tails,
    _keeps_rows,
)
