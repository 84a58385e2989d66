"""The report of every model of classes: it is sound and safe, and its numbers are those of slow and obvious sums."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn.metrics as sk
from class_fits import FILES, MAKERS, class_context, clouds, table, table_source
from scipy.integrate import trapezoid
from test_report_card import NASTY, shown
from test_report_page import Page

import certifit as cf
from certifit.cli import words
from certifit.data.privacy import Rule
from certifit.data.source import Memory
from certifit.models.adapter import sections_of
from certifit.report import context as report_context
from certifit.report import svg
from certifit.report.class_passes import _quantiles
from certifit.report.context import build
from certifit.report.folder import DECIDING_HEAD, deciding_table
from certifit.report.page import card, render
from certifit.report.sections import drawings
from certifit.report.what_decides import mapped_weights

ALWAYS = ["classes", "probabilities", "deciding", "data", "proof", "use", "words"]
OF_A_QUANTITY = ("quality", "coefficients", "pictures", "path", "influence", "outliers", "history")


def titles(context):
    return [notice["title"] for notice in context["warnings"]]


@pytest.mark.parametrize("folds", [5, 0])
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_model_of_classes_has_a_sound_page_card_json_and_words(name, folds):
    _, _, context = class_context(name, folds)
    found = [section["name"] for section in context["sections"] if section["name"] != "warnings"]
    assert found == (["validation", "questions"] if folds else []) + ALWAYS
    assert all(context[key] is None for key in OF_A_QUANTITY)
    assert json.loads(json.dumps(context, allow_nan=False)) == context
    text = render(context)
    assert "\\x" not in text and "\\u" not in text  # no character of ours is shown as its code
    page = Page(text)
    assert not {"script", "img", "link"} & set(page.tags) and len(text.encode()) < 1_000_000
    said = " ".join(page.text)
    assert not re.search(r"\b(nan|inf|None|np\.float64)\b", said.replace("None.", "").replace("None suspected", ""))
    made = card(context)
    assert "pipeline_tag: tabular-classification\n" in made
    Page(shown(made))
    lines = words.lines(context, "out", [])
    assert all(len(line) <= words.WIDTH or line.startswith("Wrote to") for line in lines)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_picture_of_classes_is_sound_xml_inside_its_frame(name):
    _, _, context = class_context(name)
    found = drawings(context)
    assert {"matrix", "roc", "precision", "calibration"} <= set(found)
    for picture in found.values():
        root = ElementTree.fromstring(picture)
        assert root[0].text and root[1].text
        bare = re.sub(r"<(title|desc|text)[^>]*>[^<]*<", "<", picture)
        assert not re.search(r"\b(nan|inf|None)\b", bare) and "9999" not in bare


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_key_of_the_context_of_classes_is_documented(name):
    _, _, context = class_context(name)
    for key, value in context.items():
        assert re.search(rf"\b{key}\b", report_context.__doc__), key
        for inner in value if isinstance(value, dict) and key != "files" else []:
            assert re.search(rf"\b{inner}\b", report_context.__doc__), (key, inner)


def refits(X, codes, folds):
    """Probability of class 1 by refits that lack the row."""
    return fold_refits(X, codes, folds)[0]


def fold_refits(X, codes, folds):
    """The same, and which refit it was."""
    found, fold = np.empty(len(codes)), np.empty(len(codes), dtype=int)
    for f, (train, validation) in enumerate(cf.Folds(folds, stratify=True).split(X, codes)):
        fitted = cf.GaussianDiscriminant().fit(X[train], codes[train])
        found[validation], fold[validation] = fitted.predict_proba(X[validation])[:, 1], f
    return found, fold


def test_matrix_rates_and_curves_are_those_of_refits():
    X, codes = clouds()
    p, fold = fold_refits(X, codes, 5)
    _, _, context = class_context("two", folds=5)
    found, guess = context["classes"], (p > 0.5).astype(int)
    assert found["is_new"] and found["matrix"]["counts"] == sk.confusion_matrix(codes, guess).tolist()
    row = found["rows"][1]
    assert row["precision"]["value"] == pytest.approx(sk.precision_score(codes, guess), rel=1e-12)
    assert row["recall"]["value"] == pytest.approx(sk.recall_score(codes, guess), rel=1e-12)
    scores = found["metrics"]
    assert scores["accuracy"]["value"] == pytest.approx((guess == codes).mean(), rel=1e-12)
    pairs = np.subtract.outer(p[codes == 1], p[codes == 0])[np.equal.outer(fold[codes == 1], fold[codes == 0])]
    assert scores["auc"]["value"] == pytest.approx(np.mean((pairs > 0) + (pairs == 0) / 2), rel=1e-12)
    assert found["rows"][1]["auc"] == scores["auc"] == found["curves"][0]["auc"]
    assert scores["f1"]["value"] == pytest.approx(sk.f1_score(codes, guess), rel=1e-12)
    assert scores["log_loss"]["value"] == pytest.approx(sk.log_loss(codes, p), rel=1e-10)
    assert scores["accuracy"]["low"] < scores["accuracy"]["value"] < scores["accuracy"]["high"]
    assert found["confidence"] == pytest.approx(np.maximum(p, 1 - p).mean(), rel=1e-10)
    curve = found["curves"][0]
    assert curve["average_precision"] == pytest.approx(sk.average_precision_score(codes, p), rel=1e-12)
    x, y = np.array(curve["roc"]).T
    assert trapezoid(y, x) == pytest.approx(scores["auc"]["value"], abs=1e-3)


def test_calibration_and_thresholds_are_counts_of_rows():
    X, codes = clouds()
    p = refits(X, codes, 5)
    found = class_context("two", folds=5)[2]["classes"]
    bins = found["calibration"]["bins"]
    assert sum(one["count"] for one in bins) == len(codes)
    assert sum(one["count"] * one["observed"] for one in bins) == pytest.approx(codes.sum())
    assert sum(one["count"] * one["predicted"] for one in bins) == pytest.approx(p.sum())
    assert all(one["low"] <= one["observed"] <= one["high"] for one in bins)
    for row in found["cuts"]:
        called = p >= row["cut"]
        assert row["called"] == pytest.approx(called.mean())
        assert row["precision"] == pytest.approx(codes[called].mean())
        assert row["recall"] == pytest.approx(called[codes == 1].mean())
        assert row["accuracy"] == pytest.approx((called == codes).mean())


def test_rows_of_the_fit_are_said_to_be_such_and_have_no_intervals():
    model, source, context = class_context("two", folds=0)
    found = context["classes"]
    assert not found["is_new"] and found["metrics"]["accuracy"]["low"] is None
    assert found["metrics"]["accuracy"]["value"] == pytest.approx(model.score(source))
    page = render(context)
    assert "on new rows it will do worse" in page and "the rows it was fitted to" in context["answer"][1]
    assert "new rows do worse" in "\n".join(words.lines(context, "out", []))


def test_the_positive_class_is_the_second_or_the_one_that_is_named():
    _, _, second = class_context("table")
    _, _, first = class_context("table", positive="no")
    assert second["classes"]["positive"] == 1 and first["classes"]["positive"] == 0
    for context in (first, second):
        found = context["classes"]
        row = found["rows"][found["positive"]]
        assert found["metrics"]["f1"]["value"] == pytest.approx(row["f1"]["value"])
        own = next(one for one in context["validation"]["rows"] if one["is_chosen"])
        assert own["scores"]["f1"]["value"] == found["metrics"]["f1"]["value"]
        assert found["curves"][0]["label"] == row["label"]
    assert first["classes"]["metrics"]["auc"]["value"] == pytest.approx(second["classes"]["metrics"]["auc"]["value"])
    with pytest.raises(ValueError, match="positive must be one of the classes"):
        class_context("table", positive="maybe")
    with pytest.raises(ValueError, match="positive is for two classes"):
        class_context("quadratic", positive=1)


def test_words_decide_by_how_much_more_often_they_come():
    model, _, context = class_context("texts")
    deciding = context["deciding"]
    share = model.class_count_ / model.class_count_.sum()
    p = np.exp(model.feature_log_prob_)
    places = {str(name).removeprefix("text: "): j for j, name in enumerate(model.column_names_)}
    for row in deciding["rows"]:
        j = places[row["name"]]
        for k in (0, 1):
            rest = sum(share[i] * p[i, j] for i in (0, 1) if i != k) / (1 - share[k])
            assert row["log_odds"][k] == pytest.approx(np.log(p[k, j] / rest), abs=1e-10)
            assert row["count"][k] == model.feature_count_[k, j]
    first = [row["name"] for row in deciding["rows"] if row["evidence"][1] > 0]
    assert {"prize", "claim", "free", "call", "now", "win"} == set(first)
    assert "Speaks for spam" in render(context) and "prize" in "\n".join(words.lines(context, "out", []))


@pytest.mark.parametrize("name", ["two", "three_shared"])
def test_weights_are_the_change_of_the_log_odds_for_one_standard_deviation(name):
    model, source, context = class_context(name)
    X = source.block.X
    share = np.bincount(source.block.y.astype(int)) / len(X)
    for row in context["deciding"]["rows"]:
        j = "abc".index(row["name"])
        moved = X.copy()
        moved[:, j] += X[:, j].std()
        before, after = (model.predict_log_proba(Memory(rows, None, names=list("abc"))) for rows in (X, moved))
        change = (after - before)[0]
        if len(share) == 2:
            change = np.array([change[0] - change[1], change[1] - change[0]])
        else:
            change = change - share @ change
        assert row["evidence"] == pytest.approx(change, rel=1e-8, abs=1e-10)


def test_means_and_spreads_are_those_of_the_rows_of_each_class():
    _, source, context = class_context("quadratic")
    X, codes = source.block.X, source.block.y
    for row in context["deciding"]["rows"]:
        j = "abc".index(row["name"])
        for k in range(3):
            own = X[codes == k, j]
            assert (row["mean"][k], row["sd"][k]) == pytest.approx((own.mean(), own.std()), rel=1e-10)


def test_the_csv_of_what_decides_holds_every_number():
    _, _, context = class_context("texts")
    lines = list(csv.DictReader(io.StringIO(deciding_table(context))))
    assert deciding_table(context).startswith(DECIDING_HEAD + "\n")
    assert len(lines) == 2 * len(context["deciding"]["rows"])
    row = context["deciding"]["rows"][0]
    assert float(lines[1]["log_odds"]) == row["log_odds"][1] and lines[1]["class"] == "spam"


def entropy(values):
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return -(shares * np.log(shares)).sum()


def test_what_a_category_tells_alone_is_the_information_of_its_counts():
    columns = table()
    _, _, context = class_context((cf.GaussianDiscriminant(), table_source(columns)))
    y = columns["y"]
    for name, n_levels in (("city", 3), ("flag", 2)):
        both = np.char.add(np.asarray(columns[name]).astype(str), y)
        information = entropy(y) + entropy(columns[name]) - entropy(both) - (n_levels - 1) / (2 * len(y))
        found = next(one for one in context["data"]["columns"] if one["name"] == name)
        assert found["alone"] == pytest.approx(information / entropy(y), rel=1e-9)


def test_a_number_tells_alone_what_its_law_tells_and_noise_tells_nothing():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 20000)
    # Of normal columns one standard deviation apart: I = log 2 - E log(1 + exp(-z - 1/2)), z of law N(0, 1).
    X = np.column_stack([codes + rng.normal(size=len(codes)), rng.normal(size=len(codes))])
    z, step = np.linspace(-9, 9, 4001, retstep=True)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    true = 1 - step * (density * np.log1p(np.exp(-z - 0.5))).sum() / np.log(2)
    _, _, context = class_context((cf.GaussianNB(), Memory(X, codes.astype(float))), folds=0)
    told, noise = (column["alone"] for column in context["data"]["columns"])
    assert told == pytest.approx(true, abs=0.012) and noise < 0.002


def test_a_column_that_knows_the_class_is_a_suspect():
    X, codes = clouds()
    X[:, 2] = codes + 1e-3 * X[:, 2]
    _, _, context = class_context((cf.GaussianNB(), Memory(X, codes.astype(float), names=["a", "b", "c"])))
    assert titles(context)[0].startswith("Too good to be true: the area under the ROC curve")
    assert titles(context)[1] == "Suspect: c may know the answer"
    assert "of the uncertainty about" in context["warnings"][1]["text"]
    assert not any("Suspect" in title for title in titles(class_context("two")[2]))


def test_classes_that_are_rare_or_never_predicted_are_noted():
    _, _, context = class_context("no_signal")
    assert "Never predicted: 1.0" in titles(context) and "90.0 % of the rows are 0.0" in titles(context)
    assert "Never predicted" not in " ".join(titles(class_context("two")[2]))
    X, codes = clouds()
    codes[:4] = 2
    for rule, label in ((Rule(shows=True), "2.0"), (Rule(), "class 3 of 3 (rare)")):
        _, _, context = class_context((cf.GaussianNB(), Memory(X, codes.astype(float))), folds=2, rule=rule)
        assert f"{label}: fewer than 10 rows of this class" in titles(context)


def test_probabilities_that_are_too_bold_are_a_warning():
    X, codes = clouds(400)
    noise = np.random.default_rng(1).normal(size=X.shape)
    tenfold = np.tile(X / 4 + noise, 10)  # naive Bayes counts each column ten times
    _, _, context = class_context((cf.GaussianNB(), Memory(tenfold, codes.astype(float))))
    assert "Its probabilities are overconfident" in titles(context)
    assert not any("bold" in title or "timid" in title for title in titles(class_context("two")[2]))


def test_a_fit_without_a_proof_is_a_banner_that_names_the_fault():
    _, _, context = class_context("without_a_proof", folds=0)
    page = render(context)
    body = page[page.index("<main>") :]
    assert body.index('class="banner" role="alert"') < body.index("<section")
    assert context["certificate"]["value"] is None and context["certificate"]["fault"]
    assert "not proven to be the best" in titles(context)[0] and "Yes, proven" not in page
    assert "NO: not proven" in "\n".join(words.lines(context, "out", []))


def test_columns_that_repeat_others_are_said_to_be_left_out():
    _, _, context = class_context("redundant")
    notice = next(one for one in context["warnings"] if "repeat" in one["title"])
    assert notice["level"] == "note" and "left out" in notice["action"]


def test_of_many_classes_twenty_are_drawn_and_the_rest_counted():
    _, _, context = class_context("many_classes")
    found = context["classes"]
    assert len(found["matrix"]["counts"]) == 20 and found["matrix"]["n_left_out"] == 5
    assert len(found["rows"]) == 25 and len(found["curves"]) == 6
    kept = sorted((row["rows"] for row in found["rows"]), reverse=True)[:20]
    assert sorted(found["matrix"]["rows"], reverse=True) == kept
    assert "5 smaller classes not drawn" in render(context)


def test_a_leaderboard_of_classes_shows_every_rate_of_every_model():
    X, codes = clouds()
    source = Memory(X, codes.astype(float), names=["a", "b", "c"])
    from certifit.report.validation import validation_facts
    from certifit.selection.compare.leaderboard import leaderboard

    board = leaderboard({"linear": cf.GaussianDiscriminant(), "naive": cf.GaussianNB()}, source, cv=5)
    context = build(board.chosen.model.fit(source), source, FILES, validation=validation_facts(board))
    rows = {row["name"]: row for row in context["validation"]["rows"]}
    assert set(rows) == {"linear", "naive", "class shares"} and context["validation"]["measure"] == "log loss"
    for name, row in rows.items():
        metrics = {key: float(metric) for key, metric in board[name].classes.metrics().items()}
        shown = {key: one["value"] for key, one in row["scores"].items()}
        if name == "class shares":  # every row is called the same class
            assert shown.pop("f1") is None and metrics.pop("f1") > 0
        assert shown == pytest.approx(metrics)
        assert row["error"] == pytest.approx(-board[name].score)
    page = " ".join(Page(render(context)).text)
    assert "class shares" in page and "used here" in page


def test_the_curve_of_a_tuned_model_of_classes_is_drawn_over_its_values():
    _, _, context = class_context("tuned")
    curve = context["validation"]["curve"]
    assert curve["parameter"] == "shrinkage" and 0.0 in curve["values"]
    assert "validation" in drawings(context) and "Error against the shrinkage." in render(context)
    _, _, context = class_context("texts")
    assert context["validation"]["curve"]["label"] == "smoothing alpha"


def test_weight_two_is_the_row_twice_in_a_report_of_classes():
    X, codes = clouds(200)
    weight = np.where(np.arange(200) % 3 == 0, 2.0, 1.0)
    times = weight.astype(int)
    weighted = Memory(X, codes.astype(float), weight, ["a", "b", "c"])
    repeated = Memory(np.repeat(X, times, axis=0), np.repeat(codes, times).astype(float), None, ["a", "b", "c"])
    (_, _, one), (_, _, two) = (class_context((cf.GaussianNB(), source), folds=0) for source in (weighted, repeated))
    assert one["classes"]["matrix"]["counts"] == pytest.approx(np.array(two["classes"]["matrix"]["counts"]))
    for name, found in one["classes"]["metrics"].items():
        assert found["value"] == pytest.approx(two["classes"]["metrics"][name]["value"], rel=1e-10)
    first, second = (context["classes"]["calibration"]["error"] for context in (one, two))
    assert first == pytest.approx(second, rel=1e-9)


def test_no_row_of_the_data_is_in_the_context_of_classes():
    _, source, context = class_context("two")
    text = json.dumps(context)
    between = np.sort(source.block.X[:, 1])[1:-1]  # the ends are told: they are the range
    assert not any(repr(float(value)) in text for value in between)


def test_nasty_labels_words_and_names_are_harmless():
    rng = np.random.default_rng(0)
    labels = rng.choice(NASTY[:5], 400)
    columns = {name: rng.normal(size=400) for name in NASTY}
    columns["city"] = rng.choice(NASTY, 400)
    target = "<script>alert(1)</script> a|b"
    source = table_source(columns | {target: labels}, target)
    _, _, context = class_context((cf.GaussianDiscriminant(), source), folds=3)
    text = render(context)
    page = Page(text)
    assert not {"script", "img", "b"} & set(page.tags) - {"b"} and "<script" not in text and "<img" not in text
    assert not [key for _, key, _ in page.attributes if key.startswith("on")]
    made = shown(card(context))
    assert not {"script", "img", "a"} & set(Page(made).tags)
    assert all(not line.startswith(("=", "+", "@")) for line in deciding_table(context).splitlines()[1:])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", "".join(words.lines(context, "out", [])))


def test_the_log_loss_is_one_number_in_the_sentence_the_table_and_the_rates():
    X, codes = clouds(60)
    weight = np.exp(2 * np.random.default_rng(1).normal(size=len(codes)))
    source = Memory(X, codes.astype(float), weight, ["a", "b", "c"])
    _, _, context = class_context((cf.GaussianNB(), source))
    own, shares = (
        next(row["scores"]["log_loss"]["value"] for row in context["validation"]["rows"] if row[key])
        for key in ("is_chosen", "is_baseline")
    )
    said = " ".join(context["validation"]["sentences"])
    for value in (own, shares):
        assert any(abs(float(found) - value) < 0.5 / 10 ** len(found[2:]) for found in re.findall(r"\d\.\d+", said))
    assert context["classes"]["metrics"]["log_loss"]["value"] == own
    assert context["classes"]["baseline"]["log_loss"] == shares


def test_intervals_are_announced_where_there_are_some():
    with_intervals, without = (render(class_context(name)[2]) for name in ("two", "weighted"))
    assert "Below each number its approximate 95 % interval" in with_intervals
    assert "Below each number" not in without


def test_folds_of_groups_are_not_said_to_hold_equal_shares():
    _, _, context = class_context("two")
    assert "each with the same share of every class" in render(context)
    context["validation"]["group"] = "patient"
    page = render(context)
    assert "each with the same share" not in page and "equal values of patient in one fold" in page


def test_classes_of_equal_size_are_said_to_be_so():
    rng = np.random.default_rng(0)
    codes = np.arange(90.0) % 3
    _, _, context = class_context((cf.GaussianNB(), Memory(rng.normal(size=(90, 2)) + codes[:, None], codes)), 0)
    assert next(c["text"] for c in context["checks"] if c["name"] == "Rows of each class") == "30 rows in every class."


def test_a_class_of_one_row_that_is_never_predicted_is_told_in_the_singular():
    X = np.random.default_rng(0).normal(size=(60, 2))
    _, _, context = class_context((cf.GaussianDiscriminant(), Memory(X, (np.arange(60) == 7).astype(float))), 0)
    notice = next(notice for notice in context["warnings"] if notice["title"].startswith("Never predicted"))
    assert notice["text"] == "Its only row: another class was more probable."


def test_no_title_of_an_axis_of_what_decides_is_cut():
    for name in ("three_shared", "two", "texts", "quadratic"):
        assert "…" not in drawings(class_context(name)[2])["deciding"]


def test_an_interval_of_the_auc_below_one_is_not_rounded_to_one():
    codes = np.arange(200) % 2
    X = np.random.default_rng(0).normal(size=(200, 1)) + 4 * codes[:, None]
    _, _, context = class_context((cf.GaussianNB(), Memory(X, codes.astype(float))))
    found = context["classes"]["metrics"]["auc"]
    assert 0.9995 <= found["high"] < 1
    assert "to 1)" not in " ".join(context["classes"]["sentences"])


def test_long_names_over_the_matrix_stay_inside_its_frame_and_apart():
    X, codes = clouds(600, 12)
    labels = np.array([f"class number {k:02d}" for k in range(12)])
    source = table_source({"a": X[:, 0], "b": X[:, 1], "y": labels[codes]})
    picture = drawings(class_context((cf.GaussianNB(), source), 0)[2])["matrix"]
    width = float(re.search(r'viewBox="0 0 ([\d.]+) ', picture)[1])
    turned = re.findall(r'translate\(([\d.]+) ([\d.]+)\) rotate\(-90\)">([^<]+)<', picture)
    assert len(turned) == 12
    assert all(float(x) <= width and float(y) - 0.9 * svg.CHARACTER * len(name) >= 13 for x, y, name in turned)
    assert np.diff([float(x) for x, _, _ in turned]).min() > 10


def test_calibrated_scores_that_are_sums_tell_the_weights_of_their_log_odds(rng):
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] - 0.3 * X[:, 1] + 0.3 * rng.normal(size=80) > 0, "yes", "no")
    model = cf.Calibrated(cf.LinearSVC(alpha=0.1)).fit(X, y)
    weights = mapped_weights(model)
    p = model.predict_proba(X)[:, 1]
    assert np.allclose(np.log(p / (1 - p))[1:] - np.log(p / (1 - p))[0], (X[1:] - X[0]) @ weights[0])
    assert "mapped odds" in sections_of(model)
    assert not sections_of(cf.Calibrated(cf.SVC())) and not sections_of(cf.Calibrated(cf.LinearSVC(), "isotonic"))


def test_cuts_of_a_column_are_quantiles_that_are_values_of_it(rng):
    for n in (1, 2, 15, 16, 17, 80, 1000):
        x = np.sort(rng.normal(size=n).round(1))
        assert _quantiles(x).tolist() == np.quantile(x, np.arange(1, 16) / 16, method="lower").tolist()
