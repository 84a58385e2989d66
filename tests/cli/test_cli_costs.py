"""Class weights and costs of mistakes on the command line."""

import json
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

import certifit as cf
from certifit import cli
from certifit.evaluation.metrics.costs import cheapest, mean_cost, threshold


def run(*args):
    return CliRunner().invoke(cli.main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    label = np.where(x + rng.normal(size=200) > 1, "bad", "good")
    path = tmp_path_factory.mktemp("costs") / "rows.csv"
    path.write_text(
        "x,y,label\n" + "\n".join(f"{a:.4f},{b:.4f},{c}" for a, b, c in zip(x, x**2 - 1, label, strict=True))
    )
    return path


@pytest.fixture(scope="module")
def fitted(table):
    out = table.parent / "out"
    options = ["--columns", "x", "--model", "logistic", "--alpha", "0.01", "--cv", "3", "--positive", "bad"]
    result = run("fit", table, "-t", "label", "-o", out, *options, "--costs", "bad=4")
    assert result.exit_code == 0, result.output
    return out, result.output


def test_the_decision_has_the_least_expected_cost_of_all():
    rng = np.random.default_rng(1)
    proba, costs = rng.dirichlet(np.ones(3), 50), np.array([1.0, 2.0, 7.0])
    expected = np.array([[sum(costs[k] * p[k] for k in range(3) if k != j) for j in range(3)] for p in proba])
    np.testing.assert_array_equal(cheapest(proba, costs), expected.argmin(axis=1))


def test_the_threshold_of_two_classes_is_where_both_cost_the_same():
    costs = np.array([4.0, 1.0])
    at = threshold(costs, 0)
    assert at == 0.2
    for p, decided in ((at + 1e-9, 0), (at - 1e-9, 1)):
        assert cheapest(np.array([[p, 1 - p]]), costs)[0] == decided


def test_the_mean_cost_counts_weights_as_rows():
    codes, decided, costs = np.array([0, 1, 1]), np.array([1, 1, 0]), np.array([4.0, 1.0])
    once, twice = (
        mean_cost(codes, decided, costs, np.array([2.0, 1.0, 1.0])),
        mean_cost(codes[[0, 0, 1, 2]], decided[[0, 0, 1, 2]], costs),
    )
    assert once == twice and once.value == 9 / 4


def test_the_report_tells_what_decisions_by_cost_save(fitted):
    out, said = fitted
    costs = json.loads((out / "report.json").read_text())["classes"]["costs"]
    assert costs["threshold"] == 0.2 and costs["is_new"]
    assert costs["decided"]["value"] < costs["most_probable"]["value"]
    assert "predict --costs bad=4,good=1" in " ".join(said.split())
    assert "Decisions by cost" in (out / "report.html").read_text()


def test_costs_to_copy_are_one_word_for_the_shell(table, tmp_path):
    """Unquoted, `<` reads a file and `>` writes one."""
    labels = table.read_text().replace("bad", ">50 K").replace("good", "<=50 K")
    (tmp_path / "rows.csv").write_text(labels)
    options = ["--columns", "x", "--model", "logistic", "--alpha", "0.01", "--cv", "3", "--costs", ">50 K=4"]
    said = " ".join(run("fit", tmp_path / "rows.csv", "-t", "label", "-o", tmp_path / "out", *options).output.split())
    words = shlex.split(said[said.index("certifit predict --costs") :].partition(" converged ")[0])
    assert words[2:] == ["--costs", "<=50 K=1,>50 K=4"]
    result = run("predict", tmp_path / "out" / "model.certifit", tmp_path / "rows.csv", *words[2:])
    assert result.exit_code == 0, result.output


def test_predict_decides_by_cost_as_by_the_threshold(fitted, table):
    out, _ = fitted
    for name, how in (("a", ["--costs", "bad=4"]), ("b", ["--threshold", "bad=0.2"]), ("c", [])):
        result = run("predict", out / "model.certifit", table, *how, "-o", table.parent / f"{name}.csv")
        assert result.exit_code == 0, result.output
    a, b, c = ((table.parent / f"{name}.csv").read_text() for name in "abc")
    assert a == b and a.count("bad") > c.count("bad")


@pytest.mark.parametrize(("written", "parameter"), [("balanced", "balanced"), ("bad=3", {"bad": 3.0})])
def test_class_weights_are_those_of_python(table, tmp_path, written, parameter):
    options = ["--columns", "x", "--model", "logistic", "--alpha", "0", "--cv", "0", "--class-weight", written]
    assert run("fit", table, "-t", "label", "-o", tmp_path / "out", *options).exit_code == 0
    source = cf.scan_csv(table, target="label", columns=["x"])
    model = cf.LogisticRegression(alpha=0, class_weight=parameter, encoder=cf.TableEncoder()).fit(source)
    np.testing.assert_array_equal(cf.load(tmp_path / "out" / "model.certifit").coef_, model.coef_)


REFUSED = {
    "a label that is not there": (["-t", "label", "--costs", "ugly=4"], "names 'ugly', and the classes are bad, good"),
    "a label alone": (["-t", "label", "--costs", "good"], "--costs is LABEL=NUMBER,... with numbers"),
    "no cost": (["-t", "label", "--costs", "bad=-1"], "with numbers above 0"),
    "a quantity": (["-t", "y", "--costs", "bad=4"], "is for classes, and 'y' is"),
    "weights of a quantity": (["-t", "y", "--class-weight", "balanced"], "is for classes, and 'y' is"),
    "a model without class weights": (
        ["-t", "label", "--model", "tree", "--class-weight", "balanced"], "--class-weight is for --model logistic",
    ),
    "no folds": (["-t", "label", "--costs", "bad=4", "--cv", "0"], "measured on new rows"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(table, tmp_path, options, words):
    result = run("fit", table, "-o", tmp_path / "out", *options)
    assert result.exit_code == 2 and words in result.output
