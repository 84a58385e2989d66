import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from learners import LEARNERS, ROWS
from sklearn.base import clone

import certifit as cf
from certifit.modelfile import ModelFileError

# Of which no bound on an optimum is known: their own numbers are computed again.
CHECKED = {
    *("locally_weighted_regression", "kernel_lms", "mlp_regressor", "mlp_classifier", "perceptron"),
    *("decision_tree_classifier", "decision_tree_regressor", "ada_boost_classifier", "ada_boost_regressor"),
    *("random_forest_classifier", "random_forest_regressor"),
    *("gradient_boosting_classifier", "gradient_boosting_regressor"),
    *("bagging of classes", "bagging", "calibrated", "calibrated by steps", "one against the rest in order"),
}
OF_MODELS = ("one against the rest", "bagging of classes", "bagging", "calibrated", "calibrated by steps")
EVERY = {key: (ROWS[key], ROWS[key].model) for key in (*LEARNERS, *OF_MODELS, "one against the rest in order")}
EVERY["near the fit"] = ROWS["glm of amounts"], cf.GLM("gaussian", "log")
HEADS = {
    "proven": "Proven: m.certifit is the best fit to data.csv (60 rows).",
    "estimated": "Computed again, and agrees; an estimate near the fit, no proof: m.certifit on data.csv (60 rows).",
    "checked": "Computed again, and agrees: m.certifit on data.csv (60 rows).",
}


@pytest.mark.parametrize("key", EVERY)
def test_only_a_bound_on_the_optimum_is_called_a_proof(cli, tmp_path, key):
    row, model = EVERY[key]
    X, y = row.rows()
    X = X + 3 * (np.asarray(y) == "yes")[:, None] if "perceptron" in key or "order" in key else X  # separated
    frame, target = pd.DataFrame(X).add_prefix("x"), None if y is None else pd.Series(y, name="y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network of few epochs
        model = clone(model).fit(frame, target)
    sure = "checked" if key in CHECKED else "estimated" if key == "near the fit" else "proven"
    assert (cf.verify(model, frame, target).holds, cf.verify(model, frame, target).sure) == (True, sure)
    if not key.startswith("bagging"):  # whose rows must be in memory
        cf.save(model, tmp_path / "m.certifit")
        pd.concat([frame, target], axis=1).to_csv(tmp_path / "data.csv", index=False)
        result = cli("verify", "m.certifit", "data.csv")
        assert result.exit_code == 0 and result.stdout.startswith(HEADS[sure]), result.output


@pytest.mark.parametrize("model", ["tree", "forest", "adaboost", "boosting", "network", "logistic"])
def test_the_card_calls_only_a_bound_on_the_optimum_a_proof(cli, data, model):
    frame = pd.read_csv(data)
    frame.assign(y=np.where(frame["y"] > 1, "yes", "no")).to_csv("classes.csv", index=False)
    assert cli("fit", "classes.csv", "-t", "y", "--model", model, "--cv", "0", "-o", "out").exit_code == 0
    card, page = (Path("out", name).read_text() for name in ("MODEL_CARD.md", "report.html"))
    is_proven = model == "logistic"
    assert ("yes, proven" in card) == ("asked |" in card) == ("The proof" in page) == is_proven
    assert ("with an allowance for rounding" in card) == is_proven


def test_a_sound_fit_is_proven(cli, data, saved):
    result = cli("verify", saved / "model.certifit", data)
    assert result.exit_code == 0
    assert result.stdout.startswith("Proven:")
    assert "120 rows" in result.stdout


def test_the_order_of_columns_and_other_columns_do_not_matter(cli, data, saved):
    assert cli("verify", saved / "model.certifit", data.parent / "shuffled.csv").exit_code == 0


def test_other_data_do_not_hold_and_the_reasons_are_words(cli, data, saved):
    lines = data.read_text().splitlines()
    Path("changed.csv").write_text("\n".join([*lines[:50], "1,2,3", *lines[51:]]))
    result = cli("verify", saved / "model.certifit", "changed.csv")
    assert result.exit_code == 1
    assert result.stdout.startswith("NOT verified")
    assert len(result.stdout.splitlines()) > 1
    Path("fewer.csv").write_text("\n".join(lines[:-1]))
    result = cli("verify", saved / "model.certifit", "fewer.csv")
    assert result.exit_code == 1 and "rows" in result.stdout


def test_a_nudged_coefficient_does_not_hold(cli, data, saved):
    model = cf.load(saved / "model.certifit")
    model.coef_ = model.coef_ * (1 + 1e-4)
    model.inference_ = None
    cf.save(model, "nudged.certifit")
    result = cli("verify", "nudged.certifit", data)
    assert result.exit_code == 1


def test_the_weights_of_a_weighted_fit_are_asked_for(cli, data):
    path = data.parent / "weighted.csv"
    cli("fit", path, "-t", "y", "-o", "out", "--weight", "w")
    result = cli("verify", "out/model.certifit", path)
    assert result.exit_code == 2 and "--weight" in result.stderr
    assert cli("verify", "out/model.certifit", path, "--weight", "w").exit_code == 0


def test_another_target_name(cli, data, saved):
    Path("renamed.csv").write_text(data.read_text().replace("a,b,y", "a,b,outcome"))
    result = cli("verify", saved / "model.certifit", "renamed.csv")
    assert result.exit_code == 2 and "no column 'y'" in result.stderr
    assert cli("verify", saved / "model.certifit", "renamed.csv", "--target", "outcome").exit_code == 0


def test_quiet_says_it_by_the_exit_code(cli, data, saved):
    assert cli("verify", saved / "model.certifit", data, "--quiet").output == ""


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "empty"])
def test_a_damaged_model_is_bad_input(cli, data, saved, damage):
    path = saved / "model.certifit"
    sound = path.read_bytes()
    flipped = bytes([*sound[:-9], sound[-9] ^ 1, *sound[-8:]])
    path.write_bytes({"cut": sound[:-1], "flip": flipped, "text": b"not a model, honestly", "empty": b""}[damage])
    result = cli("verify", path, data)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1 and "model" in result.stderr


