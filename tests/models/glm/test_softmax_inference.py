"""Standard errors, tests and intervals of more than two classes: statsmodels' multinomial logit, and mathematics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

import certifit as cf
from certifit.inference.glm import Multinomial

LABELS = np.array(["ash", "birch", "cedar", "dogwood"])


@pytest.fixture
def problem(rng):
    """Columns of unlike size, far from 0; four classes that overlap; weights."""
    X = rng.normal(size=(300, 3)) * [1.0, 20.0, 0.1] + [0.0, 100.0, 3.0]
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(3, 4))
    return X, (z + rng.gumbel(size=z.shape)).argmax(axis=1), rng.integers(1, 4, 300).astype(float)


def multinomial_logit(X, codes, **options):
    return sm.MNLogit(codes, X).fit(disp=0, method="newton", maxiter=30, tol=1e-14, warn_convergence=False, **options)


def by_class(table):
    """One class after the other."""
    return np.asarray(table).T.ravel()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_table_is_that_of_statsmodels(problem, fit_intercept):
    X, codes, _ = problem
    model = cf.LogisticRegression(alpha=0, fit_intercept=fit_intercept).fit(X, LABELS[codes])
    fit, columns = model.summary(convention="statsmodels").inference, sm.add_constant(X) if fit_intercept else X
    theirs = multinomial_logit(columns, codes)
    np.testing.assert_allclose(fit.estimate, by_class(theirs.params), rtol=1e-8)
    np.testing.assert_allclose(fit.standard_errors, by_class(theirs.bse), rtol=1e-8)
    np.testing.assert_allclose(fit.p_values, by_class(theirs.pvalues), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(fit.covariance, np.asarray(theirs.cov_params()), rtol=1e-6, atol=1e-9)
    ends = np.asarray(theirs.conf_int(0.1)).reshape(-1, 2)
    np.testing.assert_allclose(fit.confidence_interval(0.9), ends, rtol=1e-7)
    for name, value in {"log_likelihood": theirs.llf, "aic": theirs.aic, "bic": theirs.bic}.items():
        assert getattr(fit, name) == pytest.approx(value, rel=1e-10)
    if fit_intercept:
        ratio = fit.likelihood_ratio
        assert (ratio.statistic, ratio.df) == (pytest.approx(theirs.llr, rel=1e-6), theirs.df_model)
    assert fit.names[len(fit.names) // 3] == ("cedar: intercept" if fit_intercept else "cedar: x0")
    assert fit.df_resid == 3 * len(X) - len(fit.names)  # as VGAM of R
    robust = model.summary(X, LABELS[codes], covariance="HC0").inference
    np.testing.assert_allclose(
        robust.standard_errors, by_class(multinomial_logit(columns, codes, cov_type="HC0").bse), rtol=1e-7
    )
    more = model.summary(X, LABELS[codes], covariance="HC1").inference
    np.testing.assert_allclose(more.covariance, robust.covariance * 300 / (300 - len(fit.names)), rtol=1e-10)
    assert "log-odds of each class of y against 'ash'" in " ".join(model.summary().notes)


def test_weight_two_is_the_row_twice_and_pearson_is_its_formula(problem):
    X, codes, weight = problem
    model = cf.LogisticRegression(alpha=0).fit(X, LABELS[codes], weight)
    fit = model.summary().inference
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    twice = cf.LogisticRegression(alpha=0).fit(X[rows], LABELS[codes[rows]]).summary().inference
    np.testing.assert_allclose(fit.standard_errors, twice.standard_errors, rtol=1e-8)
    assert fit.n_obs == twice.n_obs == weight.sum()
    chances = model.predict_proba(X)
    pearson = weight @ np.sum(np.square(np.eye(4)[codes] - chances) / chances, axis=1)
    assert fit.pearson == pytest.approx(pearson, rel=1e-9)
    robust, others = (
        one.summary(*rows, covariance="HC0").inference.standard_errors
        for one, rows in (
            (model, (X, LABELS[codes], weight)),
            (cf.LogisticRegression(alpha=0).fit(X[rows], LABELS[codes[rows]]), (X[rows], LABELS[codes[rows]])),
        )
    )
    np.testing.assert_allclose(robust, others, rtol=1e-8)


def test_columns_of_another_unit_and_place_have_the_same_tests(problem):
    X, codes, _ = problem
    first, second = (
        cf.LogisticRegression(alpha=0).fit(rows, codes).summary().inference.t_values.reshape(3, 4)
        for rows in (X, X * [1e3, 1e-4, 7.0] + [5.0, 0.0, -2.0])
    )
    np.testing.assert_allclose(first[:, 1:], second[:, 1:], rtol=1e-7)


def test_intervals_of_chances_are_those_of_one_score_for_two_classes_and_of_the_delta_method_for_more(problem):
    X, codes, _ = problem
    two = cf.LogisticRegression(alpha=0).fit(X, codes > 1)
    rows, chances = np.column_stack([np.ones(9), X[:9]]), two.predict_proba(X[:9])
    np.testing.assert_allclose(
        two.inference_.chance_intervals(rows, chances, 0.9)[:, 1], two.predict_interval(X[:9], 0.9), rtol=1e-6
    )
    model = cf.LogisticRegression(alpha=0).fit(X, LABELS[codes])
    found, fit = model.predict_interval(X[:5], 0.9), model.inference_
    assert found.shape == (5, 4, 2)

    def logits(theta, row):
        z = np.append(0.0, theta.reshape(3, 4) @ row)
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        return np.log(p) - np.log1p(-p)

    for i, row in enumerate(rows[:5]):
        moves = 1e-5 * fit.standard_errors
        steps = [move * one for move, one in zip(moves, np.eye(12), strict=True)]
        slopes = [logits(fit.estimate + s, row) - logits(fit.estimate - s, row) for s in steps]
        slopes = np.array(slopes).T / (2 * moves)
        half = stats.norm.ppf(0.95) * np.sqrt(np.einsum("ij,jk,ik->i", slopes, fit.covariance, slopes))
        centre = logits(fit.estimate, row)
        expected = 1 / (1 + np.exp(-np.column_stack([centre - half, centre + half])))
        np.testing.assert_allclose(found[i], expected, rtol=1e-5)


def test_redundant_columns_are_marked_or_left_out_in_every_score(problem):
    X, labels = problem[0][:80], LABELS[problem[1][:80] % 3]
    wide = np.column_stack([X[:, 0], X[:, 1] - 100, 2 * X[:, 0]])
    model = cf.LogisticRegression(alpha=0).fit(wide, labels)
    with pytest.raises(ValueError, match=r"[Pp]ass the rows"):
        model.summary()
    marked = model.summary(wide, labels)
    assert marked.undetermined == tuple(place + first for first in (0, 4) for place in (1, 3))
    kept = cf.LogisticRegression(alpha=0).fit(wide[:, :2], labels).summary().inference
    dropped = model.summary(wide, labels, redundant="drop")
    assert [column.name for column in dropped.dropped] == [f"{label}: x2" for label in LABELS[1:3]]
    np.testing.assert_allclose(dropped.inference.standard_errors, kept.standard_errors, rtol=1e-7)
    np.testing.assert_allclose(dropped.inference.estimate, kept.estimate, rtol=1e-6)


def test_a_file_keeps_the_table_and_refuses_a_changed_one(problem, tmp_path):
    X, codes, _ = problem
    model = cf.LogisticRegression(alpha=0).fit(X, LABELS[codes])
    cf.save(model, tmp_path / "model.cfm")
    loaded = cf.load(tmp_path / "model.cfm")
    assert str(loaded.summary()) == str(model.summary())
    assert isinstance(loaded.inference_.family, Multinomial)
    np.testing.assert_array_equal(loaded.predict_interval(X[:3]), model.predict_interval(X[:3]))
    model.inference_ = replace(model.inference_, inverse=model.inference_.inverse * 0.5)
    with pytest.raises(ValueError, match="not that of the rows' weights"):
        cf.save(model, tmp_path / "half.cfm")


def test_no_table_where_nothing_is_estimated(problem, rng):
    X, codes, _ = problem
    weighted = cf.LogisticRegression(alpha=0, class_weight="balanced").fit(X, codes)
    with pytest.raises(ValueError, match="class_weight changes what is estimated"):
        weighted.summary()
    apart = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [20, 0], [0, 20]], 20, axis=0)
    with pytest.warns(UserWarning):
        model = cf.LogisticRegression(alpha=0).fit(apart, np.repeat([0, 1, 2], 20))
    with pytest.raises(ValueError, match="No summary: a maximum of the likelihood is not proven"):
        model.summary()
