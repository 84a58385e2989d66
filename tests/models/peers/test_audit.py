"""What is proven of the fits of other libraries, and the models that stand for theirs."""

import warnings
from inspect import signature

import numpy as np
import pytest
from sklearn import linear_model as sk
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA as TheirPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge as TheirKernelRidge
from sklearn.svm import SVC, SVR, LinearSVC

import certifit as cf

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 4)) * [1.0, 2.0, 0.5, 1.0]
Y = X @ [1.0, -0.5, 0.0, 2.0] + RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.2)).astype(float)
AMOUNTS = RNG.gamma(2.0, np.exp(0.2 * X[:, 3]))
LABELS = np.where(Y > 0, "yes", "no")
WEIGHT = RNG.integers(1, 4, size=N).astype(float)
TIGHT = {"tol": 1e-13, "max_iter": 100_000}
TARGETS = {"PoissonRegressor": COUNTS, "GammaRegressor": AMOUNTS, "LogisticRegression": LABELS}
MODELS = [
    sk.LinearRegression(),
    sk.Ridge(3.0),
    sk.Ridge(fit_intercept=False),
    sk.Lasso(0.1, **TIGHT),
    sk.Lasso(0.1, positive=True, **TIGHT),
    sk.ElasticNet(0.1, l1_ratio=0.3, **TIGHT),
    sk.HuberRegressor(alpha=0.1, **TIGHT),
    sk.LogisticRegression(**TIGHT),
    sk.LogisticRegression(C=0.2, class_weight="balanced", solver="newton-cg", **TIGHT),
    sk.LogisticRegression(C=0.5, l1_ratio=1.0, solver="saga", random_state=0, **TIGHT),
    sk.PoissonRegressor(alpha=0.1, solver="newton-cholesky", **TIGHT),
    sk.GammaRegressor(alpha=0.1, solver="newton-cholesky", **TIGHT),
]


def target(model):
    return TARGETS.get(type(model).__name__, Y)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model)[:60])
def test_a_fit_at_its_optimum_is_proven_to_be_there_and_one_that_is_moved_is_not(model):
    fitted = model.fit(X, target(model))
    found = cf.audit(fitted, X, target(model), tol=1e-7)
    assert found.holds and f"This {type(model).__name__} is at its optimum" in str(found)
    assert min(found.digits) >= 3
    coefficients = fitted.coef_.copy()
    fitted.coef_ = coefficients + 0.3
    moved = cf.audit(fitted, X, target(model), tol=1e-7)
    assert not moved.holds and "stopped above its optimum" in str(moved) and min(moved.digits) == 0
    fitted.coef_ = coefficients


def test_the_bound_is_never_below_the_true_excess():
    model = sk.Ridge(2.0).fit(X, Y)
    best = np.sum((Y - model.predict(X)) ** 2) + 2.0 * model.coef_ @ model.coef_
    for step in (0.01, 0.1, 1.0):
        model.coef_ = sk.Ridge(2.0).fit(X, Y).coef_ + step
        value = np.sum((Y - model.predict(X)) ** 2) + 2.0 * model.coef_ @ model.coef_
        assert cf.audit(model, X, Y).certificate.value >= (value - best) / value * (1 - 1e-9)


def test_weights_count_rows():
    model = sk.Ridge(3.0).fit(X, Y, WEIGHT)
    assert cf.audit(model, X, Y, WEIGHT).holds
    assert not cf.audit(model, X, Y).holds


@pytest.mark.slow
def test_a_solver_that_stopped_early_is_told_which_digits_are_wrong():
    iris = load_iris()
    model = sk.LogisticRegression(C=1e4, max_iter=30, tol=1.0).fit(iris.data, iris.target)
    found = cf.audit(model, iris.data, iris.target)
    assert not found.holds and "for class" in str(found)
    assert "where the optimum has" in str(found) and min(found.digits) == 0


