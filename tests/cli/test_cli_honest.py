"""Answers of the command line that must not mislead: constant targets, units, intervals, other rows, tiny losses."""

import numpy as np
import pytest
from conftest import write

import certifit as cf


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(4)
    a, b, c = rng.normal(size=(3, 120))
    columns = {"a": a, "b": 100 * b, "c": 0.01 * c, "y": a - 0.5 * b + rng.normal(size=120)}
    write(tmp_path / "rows.csv", columns)
    return tmp_path / "rows.csv", columns


def words(result):
    return " ".join(result.output.split())


@pytest.mark.parametrize("value", [0.1, -0.5, 3.0])
@pytest.mark.parametrize("options", [[], ["--task", "quantity", "--model", "ridge"], ["--cv", "0"]])
def test_a_constant_target_is_refused(cli, rows, value, options):
    path, columns = rows
    write(path, columns | {"y": np.full(120, value)})
    result = cli("fit", path, "-t", "y", "-o", "out", *options)
    assert result.exit_code == 2
    assert f"Column 'y' is {value:g} in every row" in words(result)
    assert not (path.parent / "out").exists()


def test_a_target_that_varies_by_roundings_is_not_said_to_be_constant(cli, rows):
    path, columns = rows
    write(path, columns | {"y": 1e15 + np.arange(120) % 2})
    result = cli("fit", path, "-t", "y", "-o", "out", "--model", "linear")
    assert result.exit_code == 2 and "varies so little beside its size" in words(result)
    assert "in every row" not in words(result)


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        ({"y": [1.0] + 119 * [0.0]}, [], "The targets are equal in all rows that are fitted, such as those of a fold"),
        (
            {"y": 40 * [0.0, 1.0, 2.0], "o": [800.0] + 119 * [0.0]},
            ["--offset", "o"],
            "an offset, an exposure or a target",
        ),
    ],
)
def test_a_fit_of_counts_that_cannot_start_says_why(cli, rows, changed, options, said):
    """The targets were said to be too large."""
    path, columns = rows
    write(path, columns | changed)
    result = cli("fit", path, "-t", "y", "-o", "out", "--task", "counts", "--model", "poisson", "--cv", "3", *options)
    assert result.exit_code == 2 and said in words(result) and "targets are too large" not in words(result)


@pytest.mark.parametrize("task", ["quantity", "counts", "classes"])
def test_another_unit_changes_neither_winner_nor_penalty_nor_predictions(cli, rows, task):
    path, columns = rows
    rng = np.random.default_rng(0)
    z = columns["a"] - 0.005 * columns["b"]
    y = {"quantity": columns["y"], "counts": rng.poisson(np.exp(z)), "classes": (z + rng.logistic(size=120) > 0) + 3}
    models = {
        "quantity": ["--model", "ridge"],
        "counts": ["--model", "poisson-ridge"],
        "classes": ["--model", "logistic"],
    }
    found = []
    for unit in (1.0, 1000.0):
        write(path, columns | {"a": columns["a"] * unit, "y": y[task]})
        outputs = []
        for name, options in (("auto", []), ("one", models[task])):
            result = cli("fit", path, "-t", "y", "-o", name, "--task", task, *options)
            assert result.exit_code == 0, result.output
            outputs.append(result.output)
        table = [line.split("  ")[0:2] for line in outputs[0].splitlines() if line.startswith("* ")]
        model = cf.load(path.parent / "one" / "model.certifit")
        data = cf.scan_csv(path, target="y", types={"y": "number"})
        found.append((table, model.alpha_, model.predict(data.select(["a", "b", "c"]))))
    assert found[0][0] == found[1][0] and found[0][1] == found[1][1]
    assert found[0][2] == pytest.approx(found[1][2], rel=1e-8, abs=1e-8)


def test_a_penalised_fit_has_intervals_from_held_out_rows(cli, rows):
    path, columns = rows
    cli("fit", path, "-t", "y", "-o", "out", "--model", "lasso", "--alpha", "0.05")
    model = path.parent / "out" / "model.certifit"
    refused = cli("predict", model, path, "--interval", "0.9")
    assert refused.exit_code == 2
    assert "a Lasso with a penalty has no intervals of its own" in words(refused) and "--fitted-on" in words(refused)
    result = cli("predict", model, path, "--interval", "0.9", "--fitted-on", path, "-o", "p.csv")
    assert result.exit_code == 0, result.output
    found = np.loadtxt("p.csv", delimiter=",", skiprows=1)
    tuned = cf.CrossValidated(cf.Lasso(standardize=True), {"alpha": [0.05]}, intervals=True)
    tuned.fit(cf.scan_csv(path, target="y"))
    expected = tuned.intervals_.at(cf.scan_csv(path, target="y").select(["a", "b", "c"]), 0.9)
    assert found[:, 1:] == pytest.approx(expected, abs=1e-9)
    assert 0.8 < np.mean((columns["y"] >= found[:, 1]) & (columns["y"] <= found[:, 2])) <= 1


