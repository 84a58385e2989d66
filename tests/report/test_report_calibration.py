"""One verdict on probabilities: from the calibration curve and its intervals, in the direction that the curve shows."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from click.testing import CliRunner
from scipy import special

from certifit.cli import main
from certifit.evaluation.metrics.probabilities import calibration
from certifit.evaluation.pictures.confusion_and_calibration import drawn_bins
from certifit.report.classes import calibration_facts, verdict

HALF = 0.02  # of every interval of a curve that is made here


def curve(*observed, predicted=None, error=None, is_of_predicted=False):
    """The verdict on shares that happened of rows with rising probabilities."""
    said = np.linspace(0.05, 0.95, len(observed)) if predicted is None else np.array(predicted)
    bins = [{"count": 100.0, "predicted": p, "observed": o} for p, o in zip(said, observed, strict=True)]
    ends = [(o - HALF, o + HALF) for o in observed]
    error = float(np.abs(said - observed).mean()) if error is None else error
    return verdict(bins, ends, error, 0.5, is_of_predicted)


# predicted: .05 .275 .5 .725 .95
CURVES = {
    "as said": ((0.06, 0.27, 0.5, 0.73, 0.95), "right", None),
    "bold": ((0.15, 0.35, 0.5, 0.65, 0.85), "wrong", "bold"),
    "timid": ((0.0, 0.15, 0.5, 0.85, 1.0), "wrong", "timid"),
    "too high at the low end, too low in the middle": ((0.01, 0.1, 0.7, 0.74, 0.95), "wrong", "bent"),
    "too low at the low end, too high in the middle": ((0.2, 0.4, 0.3, 0.72, 0.95), "wrong", "bent"),
    "too high everywhere": ((0.0, 0.15, 0.3, 0.5, 0.8), "wrong", "high"),
    "too low everywhere": ((0.2, 0.4, 0.7, 0.9, 1.0), "wrong", "low"),
    "waves": ((0.2, 0.1, 0.7, 0.6, 1.0), "wrong", "bent"),
    "slightly bold": ((0.08, 0.275, 0.5, 0.725, 0.92), "slight", "bold"),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_direction_is_that_of_the_curve(name):
    observed, level, direction = CURVES[name]
    found = curve(*observed)
    assert (found["level"], found["direction"]) == (level, direction)
    assert ("at their word" in found["sentence"]) == (level == "right")
    assert ("underconfident" in found["sentence"]) == (direction == "timid")
    assert ("overconfident" in found["sentence"]) == (direction == "bold")


def test_of_the_predicted_class_more_than_it_is_right_is_bold():
    assert curve(0.4, 0.5, predicted=(0.6, 0.8), is_of_predicted=True)["words"] == "overconfident"
    assert curve(0.8, 0.95, predicted=(0.6, 0.8), is_of_predicted=True)["words"] == "underconfident"
    assert curve(0.8, 0.5, predicted=(0.6, 0.8), is_of_predicted=True)["direction"] == "bent"


def test_the_sentence_gives_the_worst_place_on_each_side():
    found = curve(0.2, 0.3, 0.5, 0.7, 0.8)
    assert "where it says 5.0 % it is 20.0 %, and where it says 95.0 % it is 80.0 %" in found["sentence"]


def test_of_what_is_rare_less_is_too_much():
    bins, ends = [{"count": 1e4, "predicted": 0.03, "observed": 0.01}], [(0.008, 0.012)]
    assert verdict(bins, ends, 0.02, 0.01, is_of_predicted=False)["level"] == "wrong"
    assert verdict(bins, ends, 0.02, 0.4, is_of_predicted=False)["level"] == "slight"


def test_without_intervals_there_is_no_verdict():
    bins = [{"count": 9.0, "predicted": 0.3, "observed": 0.1}]
    found = verdict(bins, [(np.nan, np.nan)], 0.2, 0.5, is_of_predicted=False)
    assert found["level"] == "unknown" and "Rows are weighted" in found["sentence"]


def drawn(q, n_rows, sharpness=1.0):
    """Rows of two classes whose stated log-odds are the true ones times a sharpness."""
    score = 1.5 * q.normal(size=n_rows)
    happened = q.random(n_rows) < special.expit(score)
    stated = sharpness * score
    log_proba = np.column_stack([special.log_expit(-stated), special.log_expit(stated)])
    return SimpleNamespace(codes=happened.astype(int), log_proba=log_proba, weight=None)


def test_true_probabilities_are_refuted_in_no_more_than_one_set_in_twenty():
    """The intervals hold together: 5 % of true curves at most are said to be off. 300 sets: 5 % + 3 standard errors."""
    q = np.random.default_rng(0)
    levels = [calibration_facts(drawn(q, 400), 1, 0.95)["verdict"]["level"] for _ in range(300)]
    assert np.mean([level != "right" for level in levels]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize(("sharpness", "direction"), [(1.35, "bold"), (0.75, "timid")])
def test_a_slope_that_all_rows_show_together_is_seen_where_no_bin_is_off(sharpness, direction):
    """Like logistic regression with many columns: every tenth of the rows is in its interval, all of them are not."""
    rows = drawn(np.random.default_rng(12), 1000, sharpness)
    truth, p = rows.codes == 1, np.exp(rows.log_proba[:, 1])
    bins = drawn_bins(calibration(truth, p, 10, level=1 - 0.05 / 10))
    assert all(row["low"] <= row["predicted"] <= row["high"] for row in bins)
    logit = sm.Logit(truth.astype(float), sm.add_constant(special.logit(p))).fit(
        disp=0
    )  # its slope is 1 where p is true
    assert np.sign(1 - logit.params[1]) == (1 if direction == "bold" else -1)
    assert abs(logit.params[1] - 1) > 3 * logit.bse[1]
    found = calibration_facts(rows, 1, 0.95)["verdict"]
    assert found["direction"] == direction and found["level"] != "right"
    assert "at their word" not in found["sentence"] and found["sentence"].count("where it says") == 2


def test_all_rows_together_too_high_are_seen_where_no_bin_is_off():
    rows = drawn(np.random.default_rng(3), 1000)
    log_odds = rows.log_proba[:, 1] - rows.log_proba[:, 0] + 0.3
    rows.log_proba = np.column_stack([special.log_expit(-log_odds), special.log_expit(log_odds)])
    assert calibration_facts(rows, 1, 0.95)["verdict"]["direction"] == "high"


def test_rows_next_to_sure_and_few_of_them_are_not_judged_together():
    """3 of 5,000 rows happen and 1 in 1,000 was said: no sum of so few is normal."""
    p = np.full(5000, 1e-3)
    happened = np.arange(5000) < 3
    rows = SimpleNamespace(codes=happened.astype(int), log_proba=np.log(np.column_stack([1 - p, p])), weight=None)
    assert calibration_facts(rows, 1, 0.95)["verdict"]["level"] == "right"


@pytest.mark.parametrize(("sharpness", "direction"), [(3.0, "bold"), (0.3, "timid")])
def test_log_odds_that_are_stretched_are_bold_and_shrunk_ones_timid(sharpness, direction):
    found = calibration_facts(drawn(np.random.default_rng(1), 4000, sharpness), 1, 0.95)["verdict"]
    assert (found["level"], found["direction"]) == ("wrong", direction)


def test_page_json_card_and_terminal_print_the_same_verdict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    q = np.random.default_rng(2)
    x = q.normal(size=600)
    copies = {f"x{j}": (x + 0.1 * q.normal(size=600)).round(3) for j in range(8)}  # naive Bayes counts x eight times
    pd.DataFrame(copies | {"y": np.where(x + q.logistic(size=600) > 0, "yes", "no")}).to_csv("d.csv", index=False)
    options = ["d.csv", "-t", "y", "-o", "out", "--model", "gaussian-nb", "--cv", "3"]
    shown = CliRunner().invoke(main, ["fit", *options]).output
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    found = report["classes"]["calibration"]["verdict"]
    assert (found["level"], found["words"]) == ("wrong", "overconfident")
    assert report["classes"]["sentences"][-1] == found["sentence"]
    notice = next(one for one in report["warnings"] if "probabilities" in one["title"])
    assert notice["title"] == "Its probabilities are overconfident" and notice["text"].startswith(found["sentence"])
    page, card = ((tmp_path / "out" / name).read_text() for name in ("report.html", "MODEL_CARD.md"))
    assert found["sentence"] in page and found["sentence"].split(":")[0] in card
    assert "  probabilities  overconfident" in shown
    assert not any("at their word" in place or "timid" in place for place in (page, card, shown))
