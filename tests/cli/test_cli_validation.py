"""certifit fit: cross-validation, the choice of the model, and what is said when it cannot be done."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import certifit as cf
from certifit.selection.compare.leaderboard import leaderboard
from certifit.selection.compare.leaderboard_table import RMSE


def context_of(folder="out"):
    return json.loads(Path(folder, "report.json").read_text())


def validation_of(folder="out"):
    return context_of(folder)["validation"]


def write(name, columns):
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    Path(name).write_text("\n".join(lines) + "\n")


def noisy(n_rows=60, n_columns=40, seed=3):
    """Many columns that say little, so that a penalty pays."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).round(4)
    return {f"x{j}": X[:, j] for j in range(n_columns)} | {"y": (X[:, 0] + 2 * rng.normal(size=n_rows)).round(4)}


def models():
    lasso = cf.CrossValidated(cf.Lasso(standardize=True))
    return {"least squares": cf.LinearRegression(), "ridge": cf.Ridge(standardize=True), "lasso": lasso}


def test_the_leaderboard_is_that_of_the_library(cli, data):
    result = cli("fit", data, "-t", "y", "-o", "out")
    assert result.exit_code == 0 and result.stderr == ""
    board = leaderboard(models(), cf.scan_csv(data, target="y"), prefer="least squares")
    validation = validation_of()
    assert [row["name"] for row in validation["rows"]] == [entry.name for entry in board.entries]
    for row, entry in zip(validation["rows"], board.entries, strict=True):
        assert row["error"] == -entry.score and row["standard_error"] == entry.standard_error
        assert row["r2"] == board.r2(entry) and row["folds"] == (-entry.fold_scores).tolist()
    assert validation["chosen"] == board.chosen.name == "least squares"
    assert "Error of y on new rows, 10 folds" in result.stdout
    assert "* least squares" in result.stdout and "mean of y (baseline)" in result.stdout
    assert "Least squares was taken" in result.stdout
    assert result.stdout.index("mean of y") < result.stdout.index("y from 2 columns")


