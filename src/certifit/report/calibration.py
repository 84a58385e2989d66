"""Whether predicted probabilities mean what they say: the calibration curve, and one verdict that it gives.

Every place that speaks of it (page, report.json, card, terminal) prints this verdict.
"""

from itertools import pairwise

import numpy as np

from certifit.evaluation.metrics.probabilities import calibration
from certifit.evaluation.pictures.calibration import drawn_bins
from certifit.report import text
from certifit.report.text import Table
from certifit.selection.folds.class_validation import ClassValidation

N_BINS = 10
# Bins of equally many rows say little where nearly all probabilities are next to 0 or 1; then bins are equally wide.
SURELY, FEWEST_BETWEEN = 0.05, 3
# A mean distance of probabilities from what happens that is too much to use them: so much, or of what is rare this
# share of how often it happens.
BADLY, BADLY_OF_RARE = 0.05, 0.5

# direction -> what the probabilities are, and why
DIRECTIONS = {
    "bold": (
        "too bold",
        "Rare cases happen more often than it says, and likely ones less often: what several columns say together may "
        "count more than once.",
    ),
    "timid": (
        "too timid",
        "Rare cases happen less often than it says, and likely ones more often: its probabilities are nearer to the "
        "middle than they need to be.",
    ),
    "high": ("too high", "What it speaks of happens less often than it says."),
    "low": ("too low", "What it speaks of happens more often than it says."),
    "sure": ("too bold", "It is right less often than it says."),
    "unsure": ("too timid", "It is right more often than it says."),
    "bent": ("too high at some places and too low at others", "They are neither too bold nor too timid throughout."),
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
    # All intervals hold together with probability `level` at least where each misses with a share of 1 - level.
    wide = calibration(truth, p, curve.edges, level=1 - (1 - level) / len(bins), sample_weight=rows.weight)
    ends = [(row["low"], row["high"]) for row in drawn_bins(wide)]
    error = curve.expected_calibration_error
    share = float(np.average(truth, weights=rows.weight))
    judged = verdict(bins, ends, error, share, is_of_predicted=positive is None)
    return {"error": error, "is_even": is_even, "bins": bins, "verdict": judged}


def verdict(
    bins: list[Table], ends: list[tuple[float, float]], error: float, share: float, is_of_predicted: bool
) -> Table:
    """What the curve says: {level: right | slight | wrong | unknown, direction, words, sentence}.

    bins: of the curve, by rising probability. ends: intervals that hold together, one per bin, NaN where rows are
    weighted. error: mean distance of probability and what happens. share: how often it happens. is_of_predicted: the
    curve is of the class that is predicted, else of one of two classes.
    """
    off = f"{text.number(100 * error, 2)} percentage points on average"
    if not np.isfinite(np.array(ends)).all():
        sentence = f"Its probabilities are off by {off}. Rows are weighted: how much of that is chance is not known."
        return {"level": "unknown", "direction": None, "words": "not known: rows are weighted", "sentence": sentence}
    sides = [_side(row, *interval) for row, interval in zip(bins, ends, strict=True)]
    if not any(sides):
        sentence = (
            f"Its probabilities can be taken at their word: in {text.plural(len(bins), 'group')} of rows they differ "
            "from what happens by no more than chance gives."
        )
        return {"level": "right", "direction": None, "words": "can be taken at their word", "sentence": sentence}
    direction = _direction(sides, is_of_predicted)
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
        return {(1, True): "unsure", (-1, True): "sure", (1, False): "low", (-1, False): "high"}[
            missed[0], is_of_predicted
        ]
    n_changes = sum(a != b for a, b in pairwise(missed))
    if is_of_predicted or n_changes > 1 or not (sides[0] and sides[-1]):
        return "bent"
    return "bold" if sides[0] > 0 else "timid"


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