def test_principal_components_and_kernel_ridge():
    assert cf.audit(TheirPCA(2).fit(X), X).holds
    turned = TheirPCA(2).fit(X)
    turned.components_ = turned.components_[::-1]
    assert not cf.audit(turned, X).holds
    for kernel in ({"kernel": "rbf", "gamma": 0.3}, {"kernel": "rbf"}, {"kernel": "poly", "degree": 2}, {}):
        model = TheirKernelRidge(alpha=0.5, **kernel).fit(X, Y)
        assert cf.audit(model, X, Y).holds, kernel
        model.dual_coef_ = model.dual_coef_ * 1.01
        assert not cf.audit(model, X, Y).holds


def test_results_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    columns = sm.add_constant(X)
    results = [
        (sm.OLS(Y, columns).fit(), Y),
        (sm.Logit(LABELS == "yes", columns).fit(disp=False), (LABELS == "yes").astype(float)),
        (sm.GLM(COUNTS, columns, family=sm.families.Poisson()).fit(), COUNTS),
        (sm.GLM(AMOUNTS, columns, family=sm.families.Gamma(sm.families.links.Log())).fit(), AMOUNTS),
    ]
    for fitted, y in results:
        assert cf.audit(fitted, columns, y, tol=1e-7).holds, fitted.model
    stopped = sm.Logit(LABELS == "yes", columns).fit(maxiter=2, disp=False, warn_convergence=False)
    assert not cf.audit(stopped, columns, (LABELS == "yes").astype(float)).holds
    with pytest.raises(ValueError, match="exposure"):
        exposed = sm.GLM(COUNTS, columns, family=sm.families.Poisson(), exposure=WEIGHT).fit()
        cf.audit(exposed, columns, COUNTS)


def test_glum_is_audited():
    glum = pytest.importorskip("glum")
    model = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.1, gradient_tol=1e-10).fit(X, COUNTS)
    assert cf.audit(model, X, COUNTS, tol=1e-7).holds


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model)[:60])
def test_conversions_have_the_same_optimum_and_go_back(model):
    ours = cf.from_sklearn(model, n_rows=N)
    back = cf.to_sklearn(ours, n_rows=N).set_params(
        tol=1e-13, **({} if "Linear" in str(model) else {"max_iter": 100_000})
    )
    y = target(model)
    ours.fit(X, y)
    np.testing.assert_allclose(np.ravel(ours.coef_), np.ravel(model.fit(X, y).coef_), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.ravel(back.fit(X, y).coef_), np.ravel(model.coef_), rtol=1e-3, atol=1e-4)


def test_what_has_no_counterpart_is_refused_in_words():
    with pytest.raises(TypeError, match="RandomForestRegressor of sklearn is not known here"):
        cf.audit(RandomForestRegressor(2).fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="Give n_rows"):
        cf.from_sklearn(sk.Ridge(2.0))
    with pytest.raises(ValueError, match="penalises the intercept"):
        cf.from_sklearn(sk.LogisticRegression(solver="liblinear"))
    with pytest.raises(ValueError, match="positive=True"):
        cf.from_sklearn(sk.Ridge(positive=True))
    with pytest.raises(ValueError, match="standardize=True"):
        cf.to_sklearn(cf.Ridge(standardize=True))
    with pytest.raises(TypeError, match="has no counterpart"):
        cf.to_sklearn(cf.Perceptron())
    with pytest.raises(ValueError, match="is not fitted"):
        cf.audit(sk.Ridge(), X, Y)
    assert repr(cf.from_sklearn(sk.Ridge())) == "Ridge()"


