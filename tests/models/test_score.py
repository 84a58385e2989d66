"""Claims: `score` of a number is scikit-learn's R^2, of a scan too, and names what it cannot score."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

import certifit as cf

MODELS = {
    "ridge": cf.Ridge(0.1, encoder=cf.TableEncoder()),
    "huber": cf.HuberRegressor(encoder=cf.TableEncoder()),
    "tree": cf.DecisionTreeRegressor(max_depth=2, encoder=cf.TableEncoder()),
    "machine": cf.SVR(encoder=cf.TableEncoder()),
}


@pytest.fixture
def rows(rng):
    table = pd.DataFrame({"x": rng.normal(size=60), "g": rng.choice(list("ab"), 60), "w": rng.exponential(size=60)})
    return table.assign(y=table["x"] + (table["g"] == "a") + 0.3 * rng.normal(size=60))


@pytest.mark.parametrize("name", MODELS)
def test_a_scan_is_scored_by_its_own_target_and_weights(name, rows, tmp_path):
    rows.to_parquet(tmp_path / "rows.parquet")
    scan = cf.scan_parquet(tmp_path / "rows.parquet", target="y", weight="w")
    model = MODELS[name].fit(scan)
    theirs = r2_score(rows["y"], model.predict(rows[["x", "g"]]), sample_weight=rows["w"])
    assert model.score(scan) == pytest.approx(theirs, rel=1e-12)
    assert model.score(rows[["x", "g"]], rows["y"], rows["w"]) == theirs


@pytest.mark.parametrize("name", MODELS)
def test_rows_without_a_target_are_named(name, rows):
    X, y = rows[["x", "g"]], rows["y"].to_numpy(copy=True)
    model = MODELS[name].fit(X, y)
    y[7] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN: row 7"):
        model.score(X, y)
    with pytest.raises(ValueError, match="score needs the targets y of these rows"):
        model.score(X)
