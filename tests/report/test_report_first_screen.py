"""What the first screen warns of and draws, from facts written by hand."""

import re
from dataclasses import asdict

import pytest

from certifit.models.learner import DERIVED, SMALLEST
from certifit.models.local.about import SOLVED
from certifit.models.network.about import CHECKED
from certifit.report.answer import _new_share
from certifit.report.first_screen import _good, _rounded, _trust, _worry, questions
from certifit.report.noted import class_weighted, copies
from certifit.report.notices import _no_better, _right_as_often
from certifit.report.pictures.classes import draw_precision
from certifit.report.svg import N_COLOURS
from certifit.report.text import CLASSES_WEIGHTED, COPIES_SEEN
from certifit.report.what_decides import draw_deciding, largest_classes


def deciding(n_classes, without_mean=()):
    means = [None if k in without_mean else float(k) for k in range(n_classes)]
    row = {"name": "x", "mean": means, "sd": [None if mean is None else 1.0 for mean in means], "evidence": []}
    return {"what": "spreads", "labels": [f"class {k}" for k in range(n_classes)], "rows": [row, row | {"name": "z"}]}


def classes(sizes):
    rows = [{"label": f"class {k}", "rows": size} for k, size in enumerate(sizes)]
    return {"positive": None, "rows": rows}


def test_a_class_without_a_line_is_not_in_the_legend():
    drawn = draw_deciding({"deciding": deciding(3, without_mean=[1]), "classes": classes([50, 3, 50])})
    assert "class 0" in drawn and "class 2" in drawn and "class 1" not in drawn
    assert set(re.findall(r'class="line-many (c\d)"', drawn)) == {"c1", "c2"}


def test_of_many_classes_the_largest_are_drawn():
    sizes = [10, 90, 80, 70, 60, 50, 40]
    assert largest_classes(deciding(7), classes(sizes)) == [1, 2, 3, 4, 5, 6]
    drawn = draw_deciding({"deciding": deciding(7), "classes": classes(sizes)})
    assert "class 0" not in drawn and len(set(re.findall(r"line-many (c\d)", drawn))) == N_COLOURS


@pytest.mark.parametrize(
    ("goal", "sure"), [(SMALLEST, "proven"), *((goal, "checked") for goal in (DERIVED, CHECKED, SOLVED))]
)
def test_numbers_that_were_derived_again_are_not_called_a_proof_of_the_best(goal, sure):
    told = _trust({"certificate": {"holds": True, "is_local": False, "goal": asdict(goal)}})
    assert told["answer"] == f"Yes, {sure}" and told["small"]


def of_numbers(error, spread, base=10.0, hard=0.0):
    """Facts of a model by its errors on three folds; hard: the squared error of all is larger on the third."""
    folds = [error - spread, error + spread, (error**2 + hard) ** 0.5]
    chosen = {"name": "least squares", "is_chosen": True, "is_baseline": False, "error": error, "folds": folds}
    constant = {"name": "mean of y", "is_chosen": False, "is_baseline": True, "error": base}
    constant |= {"folds": [base, base, (base**2 + hard) ** 0.5]}
    rows = [chosen | {"r2": 1 - (error / base) ** 2}, constant]
    facts = {"rows": rows, "share": "R²", "measure": "root mean squared error", "choice": None, "holdout": None}
    return {"classes": None, "validation": facts}


@pytest.mark.parametrize(
    ("context", "title"),
    [
        (of_numbers(5.0, 1.0), None),
        (of_numbers(9.0, 0.1, hard=30.0), None),  # better on every fold, one of which is hard for both
        (of_numbers(9.0, 2.0), "It may be no better than the mean of y alone"),
        (of_numbers(11.0, 1.0), "It is no better than the mean of y alone"),
        ({"classes": {"is_new": True, "metrics": {"auc": {"low": 0.6, "value": 0.7, "high": 0.8}}}}, None),
        ({"classes": {"is_new": True, "metrics": {"auc": {"low": 0.4, "value": 0.6, "high": 0.8}}}},
         "It may be no better than guessing"),
        ({"classes": {"is_new": True, "metrics": {"auc": {"low": 0.3, "value": 0.45, "high": 0.6}}}},
         "It is no better than guessing"),
    ],
)  # fmt: skip
def test_a_model_that_may_do_no_better_than_the_baseline_is_warned_of(context, title):
    notice = _no_better({"validation": None} | context)
    assert (None if notice is None else notice["title"]) == title