def margin_rows(n=150):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_support_vector_machines_are_audited_by_their_support_vectors(kernel):
    X, score = margin_rows()
    for model, y in ((SVC(C=2.0, kernel=kernel), score > 0.5), (SVR(C=2.0, kernel=kernel, epsilon=0.2), score)):
        good = cf.audit(model.set_params(tol=1e-7).fit(X, y), X, y)
        assert good.holds, str(good)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert not cf.audit(model.set_params(max_iter=10).fit(X, y), X, y).holds


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_machines_of_several_classes_are_audited_pair_by_pair(kernel, class_weight):
    X, score = margin_rows()
    y = np.array(["a", "b", "c", "d"])[np.digitize(score, [0.0, 1.0, 2.0])]
    X = X @ X.T if kernel == "precomputed" else X
    model = SVC(C=2.0, kernel=kernel, tol=1e-7, class_weight=class_weight).fit(X, y)
    good = cf.audit(model, X, y)
    assert good.holds, str(good)
    model.intercept_[4] += 0.05  # of the machine of b and d alone
    assert not cf.audit(model, X, y).holds


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_machines_convert_to_the_same_optimum_and_back(kernel):
    X, score = margin_rows()
    how = {"C": 2.5, "kernel": kernel, "gamma": 0.3, "coef0": 0.5, "tol": 1e-8}
    for model, y in ((SVC(**how), score > 0.5), (SVR(epsilon=0.2, **how), score)):
        ours = cf.from_sklearn(model, n_rows=len(y))
        back = cf.to_sklearn(ours, n_rows=len(y)).set_params(tol=1e-8)
        assert pytest.approx(2.5) == back.C
        scores = "decision_function" if hasattr(model, "decision_function") else "predict"
        z = getattr(model.fit(X, y), scores)(X)
        for same in (ours.set_params(tol=1e-8).fit(X, y), back.fit(X, y)):
            np.testing.assert_allclose(getattr(same, scores)(X), z, atol=1e-3)


def test_the_default_width_converts_where_rows_have_no_weights():
    X, score = margin_rows()
    assert cf.from_sklearn(SVC()).kernel is None and cf.to_sklearn(cf.SVC()).gamma == "scale"
    ours, theirs = (model.set_params(tol=1e-6).fit(X, score).predict(X) for model in (cf.from_sklearn(SVR()), SVR()))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    with pytest.raises(ValueError, match="gamma='scale'"):
        cf.from_sklearn(SVC(class_weight="balanced"))
    with pytest.raises(ValueError, match="no counterpart"):
        cf.to_sklearn(cf.SVC(class_weight="balanced"))
    with pytest.raises(ValueError, match="multi_class"):
        cf.to_sklearn(cf.SVC(multi_class="one-vs-rest"))
    with pytest.raises(ValueError, match="n_rows="):
        cf.to_sklearn(cf.SVR(0.1))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear_machines_are_audited_without_their_penalised_intercept(loss):
    X, score = margin_rows()
    y = score > 0.5
    model = LinearSVC(C=3.0, loss=loss, fit_intercept=False, tol=1e-10, max_iter=100_000, dual=True).fit(X, y)
    assert cf.audit(model, X, y).holds
    model.coef_ = model.coef_ * 1.05
    assert not cf.audit(model, X, y).holds
    with pytest.raises(ValueError, match="penalises the intercept"):
        cf.audit(LinearSVC().fit(X, y), X, y)
    ours = cf.from_sklearn(LinearSVC(C=3.0, loss=loss, fit_intercept=False), n_rows=150)
    assert pytest.approx(3.0) == cf.to_sklearn(ours, n_rows=150).C


def test_weights_of_classes_that_change_the_unit_are_refused():
    X, score = margin_rows()
    for model in (SVC(class_weight={True: 3.0}), sk.LogisticRegression(class_weight={True: 3.0})):
        with pytest.raises(ValueError, match="class_weight as a dict"):
            cf.audit(model.fit(X, score > 0.5), X, score > 0.5)
    assert cf.audit(SVC(class_weight="balanced", tol=1e-7).fit(X, score > 0.5), X, score > 0.5).holds


FLOWERS, SPECIES = load_iris(return_X_y=True)
GAUSSIANS = [
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(store_covariance=True),
    LinearDiscriminantAnalysis("lsqr", shrinkage=0.3, priors=[0.2, 0.3, 0.5]),
    LinearDiscriminantAnalysis("eigen"),
    QuadraticDiscriminantAnalysis(),
]
if "shrinkage" in signature(QuadraticDiscriminantAnalysis).parameters:  # from scikit-learn 1.8
    GAUSSIANS.append(QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.2, priors=[0.2, 0.3, 0.5]))


@pytest.mark.parametrize("model", GAUSSIANS, ids=str)
def test_discriminants_are_at_the_largest_likelihood_until_their_means_are_moved(model):
    fitted = model.fit(FLOWERS, SPECIES)
    assert cf.audit(fitted, FLOWERS, SPECIES).holds
    two = cf.audit(type(model)().fit(FLOWERS, SPECIES > 0), FLOWERS, SPECIES > 0)
    assert two.holds and "the likelihood of Gaussian classes" in str(two)
    fitted.means_ = fitted.means_ + 1e-5
    assert not cf.audit(fitted, FLOWERS, SPECIES).holds


