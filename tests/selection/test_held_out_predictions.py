"""Predictions of rows by fits that did not see them, as the leaderboard keeps them and the report draws them."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict

import certifit as cf
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.validation import validation_facts

MODELS = {  # name of the route -> model
    "squares from sums": cf.Ridge(alpha=0.1),
    "states of folds": cf.PoissonRegressor(alpha=0.1),
    "refits": cf.DecisionTreeRegressor(max_depth=3),
    "another library": Ridge(alpha=2.0),
}
FILES = {"data": "a.csv", "paths": ["a.csv"], "scan": "scan_csv", "bad_rows": 0, "weight": None}
FILES |= {"model": "m", "report": "r", "coefficients": "c", "selection": None}


def table(n_rows=60):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, 2))
    return X, rng.poisson(np.exp(0.5 + X[:, 0])).astype(float)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_entries_hold_what_the_fit_without_a_row_predicts_for_it(model):
    X, y = table()
    board = cf.leaderboard({"model": model}, X, y, cv=KFold(4), scoring="neg_root_mean_squared_error")
    np.testing.assert_allclose(
        board.chosen.predicted, cross_val_predict(model, X, y, cv=KFold(4)), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("model", [cf.Ridge(alpha=0.1), cf.PoissonRegressor(alpha=0.1)], ids=["quantity", "counts"])
@pytest.mark.parametrize("is_validated", [True, False])
def test_the_picture_of_predictions_is_of_new_rows_and_says_so(model, is_validated):
    X, y = table()
    source = Memory(X, y, names=["a", "b"])
    facts = validation_facts(cf.leaderboard({"model": model}, source, cv=5)) if is_validated else None
    context = build(model.fit(source), source, FILES, validation=facts)
    drawn = context["pictures"]["fit"] if context["pictures"] else context["deviance"]["lift"]
    assert drawn["is_new"] is is_validated
    title = next(one["title"] for one in context["figures"] if one["name"] in ("fit", "lift"))
    assert ("new rows: each predicted by the folds without it" in title) is is_validated
    if is_validated and context["pictures"]:
        assert sum(cell[2] for cell in drawn["cells"]) + drawn["outside"] == len(y)