def test_intervals_need_the_rows_of_the_fit(cli, rows):
    path, columns = rows
    cli("fit", path, "-t", "y", "-o", "out", "--model", "lasso", "--alpha", "0.05")
    write(path.parent / "few.csv", {name: values[:50] for name, values in columns.items()})
    result = cli("predict", "out/model.certifit", path, "--interval", "0.9", "--fitted-on", "few.csv")
    assert result.exit_code == 2 and "50 rows, and the model was fitted to 120" in words(result)
    result = cli("predict", "out/model.certifit", path, "--fitted-on", path)
    assert result.exit_code == 2 and "Add --interval" in words(result)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_columns_are_selected_for_counts_with_an_exposure(cli, rows, direction):
    path, columns = rows
    rng = np.random.default_rng(1)
    years = rng.uniform(0.5, 2.0, 120)
    claims = rng.poisson(years * np.exp(columns["a"]))
    write(path, {"a": columns["a"], "b": columns["b"], "years": years, "claims": claims})
    options = ["--exposure", "years", "--direction", direction, "--features", "1"]
    result = cli("select", path, "-t", "claims", "-o", "out", *options)
    assert result.exit_code == 0, result.output
    assert "1 column chosen: a." in words(result) and "Poisson deviance" in result.output
    model = cf.load("out/model.certifit")
    peer = cf.GLM("poisson").fit(columns["a"][:, None], claims, exposure=years)
    assert model.coef_ == pytest.approx(peer.coef_, rel=1e-6)
    assert cli("select", path, "-t", "claims", "-o", "two", "--task", "counts").exit_code == 0


def test_other_rows_are_called_other_rows(cli, rows):
    path, columns = rows
    label = (columns["y"] > 0).astype(int)
    write(path, columns | {"y": label})
    cli("fit", path, "-t", "y", "-o", "out", "--model", "logistic", "--alpha", "0.0001")
    write(path.parent / "other.csv", {name: values[::-1] for name, values in columns.items()} | {"y": label})
    result = cli("verify", "out/model.certifit", "other.csv")
    assert result.exit_code == 1
    assert "max_iter" not in result.output and "solver" not in result.output
    assert "not the rows of the fit" in words(result) or "not those of the fit" in words(result)


def test_a_tiny_log_loss_is_not_printed_as_nothing(cli, rows):
    path, columns = rows
    label = np.arange(120) % 2
    write(path, {"a": 0.01 * columns["a"] + 100 * label, "b": columns["b"], "y": label})
    result = cli("fit", path, "-t", "y", "-o", "out", "--task", "classes")
    assert result.exit_code == 0, result.output
    assert "(+-0)" not in result.output and "log loss is 0" not in result.output
    assert "log loss is below 1e-15" in words(result)


def test_one_class_for_every_row_has_no_f1(cli, rows):
    path, columns = rows
    write(path, {"a": columns["a"], "b": columns["b"], "y": (np.arange(120) % 3)})
    result = cli("fit", path, "-t", "y", "-o", "out", "--task", "classes")
    assert "class shares: every row is put in the same class" in words(result)
    assert "0.167" not in result.output and "0.166" not in result.output


@pytest.fixture
def copied(tmp_path):
    """60 rows, of which the last 20 repeat the first."""
    rng = np.random.default_rng(5)
    columns = {name: rng.normal(size=40) for name in ("a", "b")}
    columns["y"] = columns["a"] + rng.normal(size=40)
    write(tmp_path / "copied.csv", {name: np.append(values, values[:20]) for name, values in columns.items()})
    return tmp_path / "copied.csv"


def test_copies_are_counted_and_kept_together_on_request(cli, copied):
    result = cli("fit", copied, "-t", "y", "-o", "out", "--model", "linear")
    assert "20 of 60 rows repeat an earlier row" in words(result) and "--copies together" in words(result)
    assert "20 of 60 rows repeat" in (copied.parent / "out" / "report.html").read_text()
    kept = cli("fit", copied, "-t", "y", "-o", "kept", "--model", "linear", "--copies", "together")
    assert kept.exit_code == 0 and "Copies of a row are in the same fold." in words(kept)
    own = cf.CrossValidated(
        cf.LinearRegression(), cv=cf.Folds(10, copies="together"), scoring="neg_root_mean_squared_error"
    )
    own.fit(cf.scan_csv(copied, target="y"))
    assert f"{-own.cv_results_['mean_test_score'][0]:.3f}"[:4] in kept.output
    refused = cli("fit", copied, "-t", "y", "-o", "x", "--copies", "together", "--group", "a")
    assert refused.exit_code == 2 and "does not go with --group" in words(refused)


def test_rows_without_copies_say_nothing_of_them(cli, rows):
    assert "repeat an earlier row" not in words(cli("fit", rows[0], "-t", "y", "-o", "out", "--cv", "3"))
