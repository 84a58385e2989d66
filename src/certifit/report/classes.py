"""How well classes are told apart, on rows that the models did not see: rates, curves, calibration, and words on them.

Without cross-validation the rows of the fit take their place, and the sentences say so.

Whether predicted probabilities mean what they say: the calibration curve, and one verdict that it gives.

Every place that speaks of it (page, report.json, card, terminal) prints this verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from certifit.data.columns import Array
from certifit.evaluation.metrics.costs import cheapest, mean_cost, threshold
from certifit.evaluation.metrics.intervals import Estimate
from certifit.evaluation.metrics.probabilities import calibration
from certifit.evaluation.metrics.ranking import average_precision_score, precision_recall_curve
from certifit.evaluation.pictures.confusion_and_calibration import drawn_bins
from certifit.evaluation.pictures.roc_and_precision import Line, drawn_precision, drawn_roc
from certifit.models.adapter import answer_of
from certifit.models.learner import Answer
from certifit.report import text
from certifit.report.facts import Fit
from certifit.report.tables import decimals
from certifit.report.text import Table
from certifit.selection.folds.class_validation import ClassValidation, class_training
from certifit.selection.folds.metrics import class_auc, class_roc

N_BINS = 10
# Bins of equally many rows say little where nearly all probabilities are next to 0 or 1; then bins are equally wide.
SURELY, FEWEST_BETWEEN = 0.05, 3
# A mean distance of probabilities from what happens that is too much to use them: so much, or of what is rare this
# share of how often it happens.
BADLY, BADLY_OF_RARE = 0.05, 0.5

# Rows are judged all together where the variances of their outcomes sum to so much: less is no normal sum.
MOST_SPREAD = 20.0
# Probabilities next to 0 or 1 count as these: a single row must not decide.
NEXT_TO_SURE = 1e-3

# direction -> what the probabilities are, and why
DIRECTIONS = {
    "bold": (
        "overconfident",
        "Rare cases happen more often than it says, and likely ones less often: what several columns say together may "
        "count more than once.",
    ),
    "timid": (
        "underconfident",
        "Rare cases happen less often than it says, and likely ones more often: its probabilities are nearer to the "
        "middle than they need to be.",
    ),
    "high": ("too high", "What it speaks of happens less often than it says."),
    "low": ("too low", "What it speaks of happens more often than it says."),
    "sure": ("overconfident", "It is right less often than it says."),
    "unsure": ("underconfident", "It is right more often than it says."),
    "bent": (
        "too high at some places and too low at others",
        "They are neither overconfident nor underconfident throughout.",
    ),
}


def calibration_facts(rows: ClassValidation, positive: int | None, level: float) -> Table:
    """Of the probability of the positive class, or of the class that is predicted: the curve, and its verdict."""
    if positive is None:
        happened, p = rows.log_proba.argmax(axis=1) == rows.codes, np.exp(rows.log_proba.max(axis=1))
    else:
        happened, p = rows.codes == positive, np.exp(rows.log_proba[:, positive])
    truth, p = happened.astype(np.float64), np.minimum(p, 1.0)
    curve = calibration(truth, p, N_BINS, level=level, sample_weight=rows.weight)
    is_even = int(((curve.mean_prediction > SURELY) & (curve.mean_prediction < 1 - SURELY)).sum()) < FEWEST_BETWEEN
    if is_even:
        curve = calibration(truth, p, N_BINS, "uniform", level, sample_weight=rows.weight)
    bins: list[Table] = [*drawn_bins(curve)]
    # All intervals and both tests of all rows hold together with probability `level` at least where each misses with
    # its share of 1 - level.
    each = (1 - level) / (len(bins) + 2)
    wide = calibration(truth, p, curve.edges, level=1 - each, sample_weight=rows.weight)
    ends = [(row["low"], row["high"]) for row in drawn_bins(wide)]
    error = curve.expected_calibration_error
    share = float(np.average(truth, weights=rows.weight))
    is_of_predicted = positive is None
    trend = None if rows.weight is not None else _trend(truth, p, each, is_of_predicted)
    judged = verdict(bins, ends, error, share, is_of_predicted, trend)
    return {"error": error, "is_even": is_even, "bins": bins, "verdict": judged}


def _trend(truth: Array, p: Array, miss: float, is_of_predicted: bool) -> str | None:
    """The direction in which all rows together are off; None where chance may be all.

    Score tests of slope 1 and shift 0 in logit P(y = 1) = shift + slope logit p (Cox 1958): with v = p (1 - p) and
    z = logit p - mean of logit p weighted by v, sum (y - p) z over the root of sum v z^2, and sum (y - p) over the
    root of sum v. Each is beyond its limit by chance with probability `miss`. Bins of a tenth of the rows do not see a
    slope that all of them show together.
    """
    spread = p * (1 - p)
    if spread.sum() < MOST_SPREAD:
        return None
    limit = float(special.ndtri(1 - miss / 2))
    score = special.logit(np.clip(p, NEXT_TO_SURE, 1 - NEXT_TO_SURE))
    score = score - np.average(score, weights=spread)
    size = float(spread @ score**2)
    slope = 0.0 if size == 0 else float((truth - p) @ score) / size**0.5
    shift = float((truth - p).sum()) / float(spread.sum()) ** 0.5
    if abs(slope) > limit and not is_of_predicted:
        return "timid" if slope > 0 else "bold"
    if abs(shift) > limit:
        return _one_side(1 if shift > 0 else -1, is_of_predicted)
    return None


def verdict(
    bins: list[Table],
    ends: list[tuple[float, float]],
    error: float,
    share: float,
    is_of_predicted: bool,
    trend: str | None = None,
) -> Table:
    """What the curve says: {level: right | slight | wrong | unknown, direction, words, sentence}.

    bins: of the curve, by rising probability. ends: intervals that hold together, one per bin, NaN where rows are
    weighted. error: mean distance of probability and what happens. share: how often it happens. is_of_predicted: the
    curve is of the class that is predicted, else of one of two classes. trend: the direction in which all rows
    together are off, asked where no bin is.
    """
    off = f"{text.number(100 * error, 2)} percentage points on average"
    if not np.isfinite(np.array(ends)).all():
        sentence = f"Its probabilities are off by {off}. Rows are weighted: how much of that is chance is not known."
        return {"level": "unknown", "direction": None, "words": "not known: rows are weighted", "sentence": sentence}
    sides = [_side(row, *interval) for row, interval in zip(bins, ends, strict=True)]
    direction = _direction(sides, is_of_predicted) if any(sides) else trend
    if direction is None:
        sentence = (
            f"Its probabilities can be taken at their word: in {text.plural(len(bins), 'group')} of rows they differ "
            "from what happens by no more than chance gives."
        )
        return {"level": "right", "direction": None, "words": "can be taken at their word", "sentence": sentence}
    if not any(sides):
        sides = _sides_of(direction, bins)
    is_wrong = error >= min(BADLY, BADLY_OF_RARE * min(share, 1 - share))
    words = DIRECTIONS[direction][0] if is_wrong else f"slightly {DIRECTIONS[direction][0]}"
    sentence = f"Its probabilities are {words}, by {off}: {_examples(bins, sides)}."
    return {"level": "wrong" if is_wrong else "slight", "direction": direction, "words": words, "sentence": sentence}


def _side(row: Table, low: float, high: float) -> int:
    """1 where what happens is more than the probability, -1 where it is less, 0 where chance may be all."""
    return int(row["predicted"] < low) - int(row["predicted"] > high)


def _direction(sides: list[int], is_of_predicted: bool) -> str:
    """From the side of every bin, by rising probability.

    Bold and timid are claims about both ends of the curve: the lowest and the highest bin miss on opposite sides, and
    none between them changes sides once more.
    """
    missed = [side for side in sides if side]
    if len(set(missed)) == 1:
        return _one_side(missed[0], is_of_predicted)
    n_changes = sum(a != b for a, b in pairwise(missed))
    if is_of_predicted or n_changes > 1 or not (sides[0] and sides[-1]):
        return "bent"
    return "bold" if sides[0] > 0 else "timid"


def _one_side(side: int, is_of_predicted: bool) -> str:
    return {(1, True): "unsure", (-1, True): "sure", (1, False): "low", (-1, False): "high"}[side, is_of_predicted]


def _sides_of(trend: str, bins: list[Table]) -> list[int]:
    """The side of every bin that shows the trend, 0 of the others."""
    low = 1 if trend in ("bold", "low", "unsure") else -1
    high = -low if trend in ("bold", "timid") else low
    wanted = [low if k < len(bins) / 2 else high for k in range(len(bins))]
    off = [float(row["observed"]) - float(row["predicted"]) for row in bins]
    return [side if side * distance > 0 else 0 for side, distance in zip(wanted, off, strict=True)]


def _examples(bins: list[Table], sides: list[int]) -> str:
    """The bins furthest off on each side, in the order of the curve."""
    worst: dict[int, Table] = {}
    for row, side in zip(bins, sides, strict=True):
        if side and (side not in worst or _distance(row) > _distance(worst[side])):
            worst[side] = row
    rows = sorted(worst.values(), key=lambda row: float(row["predicted"]))
    said = [f"{text.percent(row['predicted'])} it is {text.percent(row['observed'])}" for row in rows]
    return "where it says " + ", and where it says ".join(said)


def _distance(row: Table) -> float:
    return abs(float(row["observed"]) - float(row["predicted"]))


# Classes in the matrix, with curves of their own, and in the table of one class against the rest.
MOST_IN_MATRIX, MOST_CURVES, MOST_RANKED = 20, 6, 100
MOST_LABELS = 1000
MOST_POINTS = 160
N_PAIRS = 10
CUTS = (0.1, 0.25, 0.5, 0.75, 0.9)


def class_facts(fit: Fit) -> Table | None:
    """Of the rows that cross-validation predicted, or else of the rows of the fit; None without probabilities."""
    if fit.by_class is None or answer_of(fit.model) is Answer.MARGINS:
        return None
    leaders = (fit.validation or {}).get("rows", [])
    rows, shares = (next((row["classes"] for row in leaders if row[key]), None) for key in ("is_chosen", "is_baseline"))
    rows = class_training(fit.model, fit.source) if rows is None else rows
    facts = judged(rows, fit.by_class.positive, fit.level, shares, fit.printed.labels)
    facts["costs"] = cost_facts(rows, (fit.validation or {}).get("costs"), fit.by_class.positive, fit.printed.labels)
    return facts if fit.seen.mass == fit.seen.n_rows else _with_printed_masses(fit, facts)


def cost_facts(
    rows: ClassValidation, costs: Mapping[Any, float] | None, positive: int | None, labels: list[str]
) -> Table | None:
    """Mean costs per row by decisions of least expected cost, by the most probable class and by one class for all."""
    if costs is None:
        return None
    c = np.array([costs[label] for label in rows.classes.tolist()])
    proba = np.exp(rows.log_proba)
    constants = [mean_cost(rows.codes, np.full_like(rows.codes, k), c, rows.weight) for k in range(len(c))]
    cheapest_class = int(np.argmin([one.value for one in constants]))
    ways = {
        "decided": mean_cost(rows.codes, cheapest(proba, c), c, rows.weight),
        "most_probable": mean_cost(rows.codes, proba.argmax(axis=1), c, rows.weight),
        "constant": constants[cheapest_class],
    }
    return {
        "by_label": [{"label": labels[k], "cost": float(c[k])} for k in range(len(c))][:MOST_LABELS],
        "threshold": None if positive is None else threshold(c, positive),
        "constant_label": labels[cheapest_class],
        "is_new": not rows.is_seen,
    } | {name: {"value": one.value, "standard_error": one.standard_error} for name, one in ways.items()}


def _with_printed_masses(fit: Fit, facts: Table) -> Table:
    """Sums of weights that may be of one row, to three digits."""
    masses = ((facts["rows"], ("rows", "predicted")), (facts["pairs"], ("rows",)))
    for rows, keys in (*masses, (facts["calibration"]["bins"], ("count",))):
        for row in rows:
            row |= {key: fit.printed_mass(row[key]) for key in keys}
    matrix = facts["matrix"]
    return facts | {"matrix": matrix | {key: fit.printed_mass(matrix[key]) for key in ("counts", "rows")}}


def validation_table(fit: Fit) -> Table | None:
    """The leaderboard; of models of classes with their rates on rows that they did not see."""
    if fit.validation is None:
        return None
    rows = [_with_scores(row, fit) for row in fit.validation["rows"]]
    return {key: value for key, value in fit.validation.items() if key != "costs"} | {"rows": rows}


def _with_scores(row: Table, fit: Fit) -> Table:
    classes = row["classes"]
    scores = None
    if classes is not None and fit.by_class is not None and answer_of(fit.model) is not Answer.MARGINS:
        estimates = metrics(classes, fit.by_class.positive, fit.level)
        scores = {name: _estimate(one) for name, one in estimates.items()}
        if (classes.matrix.counts.sum(axis=0) > 0).sum() == 1:  # F1 of one class for every row measures its share
            scores["f1"] = {"value": None, "low": None, "high": None}
    return {key: value for key, value in row.items() if key not in ("classes", "predicted")} | {"scores": scores}


def judged(
    rows: ClassValidation,
    positive: int | None,
    level: float = 0.95,
    shares: ClassValidation | None = None,
    printed: list[str] | None = None,
) -> Table:
    """Everything that is measured of predicted probabilities. positive: the place of one of two classes.

    shares: the same rows, predicted from the shares of the classes among others. printed: names of the classes.
    """
    labels = [str(label) for label in rows.classes.tolist()] if printed is None else printed
    size = rows.matrix.counts.sum(axis=1)
    order = np.argsort(-size, kind="stable")
    facts: Table = {
        "is_new": not rows.is_seen,
        "n_rows": rows.n_rows,
        "n_drawn": len(rows.codes),
        "level": level,
        "labels": labels[:MOST_LABELS],
        "n_classes": len(labels),
        "positive": positive,
        "metrics": {name: _estimate(estimate) for name, estimate in metrics(rows, positive, level).items()},
        "baseline": _baseline(labels, size, shares),
        "confidence": _mean(np.exp(rows.log_proba.max(axis=1)), rows.weight),
        "matrix": _matrix(labels, rows.matrix.counts, order),
        "pairs": _pairs(labels, rows.matrix.counts),
        "calibration": calibration_facts(rows, positive, level),
        "costs": None,
        "cuts": [] if positive is None else _cuts(rows, positive),
    }
    ranked = _ranked(rows, positive, order, level)
    facts["rows"] = _class_rows(rows, labels, ranked, level)
    facts["curves"] = _curves(rows, labels, ranked, order)
    return facts | {"sentences": _sentences(facts)}


def metrics(rows: ClassValidation, positive: int | None, level: float = 0.95) -> dict[str, Estimate]:
    """Accuracy, log loss, AUC, F1 of the positive class (or the mean over classes), balanced accuracy."""
    return (_turned(rows) if positive == 0 else rows).metrics(level)


def _turned(rows: ClassValidation) -> ClassValidation:
    """Two classes in the other order, for F1 is that of the second."""
    matrix = replace(rows.matrix, labels=rows.matrix.labels[::-1], counts=rows.matrix.counts[::-1, ::-1])
    log_proba = np.ascontiguousarray(rows.log_proba[:, ::-1])
    return replace(rows, classes=rows.classes[::-1], codes=1 - rows.codes, log_proba=log_proba, matrix=matrix)


def _estimate(estimate: Estimate) -> Table:
    return {"value": float(estimate), "low": estimate.low, "high": estimate.high}


def _mean(values: Array, weight: Array | None) -> float:
    return float(np.average(values, weights=weight))


def _baseline(labels: list[str], size: Array, predicted: ClassValidation | None) -> Table:
    """What knows the shares of the classes alone: it says the most frequent one."""
    shares = size / size.sum()
    loss = special.entr(shares).sum() if predicted is None else predicted.metrics()["log_loss"]
    return {"label": labels[int(shares.argmax())], "accuracy": float(shares.max()), "log_loss": float(loss)}


def _matrix(labels: list[str], counts: Array, order: Array) -> Table:
    """Counts, truth in rows; of many classes those with most rows, in their own order."""
    kept = np.sort(order[:MOST_IN_MATRIX])
    return {
        "labels": [labels[k] for k in kept],
        "counts": counts[np.ix_(kept, kept)],
        "rows": counts.sum(axis=1)[kept],
        "n_left_out": len(labels) - len(kept),
    }


def _pairs(labels: list[str], counts: Array) -> list[Table]:
    """The mistakes that are made most often."""
    wrong = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    rows = counts.sum(axis=1)
    first = np.argsort(-wrong, axis=None, kind="stable")[:N_PAIRS]
    places = [divmod(int(k), len(counts)) for k in first]
    return [
        {"truth": labels[i], "predicted": labels[j], "rows": wrong[i, j], "share": wrong[i, j] / rows[i]}
        for i, j in places
        if wrong[i, j] > 0
    ]


def _ranked(rows: ClassValidation, positive: int | None, order: Array, level: float) -> dict[int, Table]:
    """AUC and average precision of a class against the rest, where both have rows; of two, of the positive one."""
    places = order[:MOST_RANKED].tolist() if positive is None else [positive]
    by_class = {}
    for k in places:
        truth, scores = rows.codes == k, rows.log_odds(k)
        if truth.all() or not truth.any():
            continue
        auc = class_auc(rows, k, level)
        precision = average_precision_score(truth, scores, pos_label=True, sample_weight=rows.weight)
        by_class[k] = {"auc": _estimate(auc), "average_precision": float(precision)}
    return by_class


def _class_rows(rows: ClassValidation, labels: list[str], ranked: dict[int, Table], level: float) -> list[Table]:
    """One row per class."""
    total, predicted = rows.matrix.n, rows.matrix.counts.sum(axis=0)
    table = []
    for k, rates_of in enumerate(rows.per_class(level)[:MOST_LABELS]):
        rates = {name: _estimate(rates_of[key]) for name, key in RATES.items()}
        rank = ranked.get(k, {"auc": None, "average_precision": None})
        size = {"rows": rates_of["rows"], "share": rates_of["rows"] / total, "predicted": predicted[k]}
        table.append({"label": labels[k]} | size | rates | rank)
    return table


RATES = {"precision": "precision", "recall": "recall", "f1": "F_beta"}


def _curves(rows: ClassValidation, labels: list[str], ranked: dict[int, Table], order: Array) -> list[Table]:
    """ROC and precision-recall of the positive class, or of each of the largest classes against the rest."""
    places = [k for k in order.tolist() if k in ranked][:MOST_CURVES]
    curves = []
    for k in sorted(places):
        truth, scores = rows.codes == k, rows.log_odds(k)
        fpr, tpr = class_roc(rows, k)
        precision, recall, _ = precision_recall_curve(truth, scores, sample_weight=rows.weight, drop_intermediate=True)
        facts = {"label": labels[k], "share": _mean(truth, rows.weight)} | ranked[k]
        lines = {
            "roc": drawn_roc(fpr, tpr, MOST_POINTS),
            "precision_recall": drawn_precision(precision, recall, MOST_POINTS),
        }
        curves.append(facts | {name: _points(line) for name, line in lines.items()})
    return curves


def _points(line: Line) -> list[list[float]]:
    return [[round(float(x), 5), round(float(y), 5)] for x, y in zip(*line, strict=True)]


def _cuts(rows: ClassValidation, positive: int) -> list[Table]:
    """What other thresholds of the probability would do."""
    truth, p = rows.codes == positive, np.exp(rows.log_proba[:, positive])
    weight = np.ones(len(p)) if rows.weight is None else rows.weight
    cuts = []
    for cut in CUTS:
        called = p >= cut
        hits, n_called, n_true = (float(weight @ each) for each in (called & truth, called, truth))
        right = float(weight @ (called == truth)) / weight.sum()
        rates = {"precision": hits / n_called if n_called else None, "recall": hits / n_true if n_true else None}
        cuts.append({"cut": cut, "accuracy": right, "called": n_called / weight.sum()} | rates)
    return cuts


# ---- in words -------------------------------------------------------------------------------------------------------


def _sentences(facts: Table) -> list[str]:
    return [_how_many(facts), *_how_ranked(facts), facts["calibration"]["verdict"]["sentence"]]


def _how_many(facts: Table) -> str:
    which = "the rows it did not see" if facts["is_new"] else "the rows it was fitted to"
    right, base = facts["metrics"]["accuracy"], facts["baseline"]
    words = f"Of {which}, {text.percent(right['value'])}{_interval(facts, right, text.percent)} were put in the right"
    always = f"always saying {text.visible(base['label'], 40)} is right in {text.percent(base['accuracy'])}"
    return f"{words} class; {always}."


def _how_ranked(facts: Table) -> list[str]:
    estimate = facts["metrics"]["auc"]
    auc = estimate["value"]
    if np.isnan(auc):
        return []
    interval = _interval(facts, estimate, decimals)
    if facts["positive"] is None:
        return [f"One class against the rest, the area under the ROC curve (AUC) is {text.number(auc)} on average."]
    label = text.visible(facts["labels"][facts["positive"]], 40)
    return [
        f"The area under the ROC curve (AUC) is {text.number(auc)}{interval}: how often a row of {label} gets a higher "
        f"probability of {label} than a row of the other class."
    ]


def _interval(facts: Table, estimate: Table, shown: Callable[[float], str]) -> str:
    if estimate["low"] is None:
        return ""
    return f" ({text.number(100 * facts['level'])} % interval {shown(estimate['low'])} to {shown(estimate['high'])})"
