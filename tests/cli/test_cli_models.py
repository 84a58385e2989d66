"""The models of `certifit fit`: each is that of the library, and an option that does not go with it is refused."""

import json

import numpy as np
import pytest
from conftest import write

import certifit as cf
from certifit.cli.models import GOES_WITH


@pytest.fixture
def table(tmp_path):
    """Six columns of which y = 3 a - 2 b + noise needs two, with a few outliers."""
    rng = np.random.default_rng(1)
    columns = dict(zip("abcdef", rng.normal(size=(6, 150)), strict=True))
    columns["c"] = columns["c"] * 1000
    y = 3 * columns["a"] - 2 * columns["b"] + rng.standard_t(2, size=150)
    write(tmp_path / "table.csv", columns | {"y": y})
    return tmp_path / "table.csv"


def loaded(table):
    return cf.load(table.parent / "out" / "model.certifit")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--model", "lasso", "--alpha", "0.1"], cf.Lasso(0.1, standardize=True)),
        (
            ["--model", "lasso", "--alpha", "0.1", "--increasing", "b,a", "--decreasing", "c", "--unpenalised", "d"],
            cf.Lasso(
                0.1,
                standardize=True,
                bounds={"a": "increasing", "b": "increasing", "c": "decreasing"},
                penalty_factors={"d": 0.0},
            ),
        ),
        (["--model", "elastic-net", "--alpha", "0.1", "--l1-ratio", "0.3"], cf.ElasticNet(0.1, 0.3, standardize=True)),
        (["--model", "huber"], cf.HuberRegressor()),
        (["--model", "huber", "--delta", "2", "--alpha", "0.5"], cf.HuberRegressor(2.0, 0.5, standardize=True)),
    ],
)
def test_the_model_is_that_of_the_library(cli, table, options, expected):
    result = cli("fit", table, "-t", "y", "-o", "out", *options)
    assert result.exit_code == 0, result.output
    expected.fit(cf.scan_csv(table, target="y"))
    assert loaded(table).coef_.tobytes() == expected.coef_.tobytes()


@pytest.mark.parametrize("options", [["--model", "network"], ["--model", "network", "--task", "quantity"]])
def test_a_network_is_that_of_the_target(cli, table, options):
    result = cli("fit", table, "-t", "y", "-o", "out", *options, "--hidden", "6,4", "--max-iter", "3", "--cv", "0")
    assert result.exit_code == 1 and "above that of the best constant" in " ".join(result.output.split()), result.output
    model = loaded(table)
    assert isinstance(model, cf.MLPRegressor) and model.layer_sizes_ == (6, 6, 4, 1) and model.n_iter_ == 3
    assert "--max-iter" in result.output


def test_a_tree_is_that_of_the_target(cli, table):
    result = cli("fit", table, "-t", "y", "-o", "out", "--model", "tree", "--max-depth", "2", "--cv", "0")
    assert result.exit_code == 0 and isinstance(loaded(table), cf.DecisionTreeRegressor), result.output


def test_whole_numbers_of_few_values_are_classes_of_a_network_by_its_name(cli, tmp_path):
    rng = np.random.default_rng(0)
    a = rng.normal(size=90)
    write(tmp_path / "table.csv", {"a": a, "label": np.digitize(a, [-0.4, 0.4])})
    result = cli("fit", "table.csv", "-t", "label", "-o", "out", "--model", "network", "--max-iter", "3", "--cv", "0")
    assert result.exit_code == 0, result.output
    assert isinstance(loaded(tmp_path / "table.csv"), cf.MLPClassifier)


@pytest.mark.parametrize(
    ("options", "words"), [(["--hidden", "6,x"], "hidden must be"), (["--hidden", "0"], "hidden must be")]
)
def test_layers_that_are_none_are_refused_in_words(cli, table, options, words):
    result = cli("fit", table, "-t", "y", "-o", "out", "--model", "network", *options)
    assert result.exit_code == 2 and words in result.output


def test_refits_that_would_take_long_are_left_out_unasked(cli, table, monkeypatch):
    from certifit.cli import what_to_fit

    monkeypatch.setattr(what_to_fit, "FREE_WORK", 1.0)
    monkeypatch.setattr("certifit.models.local.model.MOST_SECONDS", 0.0)
    result = cli("fit", table, "-t", "y", "-o", "out", "--model", "local", "--tau", "1")
    assert result.exit_code == 0 and "add --cv 10" in " ".join(result.output.split()), result.output


@pytest.mark.parametrize("rule", ["min", "1se"])
@pytest.mark.parametrize("kind", ["lasso", "elastic-net"])
def test_the_folds_choose_the_penalty(cli, table, kind, rule):
    result = cli("fit", table, "-t", "y", "-o", "out", "--model", kind, "--rule", rule)
    assert result.exit_code == 0, result.output
    model = cf.Lasso(standardize=True) if kind == "lasso" else cf.ElasticNet(standardize=True)
    tuned = cf.CrossValidated(model, cv=10, rule=rule, scoring="neg_root_mean_squared_error")
    tuned.fit(cf.scan_csv(table, target="y"))
    assert loaded(table).alpha_ == pytest.approx(tuned.best_params_["alpha"], rel=1e-9)


def test_auto_compares_the_lasso_too(cli, table):
    result = cli("fit", table, "-t", "y", "-o", "out")
    assert result.exit_code == 0, result.output
    for name in ("least squares", "ridge", "lasso", "mean of y"):
        assert name in result.stdout


def test_the_report_of_a_lasso_tells_what_it_left_out(cli, table):
    result = cli("fit", table, "-t", "y", "-o", "out", "--model", "lasso", "--alpha", "0.3")
    assert result.exit_code == 0, result.output
    assert "dropped" in result.stdout
    context = json.loads((table.parent / "out" / "report.json").read_text())
    assert context["certificate"]["holds"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--alpha", "1"], f"--alpha is for --model {' or '.join(GOES_WITH['alpha'])}, and"),
        (["--model", "ridge", "--l1-ratio", "0.5"], "--l1-ratio is for --model elastic-net"),
        (["--model", "linear", "--increasing", "a"], "--increasing is for --model lasso or elastic-net"),
        (["--model", "lasso", "--delta", "1"], "--delta is for --model huber"),
        (["--model", "lasso", "--increasing", "A"], "--increasing: the data has no column 'A'. Did you mean 'a'?"),
        (["--model", "lasso", "--increasing", "a", "--decreasing", "a"], "a cannot be both"),
        (["--model", "lasso", "--cv", "0"], "needs folds to choose the penalty, or --alpha A"),
        (["--model", "lasso", "--alpha", "-1"], "alpha must be a finite number >= 0"),
        (["--model", "elastic-net", "--l1-ratio", "2"], "l1_ratio must be a number above 0 and at most 1"),
    ],
)
def test_what_does_not_go_together_is_refused_and_nothing_written(cli, table, options, words):
    result = cli("fit", table, "-t", "y", "-o", "out", *options)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.output.split())
    assert not (table.parent / "out").exists()
