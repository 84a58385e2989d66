"""What a report says of trees: nodes, shares of columns, rounds; and what it does not print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fits import FILES

import certifit as cf
from certifit.data.privacy import NOT_SHOWN, Rule
from certifit.report.context import build
from certifit.report.page import render
from certifit.report.sections import drawings


def table(rng: Any, n: int = 300) -> tuple[Any, Any]:
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * 2 + (X[:, 1] > 0) + 0.1 * rng.normal(size=n)


def context_of(model: Any, X: Any, y: Any, **options: Any) -> Any:
    source = cf.from_arrow(_arrow(X, y), target="y")
    return build(model.fit(source), source, FILES, **options)


def _arrow(X: Any, y: Any) -> Any:
    import pyarrow as pa

    return pa.table({f"column {j}": X[:, j] for j in range(X.shape[1])} | {"y": y})


def test_nodes_are_read_from_the_root_down_and_their_shares_add_up(rng):
    X, y = table(rng)
    context = context_of(cf.DecisionTreeRegressor(max_depth=3, min_samples_leaf=20), X, y)
    nodes = context["splits"]["nodes"]
    assert nodes[0]["depth"] == 0 and nodes[0]["share"] == 1.0 and nodes[0]["n_rows"] == len(y)
    leaves = [node for node in nodes if not node["question"]]
    assert np.isclose(sum(node["share"] for node in leaves), 1) and sum(node["n_rows"] for node in leaves) == len(y)
    left, right = nodes[1], next(node for node in nodes[2:] if node["depth"] == 1)
    assert left["reached_by"] == nodes[0]["question"] and right["reached_by"] == left["reached_by"].replace(
        "\u2264", ">"
    )
    assert {"tree", "shares"} <= set(drawings(context)) and "rounds" not in drawings(context)


def test_nodes_of_few_rows_and_the_splits_that_lead_to_them_are_not_printed(rng):
    X, y = table(rng, 60)
    y[:3], X[:3, 2] = 987.654321, 123.456789
    model = cf.DecisionTreeRegressor(max_depth=2)
    hidden = context_of(model, X, y)
    rare = next(node for node in hidden["splits"]["nodes"] if node["n_rows"] is None)
    assert rare["answer"] == NOT_SHOWN and rare["reached_by"] == NOT_SHOWN and not rare["parts"]
    assert "987.6" not in drawings(hidden)["tree"]
    shown = context_of(model, X, y, rule=Rule(shows=True))
    assert "987.7" in drawings(shown)["tree"]


def test_shares_of_a_forest_have_intervals_and_those_of_a_tree_have_none(rng):
    X, y = table(rng)
    forest = context_of(cf.RandomForestRegressor(20), X, y)["splits"]["columns"]
    assert all(row["low"] < row["share"] < row["high"] for row in forest) and forest[0]["name"] == "column 0"
    tree = context_of(cf.DecisionTreeRegressor(max_depth=2), X, y)["splits"]["columns"]
    assert tree[0]["low"] is None and np.isclose(sum(row["share"] for row in tree), 1)


@pytest.mark.parametrize("stops", [False, True])
def test_rounds_of_boosting_show_their_losses(rng, stops):
    X, y = table(rng)
    model = cf.GradientBoostingRegressor(20, early_stopping=stops)
    context = context_of(model, X, y)
    lines = context["splits"]["rounds"]
    assert ("loss on rows held out" in lines) == stops and "rounds" in drawings(context)
    assert len(lines["loss on the rows of the fit"]) == model.n_iter_


def test_the_error_of_adaboost_is_drawn_under_its_bound(rng):
    X, y = table(rng)
    labels = np.where(y > y.mean(), "high", "low")
    lines = context_of(cf.AdaBoostClassifier(10), X, labels)["splits"]["rounds"]
    assert np.all(np.array(lines["training error"]) <= np.array(lines["bound on it"]))


def test_displays_draw_the_same_rounds(rng):
    pytest.importorskip("matplotlib")
    X, y = table(rng)
    model = cf.GradientBoostingRegressor(15, early_stopping=True).fit(X, y)
    display = cf.BoostingDisplay.from_estimator(model)
    assert np.array_equal(display.lines_["error"].get_ydata(), model.boosting_.loss)
    assert {"error", "test"} == set(display.lines_)
    with pytest.raises(TypeError, match="no AdaBoostClassifier"):
        cf.BoostingDisplay.from_estimator(cf.LinearRegression().fit(X, y))


def _rooms(rng: Any, n: int = 200) -> Any:
    import pyarrow as pa

    place = rng.choice(["centre", "north", "south"], n)
    area = rng.normal(size=n)
    y = 3 * area + np.where(place == "north", 1.0, 0.0) + rng.normal(size=n)
    return pa.table({"area": area, "place": place, "y": y, "kind": np.where(y > 0, "dear", "cheap")})


@pytest.mark.parametrize(
    ("target", "other", "coded", "plain"),
    [
        ("y", "kind", cf.DecisionTreeRegressor(max_depth=2), cf.LinearRegression()),
        ("kind", "y", cf.DecisionTreeClassifier(max_depth=2), cf.LogisticRegression(alpha=1.0)),
    ],
)
def test_what_a_category_tells_alone_is_the_same_of_a_tree_that_reads_codes(rng, target, other, coded, plain):
    source = cf.from_arrow(_rooms(rng).drop_columns([other]), target=target)
    told = [
        {column["name"]: column["alone"] for column in build(model.fit(source), source, FILES)["data"]["columns"]}
        for model in (coded, plain)
    ]
    assert told[0] == pytest.approx(told[1]) and 0 < told[0]["place"] < 0.2


MODELS = {
    "trees": lambda: cf.GradientBoostingRegressor(20, family="poisson"),
    "forest": lambda: cf.RandomForestRegressor(5),
    "network": lambda: cf.MLPRegressor(loss="poisson", max_iter=20),
    "local": lambda: cf.LocallyWeightedRegression(tau=1.0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_was_computed_again_is_no_distance_from_the_best_fit(rng, name):
    """The value of such a certificate counts roundings: it was printed as a share of the objective."""
    X, y = table(rng)
    page = render(context_of(MODELS[name](), X, rng.poisson(np.exp(y / 4))))
    proof = page[page.index("The certificate</h2>") : page.index("who has the data can repeat it")]
    assert "What was computed again?" in proof and "is allowed</td>" in proof
    assert "the best possible" not in proof and "How far can this fit be" not in proof
    words = page[page.index('<dl class="words">') :]
    assert "A bound on how far" not in words and "<dt>Rank</dt>" not in words


def test_a_proof_of_the_best_fit_says_how_far_it_can_be(rng):
    X, y = table(rng)
    page = render(context_of(cf.Ridge(encoder="auto"), X, y))
    assert "How far can this fit be from the best one?" in page and "Above the best possible, at most" in page
    assert "A bound on how far" in page and "<dt>Rank</dt>" in page


def test_the_typical_error_of_counts_goes_with_their_r2(rng):
    """The middle half of the residuals of rare events is far narrower than the errors are large."""
    X, _ = table(rng, 2000)
    y = rng.poisson(0.05 * np.exp(X[:, 0]))
    quality = context_of(cf.GradientBoostingRegressor(20, family="poisson"), X, y)["quality"]
    assert quality["sigma"] == quality["rmse"] and np.isclose(1 - quality["r2"], (quality["rmse"] / y.std()) ** 2)
    robust = context_of(cf.GradientBoostingRegressor(20, family="huber"), X, y.astype(float))["quality"]
    assert robust["sigma_words"] == "from the middle half of residuals" and robust["sigma"] < robust["rmse"]
