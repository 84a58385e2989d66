"""What a reader asks first: how good on new rows, which model and why, can I trust it, what should I worry about.

Figures are those on rows that the model did not see, wherever there are such; digits of the proof come later.
"""

from __future__ import annotations

import re

import numpy as np
from scipy import special

from certifit.models.learner import how_sure
from certifit.report import text
from certifit.report.tables import decimals
from certifit.report.text import Table
from certifit.report.validation import MEASURES
from certifit.selection.compare.leaderboard_table import RMSE

# The picture beside the answers: what matters most, of whatever kind the model is.
PICTURES = ("effects", "deciding", "shares", "tree", "shuffled", "curve")
LOUDEST = ("bad", "warn", "note")


def questions(context: Table) -> list[Table]:
    """question, answer, small: words below it; kind: good, bad, warn or none."""
    parts = (_good, _model, _trust, _worry)
    return [{"kind": ""} | {key: _unbroken(words) for key, words in part(context).items()} for part in parts]


def _unbroken(words: str) -> str:
    """Powers of ten with a hyphen at which no line is broken: 8.859e‑5."""
    return re.sub(r"(\de)-(\d)", "\\1\u2011\\2", words)


def picture_of(context: Table) -> str | None:
    """The name of the picture that says what matters most."""
    drawn = [figure["name"] for figure in context["figures"]]
    return next((name for name in PICTURES if name in drawn), None)


def _good(context: Table) -> Table:
    if context["classes"] is not None:
        return _good_classes(context["classes"])
    validation = context["validation"]
    if validation is None or not validation["rows"]:
        return _good_unseen(context)
    leader = next(row for row in validation["rows"] if row["is_chosen"])
    base = next((row for row in validation["rows"] if row["is_baseline"]), None)
    error, plus_minus = text.measured(leader["error"], leader["standard_error"])
    against = "" if base is None else f"; baseline, {base['name']} alone: {text.amount(base['error'])}"
    if validation["measure"] == MEASURES["accuracy"].words:
        return _good_labels(leader, base, validation["n_splits"])
    measured, folds = f"{validation['measure']} {error} ± {plus_minus}", f"{validation['n_splits']} folds{against}"
    if base is None or leader["r2"] is None:
        return {"question": _ON_NEW_ROWS, "answer": measured[:1].upper() + measured[1:], "small": folds}
    small = f"{measured}, {folds}"
    ends = ends_of_share(validation)
    if validation["share"] == "Explained":
        n = 0 if ends is not None and ends[1] - ends[0] > _WIDE else 1
        between = (
            ""
            if ends is None
            else f" ({text.hundredths(ends[0], n)} to {text.hundredths(ends[1], n)} %)".replace("-", "−")
        )
        what = "deviance" if "deviance" in validation["measure"] else "loss"
        answer = f"{text.hundredths(leader['r2'], n)} % of the {what} explained{between}".replace("-", "−")
        return {"question": _ON_NEW_ROWS, "answer": answer, "small": small}
    answer = text.share(leader["r2"])
    if ends is not None:
        r2, low, high = (_rounded(share, ends[1] - ends[0]) for share in (leader["r2"], *ends))
        answer = f"{r2} ({low} to {high})"
    return {"question": _ON_NEW_ROWS, "answer": f"R² {answer}", "small": small}


_WIDE = 0.1  # an interval of a share that is wider needs no tenth of a per cent


def _rounded(share: float, width: float) -> str:
    """R² with as many decimals as its interval is wide; more when it is nearly 1."""
    n_digits = 2 if width > _WIDE else 3 if width > _WIDE / 10 else 4
    is_usual = -text.FAR <= share < 0.99
    return (f"{share:z.{n_digits}f}" if is_usual else text.share(share)).replace("-", "−")


def _good_labels(leader: Table, base: Table | None, n_splits: int) -> Table:
    """Of a model of classes that has no probabilities."""
    right, plus_minus = (f"{100 * share:.1f}" for share in (1 - leader["error"], leader["standard_error"]))
    always = "" if base is None else f"; baseline, always the most frequent class: {text.percent(1 - base['error'])}"
    answer = f"Accuracy {right} % ± {plus_minus}"
    return {"question": _ON_NEW_ROWS, "answer": answer, "small": f"{n_splits} folds{always}"}


def ends_of_share(validation: Table) -> tuple[float, float] | None:
    """A 95 % interval of the share of the baseline's mean square or mean deviance that is explained on new rows.

    1 - M / B moves by the means over folds of (m_k - (M / B) b_k) / B, m_k and b_k the losses of model and baseline:
    what is hard for both does not widen it. Folds share training rows: the variance of a mean over K folds is
    1/K + 1/(K - 1) times that of one (Nadeau and Bengio, 2003).
    """
    rows, choice = validation["rows"], validation["choice"]
    power = 1 if validation["share"] == "Explained" else 2
    base = next((row for row in rows if row["is_baseline"]), None)
    if base is None or (power == 2 and validation["measure"] != MEASURES[RMSE].words):
        return None
    chosen = next(row for row in rows if row["is_chosen"])
    losses, constant = (np.asarray(row["folds"], float) ** power for row in (chosen, base))
    n_folds, scale = len(losses), constant.mean()
    if chosen["r2"] is None or n_folds < 2 or not scale > 0:
        return None
    apart = losses - losses.mean() / scale * constant
    error = np.std(apart, ddof=1) / scale * np.sqrt(1 / n_folds + 1 / (n_folds - 1))
    half = -special.stdtrit(n_folds - 1, 0.025) * error
    scores = (0.0, 0.0) if choice is None else (choice["corrected"]["value"], choice["winner"])
    worse, better = (abs(score) ** power / scale for score in scores)
    middle = chosen["r2"] - (worse - better)  # corrected for the choice among candidates
    return float(middle - half), float(min(middle + half, 1))


