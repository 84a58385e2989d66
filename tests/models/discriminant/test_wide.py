"""Gaussian classes with more columns than rows: folds through products of rows give the scores of refits."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import certifit as cf
from certifit.data.cells import ByRow, Splits
from certifit.data.source import Memory
from certifit.models import gathered
from certifit.models.folds import Candidates
from certifit.selection.folds.rows import Shared

SHRINKAGES = [0.0, 0.01, 0.5, 1.0]


@pytest.fixture
def wide_from_20(monkeypatch):
    """Small tables count as wide too."""
    monkeypatch.setattr(gathered, "FEW_COLUMNS", 20)


def table(n_rows: int = 24, n_columns: int = 30) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    y = np.arange(n_rows) % 3
    X = random.standard_normal((n_rows, n_columns))
    X[:, :4] += 2 * random.standard_normal((3, 4))[y]
    X[:, 5] = 7.0  # a column that does not vary
    return X * np.geomspace(0.1, 10, n_columns) + 3, np.array(["a", "b", "c"])[y]


def split_scores(model: cf.GaussianDiscriminant, shrinkages: list[float], **fit) -> np.ndarray:
    X, y = table()
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    search = cf.CrossValidated(model, {"shrinkage": shrinkages}, cv=cv, scoring="neg_log_loss").fit(X, y, **fit)
    return np.array([search.cv_results_[f"split{s}_test_score"] for s in range(3)])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*no maximum")
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("covariance", ["shared", "class"])
def test_scores_are_those_of_sums_of_products_of_columns(covariance, standardize, wide_from_20, monkeypatch):
    model = cf.GaussianDiscriminant(covariance, standardize=standardize)
    weight = {"sample_weight": 1.0 + np.arange(24) % 2}
    of_rows = split_scores(model, SHRINKAGES, **weight)
    monkeypatch.setattr(gathered, "FEW_COLUMNS", 1000)
    np.testing.assert_allclose(of_rows, split_scores(model, SHRINKAGES, **weight), rtol=1e-6)


def test_a_wide_table_takes_this_way(wide_from_20):
    X, y = table()
    classes, codes = np.unique(y, return_inverse=True)
    rounds, grid = [Splits.folds(ByRow(3, 0))], Candidates([{"shrinkage": 0.1}], classes)
    folds = cf.GaussianDiscriminant().folds(Memory(X, codes.astype(float)), rounds, grid, Shared())
    assert isinstance(folds.states[0][0][0].model, gathered.ScoreTable)


def test_priors_weigh_the_classes(wide_from_20, monkeypatch):
    model = cf.GaussianDiscriminant(priors=[0.5, 0.3, 0.2])
    of_rows = split_scores(model, [0.2])
    monkeypatch.setattr(gathered, "FEW_COLUMNS", 1000)
    np.testing.assert_allclose(of_rows, split_scores(model, [0.2]), rtol=1e-8)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("covariance", ["shared", "class"])
def test_without_shrinkage_the_refusal_is_that_of_a_fit(covariance, wide_from_20, monkeypatch):
    X, y = table()
    sentences = []
    for few in (20, 1000):
        monkeypatch.setattr(gathered, "FEW_COLUMNS", few)
        with pytest.raises(ValueError, match="no maximum") as error:
            cf.cross_validate(cf.GaussianDiscriminant(covariance, singular="raise"), X, y, cv=3)
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]


def test_columns_that_repeat_few_others_are_left_to_sums(wide_from_20):
    random = np.random.default_rng(1)
    few = random.standard_normal((24, 3))
    X, y = few @ random.standard_normal((3, 30)), np.arange(24) % 3
    search = cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.0]}, cv=3).fit(X, y)
    alone = cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.0]}, cv=3).fit(few, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