def test_ridge_polynomial_and_dependent_fits_verify(cli, data):
    for k, options in enumerate((["--model", "ridge"], ["--degree", "3"], ["--no-intercept"])):
        assert cli("fit", data, "-t", "y", "-o", f"out{k}", "--cv", "0", *options).exit_code == 0
        result = cli("verify", f"out{k}/model.certifit", data)
        assert result.exit_code == 0, result.output
    path = data.parent / "dependent.csv"
    cli("fit", path, "-t", "y", "-o", "dependent")
    assert cli("verify", "dependent/model.certifit", path).exit_code == 0


def test_an_exact_proof_tells_its_time_first_and_says_what_it_is(cli, data, saved):
    pytest.importorskip("flint")
    result = cli("verify", saved / "model.certifit", data, "--exact")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("An exact proof on 120 rows and 2 columns: about a second expected.")
    assert result.stdout.startswith("Proven exactly: ")
    assert "Verified exactly, in ball arithmetic of 192 bits" in result.stdout
    assert cli("verify", saved / "model.certifit", data, "--exact", "--quiet").output == ""


def test_an_exact_proof_refuses_a_nudge_and_too_long_a_time(cli, data, saved):
    pytest.importorskip("flint")
    for minutes in ("-1", "nan"):
        refused = cli("verify", saved / "model.certifit", data, "--exact", "--most-minutes", minutes)
        assert refused.exit_code == 2 and f"--most-minutes must be >= 0. Got {minutes}." in refused.stderr
    result = cli("verify", saved / "model.certifit", data, "--exact", "--most-minutes", "0")
    assert result.exit_code == 2 and "0 minutes are allowed" in result.stderr
    model = cf.load(saved / "model.certifit")
    model.coef_ = model.coef_ * (1 + 1e-9)
    model.inference_ = None
    cf.save(model, "nudged.certifit")
    result = cli("verify", "nudged.certifit", data, "--exact")
    assert result.exit_code == 1 and "computed exactly" in result.stdout


def test_a_missing_library_is_bad_input(cli, data, saved, monkeypatch):
    import sys

    from certifit.exact import balls

    balls.flint.cache_clear()
    monkeypatch.setitem(sys.modules, "flint", None)
    result = cli("verify", saved / "model.certifit", data, "--exact")
    balls.flint.cache_clear()
    assert result.exit_code == 2 and "certifit[exact]" in result.stderr


@pytest.mark.parametrize("options", [
    ["--model", "linear"], ["--model", "ridge", "--group", "g"], ["--model", "forest", "--weight", "w"],
    ["--model", "logistic"], ["--model", "linear-svm", "--group", "g"], ["--model", "poisson", "--exposure", "w"],
], ids=" ".join)  # fmt: skip
def test_rows_that_the_fit_set_aside_are_left_out_again(cli, options):
    """The command of the card is given the whole table: it said that the coefficients were changed."""
    a, b, g, w = np.random.default_rng(0).integers(0, [[9], [9], [40], [9]], (4, 90)).astype(float)
    y = 1 + 2 * a - b + g / 40
    is_class = options[1] in ("logistic", "forest", "linear-svm")
    y = np.where(y > 8, "yes", "no") if is_class else np.round(np.abs(y)) if options[1] == "poisson" else y
    table = pd.DataFrame({"a": a, "b": b, "g": g, "w": w + 1, "y": y})
    table.to_csv("data.csv", index=False)
    fit = cli("fit", "data.csv", "-t", "y", "-o", "out", "--cv", "0", "--holdout", "0.2", *options)
    assert fit.exit_code == 0, fit.output
    printed = re.search(r"^certifit (verify .*)$", Path("out/MODEL_CARD.md").read_text(), re.MULTILINE)[1]
    command = [part.replace("model.certifit", "out/model.certifit") for part in shlex.split(printed)]
    assert cli(*command).exit_code == 0 and re.search("[(]7[0-4] rows", cli(*command).output)
    if options[1] == "ridge":
        between = ("--interval", "0.9", "--fitted-on", "data.csv")
        assert cli("predict", "out/model.certifit", "data.csv", *between).exit_code == 0
        model, scan = cf.load("out/model.certifit"), cf.scan_csv("data.csv", target="y", group="g")
        assert cf.verify(model, scan).holds
        with pytest.raises(ValueError, match="groups of column 'g' aside"):
            cf.verify(model, cf.scan_csv("data.csv", target="y"))
        model.coef_ = model.coef_ * (1 + 1e-4)
        cf.save(model, "out/model.certifit")
        assert cli(*command).exit_code == 1
    table[:72].to_csv("data.csv", index=False)
    assert "Its fit set rows aside: give the whole table" in cli(*command).output


def test_models_of_models_keep_which_rows_were_set_aside(tmp_path):
    row = ROWS["calibrated"]
    model = clone(row.model).fit(*row.rows())
    model.data_["held_out"] = {"share": 0.2, "is_stratified": True, "group": None, "random_state": 0}
    cf.save(model, tmp_path / "m.certifit")
    assert cf.load(tmp_path / "m.certifit").data_ == model.data_
    model.data_["held_out"]["share"] = 1.5
    with pytest.raises(ModelFileError, match="a share above 0 and below 1"):
        cf.save(model, tmp_path / "m.certifit")