_ON_NEW_ROWS = "How good is it on new rows?"


def _good_classes(classes: Table) -> Table:
    scores, base = classes["metrics"], classes["baseline"]
    question = _ON_NEW_ROWS if classes["is_new"] else "How good is it on its own rows?"
    accuracy = f"accuracy {text.percent(scores['accuracy']['value'])}"
    small = f"{accuracy}; baseline, always {text.visible(base['label'], 20)}: {text.percent(base['accuracy'])}"
    auc = scores["auc"]
    if auc["value"] is None:
        return {"question": question, "answer": text.percent(scores["accuracy"]["value"]), "small": small}
    between = "" if auc["low"] is None else f" ({decimals(auc['low'])} to {decimals(auc['high'])})"
    return {
        "question": question,
        "answer": f"AUC {decimals(auc['value'])}{between}",
        "small": f"{small}; AUC 0.5 is guessing",
    }


def _good_unseen(context: Table) -> Table:
    quality, deviance = context["quality"], context["deviance"]
    unmeasured = {"question": "How good is it?", "answer": "Not measured on new rows", "small": "--cv 10 measures it"}
    if quality is not None and quality["r2"] is not None:
        return unmeasured | {
            "small": f"R² {text.share(quality['r2'])} on the rows of the fit; --cv 10 measures new ones"
        }
    if deviance is not None:
        explained = text.percent(deviance["explained"])
        return unmeasured | {"small": f"{explained} of the deviance explained on the rows of the fit"}
    return unmeasured


_CODES = " on codes"  # behind the name of a model in a leaderboard of the command line
_ON_CODES = "On codes: columns of few whole numbers are read as categories"


def _model(context: Table) -> Table:
    validation, words = context["validation"], str(context["model"]["words"])
    doubt = [] if validation is None else [line for line in validation["notes"] if "--task" in line]
    said = [] if validation is None else [line for line in validation["sentences"] if " was taken" in line]
    n_compared = 0 if validation is None else sum(not row["is_baseline"] for row in validation["rows"])
    if said:
        why = said[0]
    elif n_compared > 1:
        why = f"the smallest error of {n_compared} models on the same folds"
    else:
        why = "the model that was asked for"
    name = "" if not said else said[0].partition(" was taken")[0]
    if name and name.lower() not in words.lower():  # the name in the table of models comes first
        is_said = words.lower() in name.lower()
        words, why = name, why if is_said else f"{words}. {why}"
    answer = words[0].upper() + words[1:]
    if why.partition(" was taken")[0].endswith(_CODES):
        why = f"{why.removesuffix('.')}. {_ON_CODES}"
    rows = f"{text.plural(context['data']['n_rows'], 'row')}, {text.plural(context['model']['n_features'], 'column')}"
    small = " ".join([*doubt, f"{why.removesuffix('.')}. {rows}"])
    return {"question": "Which model, and why?", "answer": answer, "small": small, "kind": "warn" if doubt else ""}


def _trust(context: Table) -> Table:
    certificate = context["certificate"]
    goal = certificate["goal"]
    if not certificate["holds"]:
        return {
            "question": "Can I trust the fit?",
            "answer": "No",
            "small": f"{goal['failed']}: see above",
            "kind": "bad",
        }
    better = f"converged: no {goal['chosen']} do better on these rows, to the accuracy asked"
    small = str(goal["agreed"]) if goal["is_derived"] else better
    return {
        "question": "Can I trust the fit?",
        "answer": f"Yes, {how_sure(goal['is_derived'], certificate['is_local'])}",
        "small": small,
        "kind": "good",
    }


def _worry(context: Table) -> Table:
    question = "What should I worry about?"
    for level in LOUDEST:
        loud = [warning for warning in context["warnings"] if warning["level"] == level]
        if loud:
            more = len(context["warnings"]) - 1
            others = f" {text.plural(more, 'more warning')} below." if more else ""
            small = f"{_after(loud[0]['title'], _first_sentence(loud[0]['text']))}{others}"
            return {
                "question": question,
                "answer": loud[0]["title"],
                "small": small,
                "kind": "" if level == "note" else level,
            }
    return {"question": question, "answer": "Nothing stood out", "small": "the checks are listed under Data"}


def _after(title: str, sentence: str) -> str:
    """The sentence without the title, where it begins with it."""
    if not sentence.startswith(title):  # it may begin with the name of a column
        return sentence
    rest = sentence.removeprefix(title).lstrip(", ")
    return rest[:1].upper() + rest[1:]


def _first_sentence(words: str) -> str:
    end = words.find(". ")
    return words if end < 0 else words[: end + 1]
