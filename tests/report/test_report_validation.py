"""The report on cross-validation and selection: tables, curves, pictures, words."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from fits import FILES, rows
from test_report_page import HOSTILE, Page

import certifit as cf
from certifit.data.source import Memory
from certifit.report import svg, text
from certifit.report.answer import question_facts
from certifit.report.context import build
from certifit.report.folder import selection_table
from certifit.report.page import render
from certifit.report.pictures.validation import ordered
from certifit.report.tables import step_rows, validation_rows
from certifit.report.validation import chosen_entry, selection_facts, validation_facts
from certifit.selection.compare.leaderboard import leaderboard
from certifit.selection.compare.leaderboard_table import RMSE
from certifit.selection.features.wrappers import BackwardSelection, ForwardSelection

MODELS = {"least squares": cf.LinearRegression(), "ridge": cf.Ridge()}
NAMES = ["a", "b", "c"]


def source_of(names=NAMES, n_rows=120):
    X, y = rows(n_rows, len(names))
    return Memory(X, y, names=list(names))


def validated(source, notes=(), **options):
    prefer = {"prefer": "least squares", "because": "only it can have p-values"}
    board = leaderboard(MODELS, source, cv=5, n_decomposed=4, **prefer, **options)
    assert board.decomposition is not None
    return board, validation_facts(board, notes, "who")


def fitted_context(names=NAMES):
    source = source_of(names)
    board, facts = validated(source)
    return board, build(cf.LinearRegression().fit(source), source, FILES | {"selection": None}, validation=facts)


def selected_context(names=NAMES, direction="forward", wanted="best", n_rows=120):
    source = source_of(names, n_rows)
    make = {"forward": ForwardSelection, "backward": BackwardSelection}[direction]
    selector = make(cf.LinearRegression(), wanted, cv=4, scoring=RMSE).fit(source)
    board = leaderboard({"all columns": cf.LinearRegression()}, source, cv=4)
    validation = validation_facts(board.joined(chosen_entry(selector, "chosen columns"), is_chosen=True))
    files = FILES | {"selection": "selection.csv"}
    places = [list(source.names).index(name) for name in selector.selected_features_]
    chosen = Memory(source.block.X[:, places], source.block.y, names=list(selector.selected_features_))
    selection = selection_facts(selector, direction, wanted)
    return selector, build(selector.estimator_, chosen, files, validation=validation, selection=selection)


def test_errors_are_those_of_the_leaderboard_in_units_of_the_target():
    board, context = fitted_context()
    for row, entry in zip(context["validation"]["rows"], board.entries, strict=True):
        difference, error = board.difference(entry)
        assert (row["error"], row["standard_error"]) == (-entry.score, entry.standard_error)
        assert (row["difference"], row["difference_error"]) == (-difference, error)
    assert sum(row["is_chosen"] for row in context["validation"]["rows"]) == 1


def test_the_curve_is_that_of_the_tuned_model_with_standard_errors():
    board, context = fitted_context()
    curve, table = context["validation"]["curve"], board["ridge"].candidates
    assert curve["model"] == "ridge" and len(curve["values"]) == 50
    assert curve["validation"] == (-table["mean_test_score"]).tolist()
    train = np.array([table[f"split{k}_train_score"] for k in range(5)])
    assert curve["train_error"] == pytest.approx(train.std(axis=0, ddof=1) / np.sqrt(5))
    assert curve["values"][curve["chosen"]] == board["ridge"].params["alpha"]


CONTEXTS = {
    "fit": fitted_context,
    "forward": selected_context,
    "backward": lambda: selected_context(direction="backward"),
}


@pytest.mark.parametrize("make", CONTEXTS.values(), ids=CONTEXTS)
def test_contexts_are_strict_json_and_pages_are_sound(make):
    _, context = make()
    again = json.loads(json.dumps(context, allow_nan=False))
    assert again == context
    text_of_page = render(again)
    page = Page(text_of_page)
    assert not [bad for bad in (">nan<", ">None<", ">inf<", "NaN") if bad in text_of_page]
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert text_of_page.index('id="answer"') < text_of_page.index('id="validation"') < text_of_page.index('id="data"')
    for picture in re.findall(r"<svg.*?</svg>", text_of_page, re.DOTALL):
        root = ElementTree.fromstring(picture)
        assert root[0].text and root[1].text
        assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<(title|desc|text)[^>]*>[^<]*<", "<", picture))


def test_a_fit_shows_the_curve_and_bias_and_variance_and_a_selection_its_path():
    page = render(fitted_context()[1])
    assert 'id="validation-title"' in page and 'id="variance-title"' in page and 'id="path-title"' not in page
    assert "bias² + noise" in page and "rows with the same who stay in one fold" in page
    page = render(selected_context()[1])
    assert 'id="path-title"' in page and 'id="names-title"' in page and 'id="validation-title"' not in page
    assert "3 steps, one by one" in page


def test_a_report_without_validation_has_no_section_of_it():
    source = source_of()
    page = render(build(cf.LinearRegression().fit(source), source, FILES))
    assert 'id="validation"' not in page and "keep some rows apart" in page


def test_where_nothing_could_be_validated_the_page_says_why():
    source = source_of()
    facts = validation_facts(None, ["Not cross-validated. Folds need 4 rows at least."])
    page = render(build(cf.LinearRegression().fit(source), source, FILES, validation=facts))
    assert "Folds need 4 rows at least" in page and "Error on new rows" not in page


def test_the_lead_says_how_far_off_predictions_are():
    board, context = fitted_context()
    error, plus_minus = text.measured(-board.chosen.score, board.chosen.standard_error)
    said = (
        f"On rows it did not see, predictions are off by {error} on average (root mean squared error; ±{plus_minus})."
    )
    assert context["validation"]["sentences"][0] == said
    page = render(context)
    assert said in page[page.index('class="lead"') :][:900]
    assert "too small for a test" in page


def test_bias_and_variance_add_up_to_the_error():
    found = fitted_context()[1]["validation"]["decomposition"]
    for error, variance, rest in zip(found["error"], found["variance"], found["bias_and_noise"], strict=True):
        assert variance + rest == pytest.approx(max(error, variance))


def test_the_names_along_the_path_are_what_came_in():
    selector, context = selected_context()
    steps = ordered(context)
    assert [step["n_features"] for step in steps] == [1, 2, 3]
    assert [step["added"] for step in steps] == [[step.change] for step in selector.steps_]
    _, backward = selected_context(direction="backward")
    assert [len(step["added"]) for step in ordered(backward)] == [1, 1, 1]
    assert sorted(name for step in ordered(backward) for name in step["added"]) == NAMES


def test_tables_mark_the_choice():
    _, context = selected_context(wanted=2)
    assert [row["is_chosen"] for row in step_rows(context)] == [False, True]
    assert [row["name"] for row in validation_rows(context) if row["is_chosen"]] == ["chosen columns"]
    lines = selection_table(context).splitlines()
    assert len(lines) == 3 and lines[0].startswith("step,n_features,change,error") and lines[0].endswith("fold_4")


def test_p_values_after_a_selection_carry_a_note():
    _, context = selected_context()
    assert "The same rows chose the columns" in [notice["title"] for notice in context["warnings"]]
    assert "The same rows chose the columns" not in [notice["title"] for notice in fitted_context()[1]["warnings"]]


def test_no_name_becomes_a_tag_along_the_path():
    page = render(selected_context(HOSTILE)[1])
    tags = Page(page)
    assert "<script" not in page and "<img" not in page
    assert not [key for _, key, _ in tags.attributes if key.startswith("on")]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", page)


def test_a_long_path_stays_small_and_is_cut_with_a_word():
    names = [f"a_column_with_a_long_name_{j}" for j in range(40)]
    page = render(selected_context(names, n_rows=200)[1])
    assert len(page.encode()) < 400_000
    assert "the first 26" in page and "40 steps" in page


def test_other_scores_are_refused_with_the_one_that_is_shown():
    source = source_of()
    board = leaderboard(MODELS, source, scoring="r2")
    with pytest.raises(ValueError, match=RMSE):
        validation_facts(board)
    selector = ForwardSelection(cf.LinearRegression(), 1, scoring="r2").fit(source)
    with pytest.raises(ValueError, match=RMSE):
        selection_facts(selector, "forward", 1)


def test_powers_of_ten_are_the_ticks_of_a_log_axis():
    frame = svg.LogFrame.around((-8.2, 4.3), (0.0, 1.0))
    ticks = frame.x_ticks()
    assert all(value == round(value) for value, _ in ticks) and 3 <= len(ticks) <= 13
    assert dict(ticks)[0.0] == "1" and "1e−8" in dict(ticks).values()
    assert svg.log10(0.001) == pytest.approx(-3)


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (32481.3, 1512.7, ("32,500", "1,500")),
        (0.10349, 0.00612, ("0.1035", "0.0061")),
        (5.0, 9.96, ("5", "10")),
        (2.0, 0.0, ("2", "0")),
        (None, None, ("–", "–")),
        (1e12, 1e10, ("1e12", "1e10")),
    ],
)
def test_a_value_has_the_digits_of_its_error(value, error, shown):
    assert text.measured(value, error) == shown


def test_a_share_below_nothing_by_rounding_is_nothing():
    assert text.share(-1e-9) == "0.0000" and text.share(-0.0123) == "-0.0123"


def test_a_model_that_can_follow_single_rows_leads_with_new_rows():
    """R² of a forest on its rows is about its mean, called variance, and stands after that on held-out rows."""
    source = source_of()
    forest = cf.RandomForestRegressor(n_estimators=20, random_state=0)
    facts = validation_facts(leaderboard({"forest": forest}, source, cv=4))
    context = build(forest.fit(source), source, FILES | {"selection": None}, validation=facts)
    y, predicted = source.block.y, forest.predict(source.block.X)
    r2 = 1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    new = next(row["r2"] for row in facts["rows"] if row["is_chosen"])
    assert context["quality"]["r2"] == pytest.approx(r2) and context["quality"]["r2"] > new
    said = context["answer"]
    places = [next(k for k, one in enumerate(said) if words in one) for words in ("did not see", "There", "by heart")]
    assert places == sorted(places) and f"{100 * new:.1f} % of the variance" in said[places[1]]
    assert f"{100 * r2:.1f} % of the variance" in said[places[2]] and not any("squared size" in one for one in said)


@pytest.mark.parametrize(
    ("is_best", "difference", "said"),
    [
        (True, 0.0, "no other model does better"),
        (False, 0.1, "may be chance"),
        (False, 3.0, "a richer model does better"),
    ],
)
def test_the_three_questions_are_answered_from_the_errors(is_best, difference, said):
    common = {
        "error": 2.0,
        "standard_error": 0.2,
        "is_best": is_best,
        "difference": difference,
        "difference_error": 0.5,
    }
    chosen = common | {"name": "ridge", "is_chosen": True, "is_baseline": False, "train_error": 1.0}
    rival = chosen | {"name": "forest", "is_chosen": False, "error": 2.0 - difference}
    constant = chosen | {"name": "mean of y", "is_chosen": False, "is_baseline": True, "error": 9.0}
    validation = {
        "rows": [chosen, rival, constant],
        "measure": "root mean squared error",
        "n_splits": 10,
        "holdout": None,
    }
    goal = {"is_derived": True, "proven": "Proven.", "failed": ""}
    context = {"validation": validation, "certificate": {"holds": True, "goal": goal}, "model": {"minimised": "error"}}
    rich, optimum, new_rows = (row["answer"] for row in question_facts(context)["rows"])
    assert said in rich and "The baseline, mean of y alone: 9" in rich
    assert optimum == "Proven." and "noise of its rows" in new_rows
    assert question_facts(context | {"validation": None}) == {}