COPIES = {
    "a combination": lambda A: np.column_stack([A, A[:, 0] + A[:, 1]]),
    "two units": lambda A: np.column_stack([A, 9 / 5 * A[:, 2] + 32]),
    "a constant": lambda A: np.column_stack([A, np.ones(len(A))]),
    "all levels": lambda A: np.column_stack([A, np.eye(3)[np.arange(len(A)) % 3]]),
    "dates": lambda A: np.column_stack([A, 738_000.0 + np.arange(len(A)) % 365]),
}


@pytest.mark.parametrize("model", GAUSSIANS[:4], ids=str)
@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize("classes", [SPECIES, SPECIES > 0], ids=["three", "two"])
def test_boundaries_of_columns_that_repeat_others_are_compared_by_their_log_odds(copies, model, classes):
    """Their coefficients are those of another basis; every log-odds is that of the optimum."""
    rows, priors = COPIES[copies](FLOWERS), None if classes.dtype == bool else model.priors
    is_singular = copies != "dates" and model.shrinkage is None
    if is_singular and model.solver == "eigen":
        pytest.skip("scikit-learn has no eigenvalues of it")
    fitted = clone(model).set_params(priors=priors).fit(rows, classes)
    assert cf.audit(fitted, rows, classes).holds
    fitted.intercept_ = fitted.intercept_ + np.arange(len(fitted.intercept_)) * 1e-4 + 1e-4
    fitted.coef_ = fitted.coef_ * (1 + 1e-6)
    assert "coef_ and intercept_ are not those" in str(cf.audit(fitted, rows, classes))


def test_a_direct_solver_is_not_told_to_iterate_longer():
    """Units of 1e6 and 1e-3: the small column falls below the share that scikit-learn's solver cuts off."""
    rows = RNG.normal(size=(200, 4)) * [1e6, 1, 1e-5, 1] + [1e7, 0, 0, 5]
    target = 1e5 * rows[:, 2] + RNG.normal(size=200)
    found = cf.audit(sk.LinearRegression().fit(rows, target), rows, target)
    assert not found.holds and "max_iter" not in str(found) and "Scale the columns" in str(found)


def test_covariances_that_are_divided_by_fewer_are_the_same_fit_and_others_are_not():
    quadratic = QuadraticDiscriminantAnalysis().fit(FLOWERS, SPECIES)
    best = cf.GaussianDiscriminant("class").fit(FLOWERS, SPECIES).covariance_
    axes = [np.linalg.eigh(covariance) for covariance in best]
    quadratic.rotations_ = [vectors for _, vectors in axes]
    for factor, is_held in ((1.0, True), (50 / 49, True), (1.05, False)):
        quadratic.scalings_ = [factor * values for values, _ in axes]
        assert cf.audit(quadratic, FLOWERS, SPECIES).holds is is_held
    linear = LinearDiscriminantAnalysis().fit(FLOWERS, SPECIES)
    state = cf.GaussianDiscriminant().fit(FLOWERS, SPECIES)
    logs = np.log(state.priors_)
    for times in (1.0, 147 / 150):
        linear.coef_, linear.intercept_ = times * state.coef_, logs + times * (state.intercept_ - logs)
        assert cf.audit(linear, FLOWERS, SPECIES).holds
    linear.coef_ = linear.coef_ * (1 + 1e-6)
    moved = cf.audit(linear, FLOWERS, SPECIES)
    assert not moved.holds and "coef_ and intercept_ are not those" in str(moved)


def test_discriminants_without_a_counterpart_are_refused():
    for model, word in (
        (QuadraticDiscriminantAnalysis(reg_param=0.1), "reg_param"),
        (LinearDiscriminantAnalysis(priors=[0.2, 0.3, 0.5]), "solver='lsqr'"),
        (LinearDiscriminantAnalysis("lsqr", shrinkage="auto"), "shrinkage"),
    ):
        with pytest.raises(ValueError, match=word):
            cf.audit(model.fit(FLOWERS, SPECIES), FLOWERS, SPECIES)
