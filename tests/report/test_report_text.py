import math
import re

import pytest

from certifit.data.privacy import harmless
from certifit.report import first_screen, svg, text


@pytest.mark.parametrize("hidden", ["\x1b", "\n", "\r", "\t", "\x00", "\x07", "\x9b", "\u202e", "\u200b", "\ud800"])
def test_no_hidden_character_is_shown_as_it_is(hidden):
    shown = text.visible(f"a{hidden}b")
    assert hidden not in shown
    assert shown.isprintable()
    assert shown.startswith("a\\") and shown.endswith("b")


def test_ordinary_letters_of_any_script_stay():
    assert text.visible("Größe 温度 naïve") == "Größe 温度 naïve"


@pytest.mark.parametrize("limit", [5, 8, 31])
def test_long_names_are_cut_in_the_middle_to_the_limit(limit):
    shown = text.visible("a" * 40 + "z" * 40, limit)
    assert len(shown) == limit
    assert shown[0] == "a" and shown[-1] == "z" and "…" in shown


def test_an_error_is_one_line():
    assert text.one_line("first\n  second\x1b[31m") == "first second\\x1b[31m"


@pytest.mark.parametrize("value", [3.1e-29, 1e-8, 9.99e-5, 1.0, 0.5, 7e300, 5e-324, 1e-300])
def test_a_bound_is_never_rounded_down(value):
    assert float(text.power(value)) >= value * (1 - 1e-9)
    assert float(text.power(value)) <= value * 2 * (1 + 1e-9) or value < 1e-290


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0123456, "0.01235"),
        (-2.0, "-2"),
        (1.5e-9, "1.5e-9"),
        (0.0, "0"),
        (None, "–"),
        (math.nan, "–"),
        (99999.6, "100000"),
    ],
)
def test_numbers_have_four_significant_digits(value, shown):
    assert text.number(value) == shown


def test_what_multiplies_is_never_1_unless_it_is():
    """exp(-6.1e-6) per policy number and exp(0.00013) per mark of a credit were printed as 1."""
    shown = [text.factor(value) for value in (0.9999939, 1.0001283, 1.0128, 0.2485, 1.0, 1 + 2**-52, None)]
    assert shown == ["0.9999939", "1.00013", "1.013", "0.2485", "1", "1.0000000000000002", "–"]


def test_r_squared_near_one_is_not_rounded_to_one():
    assert text.share(1 - 3.2e-9) == "0.9999999968"
    assert text.share(0.86124) == "0.8612"
    assert text.share(1.0) == "1"


def test_p_values():
    assert [text.p_value(p) for p in (0.774, 0.0123, 0.00213, 1e-9, None)] == [
        "0.774",
        "0.012",
        "0.0021",
        "< 0.0001",
        "–",
    ]


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", " =1"])
def test_no_name_is_a_formula_for_a_spreadsheet(name):
    assert harmless(name).startswith("'")
    assert harmless("plain=name") == "plain=name"


@pytest.mark.parametrize("labels", [["a", "b"], ["a long name of a class"] * 6, ["middling"] * 4])
def test_a_legend_ends_within_its_picture(labels):
    """What does not fit beside the others goes to a row of its own, for which the picture makes room."""
    frame = svg.Frame((0, 1), (0, 1), left=150)
    keys = [("line", label) for label in labels]
    places = [
        (float(x), float(y)) for x, y in re.findall(r'class="key" x="([\d.]+)" y="([\d.]+)"', svg.legend(frame, keys))
    ]
    assert all(x + svg.CHARACTER * len(label) <= svg.WIDTH for (x, _), label in zip(places, labels, strict=True))
    assert len({y for _, y in places}) == svg.legend_rows(frame.left, keys)


def test_the_first_screen_names_the_model_as_the_table_of_models_does():
    model = {"words": "Gaussian discriminant analysis (one covariance)", "n_features": 2}
    said = "Linear discriminant was taken: it has the smallest error."
    validation = {"notes": [], "sentences": [said], "rows": []}
    tile = first_screen._model({"validation": validation, "model": model, "data": {"n_rows": 9}})
    assert tile["answer"] == "Linear discriminant" and tile["small"].startswith(model["words"])


def test_labels_of_an_axis_end_within_the_picture():
    frame = svg.Frame((-60000, 60000), (0, 1), left=60)
    labels = re.findall(r'class="tick" x="([\d.]+)"[^>]*middle">([^<]+)<', frame.axes("x", "y"))
    assert any(label == "60,000" for _, label in labels)
    assert all(float(x) + svg.CHARACTER * len(label) / 2 <= svg.WIDTH for x, label in labels)


def test_a_bound_below_rounding_is_said_without_its_power():
    assert [text.bound(value) for value in (0.0, 4e-32, 3e-9)] == ["1e-15", "1e-15", "3e-9"]


@pytest.mark.parametrize(
    ("share", "measure", "corrected", "answer"),
    [
        # 0, 0.1 and -0.1 beside 3/4 of the baseline's, whose mean is 4: 0.1 / 4 sqrt(1/3 + 1/2) times Student's 4.303.
        ("Explained", "mean Poisson deviance", None, "25 % of the deviance explained (15 to 35 %)"),
        ("Explained", "mean Poisson deviance", (-3.2, -3.0), "25 % of the deviance explained (10 to 30 %)"),
        ("R²", "root mean squared error", None, "R² 0.25 (0.15 to 0.35)"),
        ("R²", "log loss", None, "R² 0.2500"),
    ],
)
def test_the_share_explained_on_new_rows_has_an_interval(share, measure, corrected, answer):
    row = {"is_chosen": True, "is_baseline": False, "error": 3.0, "standard_error": 0.1, "r2": 0.25, "name": "a"}
    base = row | {"is_chosen": False, "is_baseline": True, "error": 4.0, "name": "mean of y"}
    root = 1 if share == "Explained" else 0.5
    base |= {"folds": [loss**root for loss in (4.0, 6.0, 2.0)]}
    row |= {"folds": [loss**root for loss in (3.0, 4.6, 1.4)]}
    choice = None if corrected is None else {"corrected": {"value": corrected[0]}, "winner": corrected[1]}
    facts = {"rows": [row, base], "measure": measure, "n_splits": 3, "share": share, "choice": choice}
    assert first_screen._good({"classes": None, "validation": facts})["answer"] == answer


def test_the_name_of_an_axis_is_whole_and_within_the_picture():
    label = "log-odds of malignant, one standard deviation"
    frame = svg.Frame((-1, 1), (0, 1), left=250)
    at, shown = re.findall(r'class="label" x="([\d.]+)"[^>]*middle">([^<]+)<', svg.x_axis(frame, label))[0]
    assert shown == label
    assert float(at) + svg.CHARACTER * len(label) / 2 <= svg.WIDTH