def test_a_penalty_is_taken_where_it_is_clearly_better_and_the_sentence_says_so(cli):
    write("noisy.csv", noisy())
    result = cli("fit", "noisy.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 0, result.output
    source = cf.scan_csv("noisy.csv", target="y")
    best = leaderboard(models(), source).best
    assert best.name == "lasso"  # one column of many matters
    model = cf.load("out/model.certifit")
    assert model.alpha_ == best.params["alpha"]
    assert model.coef_.tobytes() == best.model.fit(source).coef_.tobytes()
    assert (
        "* lasso" in result.stdout
        and "Lasso was taken: it has the smallest error; that of least squares" in result.stdout
    )
    assert cli("verify", "out/model.certifit", "noisy.csv").exit_code == 0


@pytest.mark.parametrize("rule", ["min", "1se"])
def test_ridge_is_tuned_by_the_rule(cli, rule):
    write("noisy.csv", noisy())
    assert (
        cli("fit", "noisy.csv", "-t", "y", "-o", "out", "--model", "ridge", "--rule", rule, "--cv", "5").exit_code == 0
    )
    source = cf.scan_csv("noisy.csv", target="y")
    search = cf.CrossValidated(cf.Ridge(standardize=True), scoring=RMSE, rule=rule, cv=5).fit(source)
    assert cf.load("out/model.certifit").alpha_ == search.best_params_["alpha"]
    curve = validation_of()["curve"]
    assert curve["values"][curve["chosen"]] == search.best_params_["alpha"]
    assert curve["values"][curve["best"]] <= curve["values"][curve["chosen"]]


def test_an_alpha_that_is_given_is_kept_and_its_error_reported(cli, data):
    result = cli("fit", data, "-t", "y", "-o", "out", "--model", "ridge", "--alpha", "0.5")
    assert result.exit_code == 0
    ridge = cf.Ridge(standardize=True)
    search = cf.CrossValidated(ridge, {"alpha": [0.5]}, scoring=RMSE).fit(cf.scan_csv(data, target="y"))
    row = next(row for row in validation_of()["rows"] if row["name"] == "ridge")
    assert row["error"] == pytest.approx(-search.best_score_, rel=1e-12)
    assert validation_of()["curve"] is None


def test_no_folds_are_as_before(cli, data):
    result = cli("fit", data, "-t", "y", "-o", "out", "--cv", "0")
    assert result.exit_code == 0 and "new rows" not in result.stdout
    assert context_of()["validation"] is None
    assert 'id="validation"' not in Path("out/report.html").read_text()


@pytest.mark.parametrize(
    "options", [["--degree", "2"], ["--no-intercept"], ["--categories", "k"], ["--weight", "w"]], ids=" ".join
)
def test_every_way_to_fit_is_cross_validated(cli, options, monkeypatch):
    monkeypatch.setattr("certifit.cli.what_to_fit.N_REFITTED", 5)
    rng = np.random.default_rng(0)
    a = rng.normal(size=40).round(3)
    gaps = ["" if i % 9 == 4 else value for i, value in enumerate(a)]
    columns = {"a": gaps, "k": rng.integers(1, 4, 40), "w": rng.integers(1, 4, 40)}
    columns |= {"city": rng.choice(["Bern", "Rome"], 40), "y": (a**2 + rng.normal(size=40)).round(3)}
    write("gaps.csv", columns)
    result = cli("fit", "gaps.csv", "-t", "y", "-o", "out", "--cv", "4", *options)
    assert result.exit_code == 0, result.output
    validation = validation_of()
    assert validation["n_splits"] == 4 and {"least squares", "mean of y"} <= {row["name"] for row in validation["rows"]}
    assert result.stderr == ""


def test_refits_that_nobody_asked_for_are_few(cli, data, monkeypatch):
    monkeypatch.setattr("certifit.cli.what_to_fit.FREE_CELLS", 100)
    result = cli("fit", data, "-t", "y", "-o", "out", "--degree", "2")
    assert result.exit_code == 0 and "Ridge needs a refit" in result.stdout and "add --cv 10" in result.stdout
    assert [row["name"] for row in validation_of()["rows"]] == ["least squares", "mean of y"]
    result = cli("fit", data, "-t", "y", "-o", "out", "--degree", "2", "--model", "ridge")
    assert result.exit_code == 0 and "Not cross-validated: Ridge needs" in result.stdout
    assert validation_of()["rows"] == [] and "add --cv 10" in " ".join(validation_of()["sentences"])


def test_rows_of_a_group_stay_together(cli, tmp_path):
    rng = np.random.default_rng(0)
    write(
        "g.csv", {"a": rng.normal(size=60).round(3), "who": [f"p{k // 4}" for k in range(60)], "y": rng.normal(size=60)}
    )
    result = cli("fit", "g.csv", "-t", "y", "-o", "out", "--group", "who", "--cv", "5")
    assert result.exit_code == 0, result.output
    assert "5 folds, rows with the same who kept together" in result.stdout
    assert list(cf.load("out/model.certifit").feature_names_in_) == ["a"]
    board = leaderboard({"least squares": cf.LinearRegression()}, cf.scan_csv("g.csv", target="y", group="who"), cv=5)
    row = next(row for row in validation_of()["rows"] if row["name"] == "least squares")
    assert row["error"] == -board.best.score
    assert cli("verify", "out/model.certifit", "g.csv").exit_code == 0
    assert cli("predict", "out/model.certifit", "g.csv", "-o", "p.csv").exit_code == 0


@pytest.mark.parametrize(
    ("n_rows", "n_folds", "words"),
    [(3, 0, "Folds need 4 rows at least. The data has 3"), (5, 2, "2 folds instead of 10"), (12, 10, "10 folds")],
)
def test_few_rows_lower_the_folds_or_skip_them_with_a_sentence(cli, tmp_path, n_rows, n_folds, words):
    write("few.csv", {"a": range(n_rows), "y": [k * k % 5 for k in range(n_rows)]})
    result = cli("fit", "few.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 0, result.output
    assert words in result.stdout and validation_of()["n_splits"] == n_folds
    assert words.split(".")[0] in Path("out/report.html").read_text()


def test_few_groups_lower_the_folds(cli, tmp_path):
    write("g.csv", {"a": range(20), "who": ["u", "v"] * 10, "one": ["x"] * 20, "y": [k * k % 7 for k in range(20)]})
    assert (
        "2 folds instead of 10: there are only 2 groups"
        in cli("fit", "g.csv", "-t", "y", "-o", "o1", "--group", "who").stdout
    )
    assert "of one group" in cli("fit", "g.csv", "-t", "y", "-o", "o2", "--group", "one").stdout


def test_what_cannot_be_validated_is_fitted_all_the_same_unless_folds_were_asked_for(cli, tmp_path):
    write("w.csv", {"a": range(30), "w": [int(k < 3) for k in range(30)], "y": [k * k % 7 for k in range(30)]})
    options = ["-t", "y", "-o", "out", "--weight", "w", "--task", "quantity", "--show-values"]  # of 3 rows
    result = cli("fit", "w.csv", *options)
    assert result.exit_code == 0 and "Not cross-validated: The validation rows" in result.stdout
    assert "--cv" not in result.stdout
    result = cli(
        "fit", "w.csv", "-t", "y", "-o", "out", "--weight", "w", "--cv", "10", "--task", "quantity", "--show-values"
    )
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1


def test_bad_data_are_named_as_without_folds(cli, tmp_path):
    Path("bad.csv").write_text("a,y\n" + "".join(f"{k},{k}\n" for k in range(20)) + "5,inf\n")
    result = cli("fit", "bad.csv", "-t", "y", "-o", "out")
    assert result.exit_code == 2 and "infinite at line 22" in result.stderr


def test_fewer_rows_than_columns_are_never_preferred_for_p_values_they_cannot_have(cli, monkeypatch):
    write("wide.csv", noisy(14, 20))
    result = cli("fit", "wide.csv", "-t", "y", "-o", "out", "--cv", "3")
    assert result.exit_code == 0, result.output
    assert validation_of()["chosen"] == validation_of()["best"]
    assert "p-values" not in " ".join(validation_of()["sentences"])


def test_constant_and_exact_targets(cli, tmp_path):
    write("c.csv", {"a": range(30), "y": [5] * 30})
    assert "'y' is 5 in every row" in cli("fit", "c.csv", "-t", "y", "-o", "o1").stderr
    write("e.csv", {"a": range(30), "y": [2 * k + 1 for k in range(30)]})
    assert "* least squares" in cli("fit", "e.csv", "-t", "y", "-o", "o2").stdout
    assert validation_of("o2")["rows"][0]["error"] < 1e-12


def test_huge_numbers_have_no_squares_and_are_fitted_all_the_same(cli, tmp_path):
    rng = np.random.default_rng(0)
    write("big.csv", {"a": [f"{v}e150" for v in rng.normal(size=40)], "y": [f"{v}e290" for v in rng.normal(size=40)]})
    result = cli("fit", "big.csv", "-t", "y", "-o", "out")
    assert result.exit_code in (0, 1), result.output
    assert Path("out/report.html").exists()


@pytest.mark.parametrize("a, y", [("", "e300"), ("", "e-300"), ("", "e-320"), ("e300", "")])
def test_targets_and_columns_near_the_ends_of_float64_have_a_report(cli, tmp_path, a, y):
    """Squares of a target of 1e300 are infinite, those of one of 1e-300 are 0, and so are variances of 1 / 1e300."""
    rng = np.random.default_rng(0)
    x, level = rng.normal(size=60).round(3), rng.integers(0, 3, 60)
    target = (1 + 2 * x + level + rng.normal(size=60)).round(3)
    rows = {"a": [f"{v}{a}" for v in x], "g": [f"g{v}" for v in level], "y": [f"{v}{y}" for v in target]}
    write("far.csv", rows)
    result = cli("fit", "far.csv", "-t", "y", "-o", "out", "--model", "linear")
    assert result.exit_code == (1 if y == "e-320" else 0), result.output  # numbers below 2.2e-308 have few digits
    assert ("leave the range of float64. Give columns" in " ".join(result.stdout.split())) == bool(a)
    assert cli("verify", "out/model.certifit", "far.csv").exit_code == result.exit_code
    if y:  # asked for, an error that has no value is a refusal
        refused = cli("fit", "far.csv", "-t", "y", "-o", "out2", "--model", "linear", "--cv", "3")
        assert refused.exit_code == 2 and "so the root mean squared error has no value." in refused.stderr


def test_an_error_far_beyond_the_baseline_has_few_digits(cli, tmp_path):
    rng = np.random.default_rng(0)
    write(
        "far.csv", {"a": [f"{v}e{10 * k - 300}" for k, v in enumerate(rng.normal(size=60))], "y": rng.normal(size=60)}
    )
    told = cli("fit", "far.csv", "-t", "y", "-o", "out", "--model", "linear").stdout
    assert validation_of("out")["rows"][-1]["r2"] < -1e6
    assert not re.search(r"\d{12}", told) and not re.search(r"\d{12}[^\d\"]*%", Path("out/report.html").read_text())
