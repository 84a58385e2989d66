"""Classes on the command line: the task is recognised, labels of any type come back as they were, text is used."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certifit as cf
from certifit.cli.models import Choice
from certifit.cli.what_to_fit import _reading

N = 240
WORDS = {"ham": "home dinner later mother train ok", "spam": "win cash prize free urgent claim"}
COMMON = "the a you to and call now is on it"


def write_rows(path, columns):
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


@pytest.fixture
def flowers(tmp_path):
    """flowers.csv: three kinds told by two numbers and a category; flag, code and grade are other targets."""
    rng = np.random.default_rng(0)
    kind = np.arange(N) % 3
    columns = {
        "length": (rng.normal(size=N) + 1.5 * kind).round(4),
        "width": (rng.normal(size=N) - kind).round(4),
        "soil": rng.choice(["clay", "sand"], N),
        "kind": np.array(["rose", "iris", "lily"])[kind],
    }
    write_rows(tmp_path / "flowers.csv", columns)
    facts = {name: columns[name] for name in ("length", "width", "soil")}
    targets = {"flag": np.where(kind == 1, "true", "false"), "code": kind + 1, "two": 5 + (kind == 2), "grade": kind}
    for name, values in targets.items():
        write_rows(tmp_path / f"{name}.csv", facts | {name: values})
    return tmp_path / "flowers.csv"


@pytest.fixture
def messages(tmp_path):
    """messages.csv: texts of two kinds, with a number and a category beside them."""
    rng = np.random.default_rng(1)
    label = np.where(rng.random(N) < 0.3, "spam", "ham")
    pools = {name: np.array(words.split()) for name, words in WORDS.items()}
    common = np.array(COMMON.split())
    texts = [
        " ".join(
            [*rng.choice(pools[name], 3), *rng.choice(common, 5), *rng.choice(np.concatenate([*pools.values()]), 1)]
        )
        for name in label
    ]
    columns = {"text": texts, "size": rng.normal(size=N).round(3), "phone": rng.choice(["new", "old"], N)}
    write_rows(tmp_path / "messages.csv", columns | {"label": label})
    return tmp_path / "messages.csv"


def loaded(folder):
    return cf.load(Path(folder) / "model.certifit")


def context_of(folder):
    return json.loads((Path(folder) / "report.json").read_text())


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("file", "target", "classes"),
    [
        ("flowers.csv", "kind", ["iris", "lily", "rose"]),
        ("flag.csv", "flag", [False, True]),
        ("two.csv", "two", [5, 6]),
    ],
)
def test_text_flags_and_two_whole_numbers_are_classes(fitted, flowers, file, target, classes):
    result = fitted(file, "-t", target)
    assert loaded("out").classes_.tolist() == classes
    for name in ("linear discriminant", "quadratic discriminant", "Gaussian naive Bayes", "class shares"):
        assert name in result.stdout


def test_a_few_whole_numbers_are_a_quantity_and_the_output_says_how_to_have_classes(cli, flowers):
    result = cli("fit", "code.csv", "-t", "code", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "--task classes" in result.stdout and "mean of code" in result.stdout
    result = cli("fit", "code.csv", "-t", "code", "-o", "out", "--task", "classes", "--model", "gaussian-nb")
    assert result.exit_code == 0, result.output
    assert loaded("out").classes_.tolist() == [1, 2, 3]


def test_two_whole_numbers_can_be_a_quantity(cli, flowers):
    result = cli("fit", "two.csv", "-t", "two", "-o", "out", "--task", "quantity")
    assert result.exit_code == 0, result.output
    assert hasattr(loaded("out"), "inference_")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--model", "discriminant", "--shrinkage", "0.1"], cf.GaussianDiscriminant(shrinkage=0.1, standardize=True)),
        (
            ["--model", "quadratic", "--shrinkage", "0.2"],
            cf.GaussianDiscriminant("class", shrinkage=0.2, standardize=True),
        ),
        (["--model", "gaussian-nb"], cf.GaussianNB()),
        (["--model", "bernoulli-nb", "--smoothing", "0.5"], cf.BernoulliNB(0.5)),
        (["--model", "discriminant", "--cv", "0"], cf.GaussianDiscriminant()),
        (["--cv", "0"], cf.GaussianDiscriminant()),
        (["--model", "gaussian-nb", "--degree", "2"], cf.GaussianNB(basis=cf.Polynomial(2))),
    ],
)
def test_the_model_is_that_of_the_library(cli, flowers, options, expected):
    result = cli("fit", flowers, "-t", "kind", "-o", "out", *options)
    assert result.exit_code == 0, result.output
    source = cf.scan_csv(flowers, target="kind")
    expected.fit(source)
    found = loaded("out")
    assert type(found) is type(expected)
    assert found.predict_log_proba(source).tobytes() == expected.predict_log_proba(source).tobytes()


def test_the_folds_choose_the_shrinkage(cli, flowers):
    result = cli("fit", flowers, "-t", "kind", "-o", "out", "--model", "quadratic")
    assert result.exit_code == 0, result.output
    source = cf.scan_csv(flowers, target="kind")
    tuned = cf.CrossValidated(
        cf.GaussianDiscriminant("class", standardize=True), cv=cf.Folds(10, stratify=True), scoring="neg_log_loss"
    ).fit(source)
    assert loaded("out").shrinkage == tuned.best_params_["shrinkage"]


def test_free_text_reaches_naive_bayes_and_logistic_regression(fitted, messages):
    fitted(messages, "-t", "label", "--drop", "size")
    compared = {row["name"] for row in context_of("out")["validation"]["rows"]}
    assert compared >= {"logistic regression", "Bernoulli naive Bayes", "multinomial naive Bayes"}
    model = loaded("out")
    assert list(model.feature_names_in_) == ["text", "phone"]
    assert "text: cash" in model.column_names_


def test_numbers_beside_free_text_are_read_by_the_models_that_can(fitted, messages):
    """Naive Bayes of counts reads none: one such model left the whole table without cross-validation."""
    words = " ".join(fitted(messages, "-t", "label").stdout.split())
    assert "Bernoulli naive Bayes and multinomial naive Bayes" in words and "leave out size (--drop)" in words
    compared = {row["name"] for row in context_of("out")["validation"]["rows"]}
    assert "logistic regression" in compared and not any("naive" in name for name in compared)
    assert {"size", "text: cash"} <= set(loaded("out").column_names_)


def test_numbers_beside_very_many_texts_are_left_out():
    choice = Choice()
    kinds = choice.compared["texts"]
    assert _reading(choice, kinds, ["size"], 1000, 2)[0] == ("logistic",)
    assert _reading(choice, kinds, ["size"], 10_000, 8)[0] == ("bernoulli-nb", "multinomial-nb")
    assert _reading(choice, kinds, ["size"], 10**9, 2)[0] == ("bernoulli-nb", "multinomial-nb")


def test_multinomial_counts_words_and_bernoulli_does_not(cli, messages):
    for kind, is_binary in (("multinomial-nb", False), ("bernoulli-nb", True)):
        result = cli("fit", messages, "-t", "label", "-o", "out", "--model", kind, "--smoothing", "1")
        assert result.exit_code == 0, result.output
        assert loaded("out").encoder_.texts.binary is is_binary


def test_without_texts_numbers_are_used(cli, messages):
    result = cli("fit", messages, "-t", "label", "-o", "out", "--texts", "none")
    assert result.exit_code == 0, result.output
    kinds = {kind.name: kind.kind for kind in loaded("out").encoder_.columns_}
    assert kinds == {"text": "set aside", "size": "number", "phone": "level"}


def test_named_texts_go_with_any_model(cli, messages):
    options = ["--texts", "text", "--min-word-count", "5", "--ngrams", "2"]
    result = cli("fit", messages, "-t", "label", "-o", "out", "--model", "discriminant", "--shrinkage", "0.5", *options)
    assert result.exit_code == 0, result.output
    words = loaded("out").encoder_.texts
    assert words.ngram_range == (1, 2) and words.min_df == 5
    result = cli("fit", messages, "-t", "size", "-o", "out", "--model", "ridge", "--alpha", "1", *options)
    assert result.exit_code == 0, result.output
    assert any(name.startswith("text: ") for name in loaded("out").column_names_)


@pytest.mark.parametrize(("file", "target"), [("flowers.csv", "kind"), ("flag.csv", "flag"), ("two.csv", "two")])
@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_predictions_are_the_labels_of_the_data(cli, flowers, file, target, end):
    assert cli("fit", file, "-t", target, "-o", "out", "--model", "discriminant", "--shrinkage", "0").exit_code == 0
    result = cli("predict", "out/model.certifit", file, "-o", f"p.{end}", "--proba")
    assert result.exit_code == 0, result.output
    source = cf.scan_csv(file, target=target)
    model = cf.GaussianDiscriminant().fit(source)
    names = [f"p({str(label).lower() if target == 'flag' else label})" for label in model.classes_.tolist()]
    if end == "parquet":
        table = pq.read_table("p.parquet")
        assert table.column_names == ["prediction", *names]
        assert table["prediction"].to_pylist() == model.predict(source).tolist()
        assert np.column_stack([table[name] for name in names]).tobytes() == model.predict_proba(source).tobytes()
        return
    rows = read_rows("p.csv")
    expected = [str(label).lower() if target == "flag" else str(label) for label in model.predict(source).tolist()]
    assert [row["prediction"] for row in rows] == expected
    assert [[float(row[name]) for name in names] for row in rows] == model.predict_proba(source).tolist()


def test_predictions_on_standard_output_are_those_of_the_file(cli, fitted, flowers):
    fitted(flowers, "-t", "kind")
    cli("predict", "out/model.certifit", flowers, "-o", "p.csv", "--proba")
    shown = cli("predict", "out/model.certifit", flowers, "--proba", "--quiet")
    assert shown.stdout == Path("p.csv").read_text()


def test_labels_with_commas_and_quotes_come_back(cli, flowers):
    rows = read_rows(flowers)
    odd = {"rose": 'red, "deep"', "iris": "blue,pale", "lily": "white"}
    write_rows("odd.csv", {name: [odd.get(row[name], row[name]) for row in rows] for name in rows[0]})
    assert cli("fit", "odd.csv", "-t", "kind", "-o", "out", "--model", "gaussian-nb").exit_code == 0
    assert cli("predict", "out/model.certifit", "odd.csv", "-o", "p.csv", "--proba").exit_code == 0
    found = read_rows("p.csv")
    assert {row["prediction"] for row in found} == set(odd.values())
    assert set(found[0]) == {"prediction", *(f"p({label})" for label in odd.values())}


def test_verify_proves_a_model_of_classes_again(cli, fitted, flowers, messages):
    fitted(flowers, "-t", "kind")
    result = cli("verify", "out/model.certifit", flowers)
    assert result.exit_code == 0, result.output
    text = flowers.read_text().replace("rose", "ROSE", 1).replace("iris", "rose", 1).replace("ROSE", "iris", 1)
    Path("swapped.csv").write_text(text)
    assert cli("verify", "out/model.certifit", "swapped.csv").exit_code == 1
    fitted(messages, "-t", "label", out="words")
    assert cli("verify", "words/model.certifit", messages).exit_code == 0


def test_inspect_shows_classes(cli, fitted, flowers):
    fitted(flowers, "-t", "kind")
    result = cli("inspect", "out/model.certifit")
    assert result.exit_code == 0, result.output
    assert "iris" in result.stdout and "lily" in result.stdout


def test_the_positive_class_is_the_second_or_the_named_one(cli, fitted, messages):
    fitted(messages, "-t", "label")
    second = context_of("out")["classes"]
    assert second["labels"][second["positive"]] == "spam"
    options = ["--positive", "ham", "--model", "bernoulli-nb"]
    assert cli("fit", messages, "-t", "label", "-o", "out", *options).exit_code == 0
    named = context_of("out")["classes"]
    assert named["labels"][named["positive"]] == "ham"
    for facts in (second, named):
        f1 = facts["rows"][facts["positive"]]["f1"]["value"]
        assert facts["metrics"]["f1"]["value"] == pytest.approx(f1, rel=1e-12)


def test_groups_stay_together(cli, flowers):
    rows = read_rows(flowers)
    columns = {name: [row[name] for row in rows] for name in rows[0]} | {"bed": [at // 8 for at in range(N)]}
    write_rows("beds.csv", columns)
    result = cli("fit", "beds.csv", "-t", "kind", "-o", "out", "--group", "bed", "--model", "gaussian-nb")
    assert result.exit_code == 0, result.output
    assert "rows with the same bed kept together" in result.stdout


def test_a_weight_of_two_is_the_row_twice(cli, flowers):
    rows = read_rows(flowers)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    times = [1 + at % 2 for at in range(N)]
    write_rows("weighted.csv", columns | {"w": times})
    write_rows("twice.csv", {name: np.repeat(values, times) for name, values in columns.items()})
    assert cli("fit", "weighted.csv", "-t", "kind", "-o", "a", "--weight", "w", "--model", "gaussian-nb").exit_code == 0
    assert cli("fit", "twice.csv", "-t", "kind", "-o", "b", "--model", "gaussian-nb").exit_code == 0
    first, second = loaded("a"), loaded("b")
    np.testing.assert_allclose(first.theta_, second.theta_, rtol=1e-13)
    np.testing.assert_allclose(first.var_, second.var_, rtol=1e-13)
    assert cli("verify", "a/model.certifit", "weighted.csv", "--weight", "w").exit_code == 0


def test_gaps_of_numbers_are_refitted_in_every_fold(cli, flowers):
    rows = read_rows(flowers)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns["length"] = ["" if at % 9 == 4 else value for at, value in enumerate(columns["length"])]
    write_rows("gaps.csv", columns)
    result = cli("fit", "gaps.csv", "-t", "kind", "-o", "out", "--model", "discriminant", "--shrinkage", "0.1")
    assert result.exit_code == 0, result.output
    model = cf.GaussianDiscriminant(shrinkage=0.1, standardize=True, encoder=cf.TableEncoder(unseen="reference"))
    found = cf.class_validation(model, cf.scan_csv("gaps.csv", target="kind"))
    metrics = context_of("out")["classes"]["metrics"]
    assert metrics["log_loss"]["value"] == pytest.approx(float(found.metrics()["log_loss"]), rel=1e-12)


def test_csv_and_parquet_give_the_same_model(cli, flowers):
    rows = read_rows(flowers)
    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    for name in ("length", "width"):
        columns[name] = columns[name].cast(pa.float64())
    columns["kind"] = columns["kind"].dictionary_encode()
    pq.write_table(pa.table(columns), "flowers.parquet")
    for file, folder in (("flowers.csv", "a"), ("flowers.parquet", "b")):
        assert cli("fit", file, "-t", "kind", "-o", folder, "--model", "discriminant").exit_code == 0
    first, second = loaded("a"), loaded("b")
    assert first.means_.tobytes() == second.means_.tobytes()
    assert first.get_params()["shrinkage"] == second.get_params()["shrinkage"]
    assert context_of("a")["classes"]["metrics"] == context_of("b")["classes"]["metrics"]


def changed(path, change):
    """The rows of flowers.csv, with labels changed by their place."""
    rows = read_rows("flowers.csv")
    kinds = [change(at, row["kind"]) for at, row in enumerate(rows)]
    write_rows(path, {name: [row[name] for row in rows] for name in rows[0]} | {"kind": kinds})


def test_labels_that_differ_by_case_or_spaces_are_noted(cli, flowers):
    changed("odd.csv", lambda at, kind: "Rose " if kind == "rose" and at % 2 else kind)
    result = cli("fit", "odd.csv", "-t", "kind", "-o", "out", "--model", "gaussian-nb")
    assert result.exit_code == 0, result.output
    assert "'Rose ' and 'rose'" in " ".join(result.stdout.split())
    result = cli("fit", "odd.csv", "-t", "kind", "-o", "out", "--cv", "0")
    assert "'Rose ' and 'rose'" in result.stderr


def test_a_class_of_one_row_is_told_and_fitted(cli, flowers):
    changed("rare.csv", lambda at, kind: "orchid" if at == 7 else kind)
    hidden = cli("fit", "rare.csv", "-t", "kind", "-o", "out", "--model", "gaussian-nb").stdout
    assert "One class has 1 row" in " ".join(hidden.split()) and "orchid" not in hidden
    result = cli("fit", "rare.csv", "-t", "kind", "-o", "out", "--show-values")
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "Class 'orchid' has 1 row" in words and "--cv 10" not in words
    assert "Quadratic discriminant is left out" in words and "--shrinkage 0.1" in words
    assert loaded("out").classes_.tolist() == ["iris", "lily", "orchid", "rose"]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda at, kind: "rose", [], "one class, 'rose', in all 240 rows"),
        (lambda at, kind: f"{kind} {at}", [], "240 different labels in 240 rows. It names rows rather than classes"),
        (lambda at, kind: "", [], "missing in every row"),
        (lambda at, kind: "x" if at == 4 else at % 2, [], "line 6: column 'kind' is 'x', not a whole number"),
        (lambda at, kind: at / 7, ["--task", "classes"], "a number on a scale"),
        (lambda at, kind: kind, ["--positive", "rose"], "--positive is for two classes, and the target has 3"),
        (lambda at, kind: at % 2, ["--positive", "2"], "--positive is one of 0 and 1. Got '2'"),
        (lambda at, kind: at / 7, ["--positive", "1"], "'kind' is a quantity"),
        (lambda at, kind: kind, ["--no-intercept"], "--no-intercept does not go with discriminant"),
        (lambda at, kind: kind, ["--model", "bernoulli-nb", "--degree", "2"], "--degree does not go with bernoulli-nb"),
        (lambda at, kind: kind, ["--model", "ridge", "--task", "classes"], "--model ridge predicts a quantity"),
        (
            lambda at, kind: kind,
            ["--model", "gaussian-nb", "--task", "quantity"],
            "--model gaussian-nb predicts classes",
        ),
        (lambda at, kind: kind, ["--model", "ridge"], "not a number"),
        (lambda at, kind: kind, ["--alpha", "1", "--model", "discriminant"], "--alpha is for --model ridge"),
        (lambda at, kind: kind, ["--shrinkage", "1"], "--shrinkage is for --model discriminant or quadratic"),
        (lambda at, kind: kind, ["--model", "multinomial-nb"], "multinomial-nb reads counts"),
        (lambda at, kind: kind, ["--model", "quadratic", "--shrinkage", "2"], "shrinkage"),
        (lambda at, kind: kind, ["--texts", "soil"], "--texts names 'soil', which is no free text but a category"),
        (lambda at, kind: kind, ["--texts", "Soil"], "no column 'Soil'. Did you mean 'soil'?"),
        (lambda at, kind: kind, ["--texts", "none", "--ngrams", "2"], "--ngrams is about words"),
        (lambda at, kind: kind, ["--min-word-count", "2"], "--min-word-count is about words"),
        (lambda at, kind: at / 7, ["--ngrams", "2"], "--ngrams is about words"),
    ],
)
def test_bad_input_is_told_in_one_line_and_nothing_is_written(cli, flowers, change, options, words):
    changed("bad.csv", change)
    result = cli("fit", "bad.csv", "-t", "kind", "-o", "out", *options, "--show-values")
    assert result.exit_code == 2, result.output
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert not Path("out").exists()


def test_options_of_predict_that_do_not_go_with_the_model_are_refused(cli, fitted, flowers, data):
    fitted(flowers, "-t", "kind")
    fitted(data, "-t", "y", out="line")
    result = cli("predict", "out/model.certifit", flowers, "--interval", "0.9")
    assert result.exit_code == 2 and "Use --proba" in result.stderr
    result = cli("predict", "line/model.certifit", data, "--proba")
    assert result.exit_code == 2 and "Use --interval" in result.stderr


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_columns_are_selected_by_the_log_loss_on_rows_that_were_not_seen(cli, flowers, direction):
    result = cli("select", flowers, "-t", "kind", "-o", "out", "--features", "2", "--direction", direction)
    assert result.exit_code == 0, result.output
    make = {"forward": cf.ForwardSelection, "backward": cf.BackwardSelection}[direction]
    folds = cf.Folds(10, stratify=True)
    selector = make(cf.GaussianDiscriminant(encoder=cf.TableEncoder()), 2, cv=folds, scoring="neg_log_loss")
    selector.fit(cf.scan_csv(flowers, target="kind"))
    context = context_of("out")
    assert context["selection"]["features"] == selector.selected_features_ == ["length", "width"]
    errors = [step["error"] for step in context["selection"]["steps"]]
    np.testing.assert_allclose(errors, [-step.mean_score for step in selector.steps_], rtol=1e-12)
    assert context["classes"]["is_new"] and "2 chosen columns" in result.stdout
    assert list(loaded("out").feature_names_in_) == ["length", "width"]


def test_options_of_select_that_do_not_go_together_are_refused(cli, flowers):
    result = cli("select", flowers, "-t", "kind", "-o", "out", "--alpha", "1")
    assert result.exit_code == 2 and "--alpha is the ridge penalty" in result.stderr
    result = cli("select", flowers, "-t", "kind", "-o", "out", "--model", "linear")
    assert result.exit_code == 2 and "not a number" in result.stderr
    result = cli("select", flowers, "-t", "kind", "-o", "out", "--no-intercept")
    assert result.exit_code == 2 and "--no-intercept does not go with discriminant" in result.stderr


def test_components_are_verified_and_inspected_but_predict_nothing(cli, flowers):
    model = cf.PCA(2).fit(cf.scan_csv(flowers, columns=["length", "width"]))
    cf.save(model, "components.certifit")
    assert cli("verify", "components.certifit", flowers).exit_code == 0
    result = cli("inspect", "components.certifit")
    assert result.exit_code == 0 and "PCA" in result.stdout, result.output
    result = cli("predict", "components.certifit", flowers)
    assert result.exit_code == 2 and "holds a PCA, which predicts nothing" in result.stderr
    result = cli("verify", "components.certifit", flowers, "-t", "kind")
    assert result.exit_code == 2 and "--target: a PCA has none" in result.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--model", "gaussian-nb"], "--model gaussian-nb has nothing to tune"),
        (["--model", "discriminant", "--shrinkage", "0.1"], "--shrinkage is given"),
        (["--cv", "0"], "--cv is 0"),
    ],
)
def test_a_rule_that_has_nothing_to_choose_is_refused(cli, flowers, options, why):
    result = cli("fit", flowers, "-t", "kind", "-o", "out", "--rule", "1se", *options)
    assert result.exit_code == 2 and why in result.stderr and not Path("out").exists()


def test_a_quantity_of_text_is_refused_without_advice_that_fails(cli, flowers):
    for options in (["--task", "quantity"], ["--model", "lasso"]):
        result = cli("fit", flowers, "-t", "kind", "-o", "out", *options)
        assert result.exit_code == 2 and "line 2" in result.stderr and "--task classes" in result.stderr
        assert "--types" not in result.stderr


def test_free_text_that_a_model_does_not_read_is_told_with_the_option_that_uses_it(cli, messages):
    told = "Free text is not used: text. To use its words, add --texts text."
    options = ("-t", "label", "-o", "out", "--model", "discriminant")
    assert told in " ".join(cli("fit", messages, *options).stdout.split())
    assert "Free text is not used" not in cli("fit", messages, *options, "--texts", "none").stdout
    assert "Free text is not used" not in cli("fit", messages, *options, "--texts", "text").stdout


def test_columns_of_probabilities_are_named_as_the_labels_are_written(cli, fitted, flowers):
    fitted("flag.csv", "-t", "flag")
    written = cli("predict", "out/model.certifit", flowers, "--proba", "-q").stdout.splitlines()
    assert written[0] == "prediction,p(false),p(true)"
    assert {line.split(",")[0] for line in written[1:]} == {"false", "true"}
    table = {"x": np.arange(40.0) % 7, "y": np.repeat([0.0, 1.0], 20)}
    pq.write_table(pa.table(table), "halves.parquet")
    cli("fit", "halves.parquet", "-t", "y", "-o", "halves", "-q", "--model", "gaussian-nb")
    written = cli("predict", "halves/model.certifit", "halves.parquet", "--proba", "-q").stdout.splitlines()
    assert written[0] == "prediction,p(0),p(1)" and written[1].split(",")[0] in ("0", "1")


@pytest.mark.compares_all
def test_models_that_cost_too_many_refits_are_named_before_what_to_do_about_them(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("certifit.cli.what_to_fit.FREE_CELLS", 0)
    columns = {"a": np.arange(60) % 7, "kind": np.where(np.arange(60) % 2, "a", "b")}
    write_rows(tmp_path / "table.csv", columns)
    said = " ".join(cli("fit", "table.csv", "-t", "kind", "-o", "out").stdout.split())
    assert "left out. To have them all the same, add --cv 10." in said