def test_a_name_that_says_what_the_model_is_is_said_once():
    context = of_numbers(5.0, 1.0)
    taken = "Least squares on codes was taken: it has the smallest error."
    context["validation"] |= {"notes": [], "sentences": [taken], "n_splits": 10}
    context["validation"]["rows"][0]["standard_error"] = 0.5
    context |= {"model": {"words": "least squares", "n_features": 2}, "data": {"n_rows": 30}, "warnings": []}
    goal = {"chosen": "", "is_derived": False}
    context["certificate"] = {"holds": True, "goal": goal, "is_local": False}
    answer = questions(context)[1]
    assert answer["answer"] == "Least squares on codes" and answer["small"].startswith(taken)


def test_of_classes_without_probabilities_the_accuracy_is_said():
    context = of_numbers(0.25, 0.01, base=0.4)
    context["validation"] |= {"measure": "error rate", "n_splits": 10, "share": "R²"}
    context["validation"]["rows"][0]["standard_error"] = 0.03
    answer = _good(context)
    assert answer["answer"] == "Accuracy 75.0 % ± 3.0"
    assert answer["small"] == "10 folds; baseline, always the most frequent class: 60.0 %"


def test_a_warning_does_not_repeat_its_title():
    warning = {
        "level": "warn",
        "title": "Its probabilities are too high",
        "text": "Its probabilities are too high, by 8 %. More.",
    }
    told = _worry({"warnings": [warning]})
    assert (told["answer"], told["small"]) == ("Its probabilities are too high", "By 8 %.")


def test_a_column_keeps_its_name_at_the_beginning_of_a_warning():
    warning = {"level": "warn", "title": "1 column repeats others", "text": "month = 3 quarter. More."}
    assert _worry({"warnings": [warning]})["small"] == "month = 3 quarter."


@pytest.mark.parametrize(
    ("share", "width", "shown"),
    [(0.1448, 1.16, "0.14"), (-0.4368, 1.16, "−0.44"), (-0.001, 0.2, "0.00"), (0.61234, 0.02, "0.612"),
     (0.61234, 0.002, "0.6123"), (0.9998123, 0.02, "0.99981")],
)  # fmt: skip
def test_r2_has_as_many_digits_as_its_interval_is_wide(share, width, shown):
    assert _rounded(share, width) == shown


@pytest.mark.parametrize(("right", "low", "is_told"), [(0.7, 0.6, True), (0.75, 0.6, False), (0.7, 0.4, False)])
def test_labels_that_are_right_no_more_often_than_one_class_are_told(right, low, is_told):
    metrics = {"accuracy": {"value": right}, "auc": {"low": low, "value": 0.7}}
    classes = {"is_new": True, "metrics": metrics, "baseline": {"label": "good", "accuracy": 0.72}}
    notice = _right_as_often({"classes": classes, "validation": None})
    assert (notice is not None) == is_told
    weighted = {"notes": [f"{CLASSES_WEIGHTED}: they are others. Use --costs."]}
    assert _right_as_often({"classes": classes, "validation": weighted}) is None
    assert class_weighted({"validation": weighted})["text"] == "They are others."


def test_copies_of_rows_are_a_note():
    said = f"9 of 60 rows repeat. Warning: with 15 % copies, {COPIES_SEEN}, so figures are too good. To keep, do this."
    told = copies({"validation": {"notes": [said]}})
    assert told["title"] == "15 % of the rows are copies of others" and told["action"] == "To keep, do this."
    assert told["text"].startswith("9 of 60 rows repeat. Rows are predicted by") and told["text"].endswith("too good.")
    assert copies({"validation": {"notes": ["9 of 60 rows repeat."]}}) is None


@pytest.mark.parametrize("n_classes", [1, 3, 6])
def test_names_of_precision_curves_are_above_the_frame(n_classes):
    curve = {"average_precision": 0.5, "share": 0.2, "precision_recall": [(0.0, 1.0), (1.0, 0.2)]}
    curves = [curve | {"label": f"a class named {k}"} for k in range(n_classes)]
    drawn = draw_precision({"classes": {"curves": curves}})
    top = float(re.search(r'<clipPath.*? y="([\d.]+)"', drawn)[1])
    heights = [float(y) for y in re.findall(r'class="key" x="[\d.]+" y="([\d.]+)"', drawn)]
    assert len(heights) == n_classes and max(heights) < top


@pytest.mark.parametrize("share, word", [("R²", "variance"), ("Explained", "deviance")])
def test_what_a_model_that_can_follow_single_rows_explains_on_new_ones_has_its_name(share, word):
    validation = {"share": share, "rows": [{"is_chosen": True, "r2": 0.999}]}
    target = {"data": {"target": {"classes": None}}, "model": {"target": "claims"}}
    context = {"validation": validation, "quality": {"metric": None}} | target
    assert _new_share(context) == [f"There it explains 99.9 % of the {word} of claims."]
