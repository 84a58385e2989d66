"""The estimators of certifit, a row each: what every test that is for all of them reads.

A newcomer is one row. With it come scikit-learn's checks, the hostile battery, refits that fail, copies, the same bits
in every place for rows, weights as repeated rows, a model file with its attacks, a fit without a proof, Ctrl-C and
little memory. `python tests/modelfile/keep.py KEY` keeps a file of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from repetitions import IS_SOAK
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import Ridge as TheirRidge

import certifit as cf

IN_ORDER = frozenset({"in order"})  # the order of the rows decides: perceptrons, folds by row number
HASHED = frozenset({"hashed"})
SQUARES = cf.Polynomial(2)


@dataclass(frozen=True)
class Row:
    """An estimator. model: one that every test takes. checked, attacked: settings that scikit-learn's checks and the
    hostile inputs take beside it. refitted: settings of which only failing refits are tried beside those.

    kind: of its target: "reg" (any number), "pois" (counts), "positive", "clf" (classes) or "tr" (none).
    flags: "hashed" (draws follow from the bits of the values),
    "in order", "counts" (no negative X), "categories" (takes frames with columns of categories), "target" (a
    transformer that reads one).
    """

    model: Any
    kind: str
    flags: frozenset[str] = frozenset()
    checked: tuple[Any, ...] = ()
    attacked: tuple[Any, ...] = ()
    refitted: tuple[Any, ...] = ()

    def rows(self, n: int = 60, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
        """Few rows of its kind, that every setting can fit; y is None where it takes none."""
        rng = np.random.default_rng(seed)
        X = np.abs(rng.normal(size=(n, d))) if "counts" in self.flags else rng.normal(size=(n, d))
        score = X @ np.linspace(1, -1, d)
        noise = 0.3 * rng.normal(size=n)
        targets = {
            "reg": score + noise,
            "pois": rng.poisson(np.exp(0.3 * score)).astype(float),
            "positive": np.exp(0.3 * score + noise),
            "clf": np.where(score + noise > np.median(score), "yes", "no"),
        }
        return X, targets.get(self.kind)

    def frame(self, n: int = 60, d: int = 4) -> tuple[pd.DataFrame, str | None]:
        """The same with names, and the name of the target."""
        X, y = self.rows(n, d)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
        return (frame, None) if y is None else (frame.assign(y=y), "y")

    @property
    def takes_weights(self) -> bool:
        return "sample_weight" in inspect.signature(self.model.fit).parameters

    @staticmethod
    def answers(model: Any, X: Any) -> Any:
        """What a fitted model says of rows, as numbers."""
        names = ("predict_proba", "decision_function", "predict", "transform")
        method = next(name for name in names if hasattr(model, name))
        return np.asarray(getattr(model, method)(X), dtype=float)


# Keys are those of certifit's own table of models.
LEARNERS = {
    "linear_regression": Row(
        cf.LinearRegression(),
        "reg",
        checked=(
            cf.LinearRegression(fit_intercept=False),
            cf.LinearRegression(basis=SQUARES),
            cf.LinearRegression(basis=cf.Polynomial(2, form="powers"), fit_intercept=False),
        ),
    ),
    "ridge": Row(
        cf.Ridge(),
        "reg",
        checked=(
            cf.Ridge(0.0),
            cf.Ridge(0.5, fit_intercept=False),
            cf.Ridge(0.01, basis=SQUARES),
            cf.Ridge(0.1, standardize=True),
        ),
        refitted=(cf.Ridge(0.1, basis=SQUARES),),
    ),
    "lasso": Row(
        cf.Lasso(0.01),
        "reg",
        checked=(
            cf.Lasso(),
            cf.Lasso(0.1, fit_intercept=False, bounds=(0.0, np.inf)),
            cf.Lasso(0.01, basis=SQUARES),
        ),
        attacked=(cf.Lasso(0.01, bounds=(0.0, np.inf)),),
    ),
    "elastic_net": Row(
        cf.ElasticNet(0.01), "reg", checked=(cf.ElasticNet(), cf.ElasticNet(0.1, 0.9, bounds=(-1.0, 2.0)))
    ),
    "huber_regressor": Row(
        cf.HuberRegressor(),
        "reg",
        checked=(
            cf.HuberRegressor(scale="mad"),
            cf.HuberRegressor(scale="mad", fit_intercept=False),
            cf.HuberRegressor(scale=1.0, alpha=0.1),
            cf.HuberRegressor(alpha=0.5, fit_intercept=False),
            cf.HuberRegressor(1.5, 0.01, scale=1.0, basis=SQUARES),
        ),
        attacked=(cf.HuberRegressor(scale="mad"), cf.HuberRegressor(alpha=0.01, scale=1.0)),
        refitted=(cf.HuberRegressor(basis=SQUARES),),
    ),
    "quantile_regressor": Row(cf.QuantileRegressor(), "reg", checked=(cf.QuantileRegressor(0.4, alpha=0.01),)),
    "kernel_ridge": Row(
        cf.KernelRidge(),
        "reg",
        checked=(
            cf.KernelRidge(0.1, kernel=cf.kernels.Linear(), fit_intercept=False),
            cf.KernelRidge(0.01, kernel=cf.kernels.Gaussian(2.0) + 1, standardize=True),
        ),
        attacked=(cf.KernelRidge(0.1, kernel=cf.kernels.Polynomial(2), standardize=True),),
    ),
    "kernel_lms": Row(
        cf.KernelLMS(),
        "reg",
        IN_ORDER,
        checked=(cf.KernelLMS(kernel=cf.kernels.Gaussian(2.0) + 1, updates="rows", standardize=True, max_iter=20),),
    ),
    "kernel_pca": Row(
        cf.KernelPCA(2),
        "tr",
        checked=(cf.KernelPCA(), cf.KernelPCA(1, kernel=cf.kernels.Polynomial(2), standardize=True)),
    ),
    "locally_weighted_regression": Row(
        cf.LocallyWeightedRegression(0.7),
        "reg",
        checked=(
            cf.LocallyWeightedRegression(),
            cf.LocallyWeightedRegression(2.0, weights="tricube"),
            cf.LocallyWeightedRegression(1.0, terms="constant", standardize=False),
        ),
        attacked=(cf.LocallyWeightedRegression(1.0, weights="tricube"),),
    ),
    "mlp_regressor": Row(cf.MLPRegressor((100,)), "reg", HASHED),
    "mlp_classifier": Row(cf.MLPClassifier((100,)), "clf", HASHED),
    "gaussian_discriminant": Row(
        cf.GaussianDiscriminant(),
        "clf",
        checked=(
            cf.GaussianDiscriminant("class"),
            cf.GaussianDiscriminant("class", shrinkage=0.2),
            cf.GaussianDiscriminant("diagonal"),
            cf.GaussianDiscriminant(basis=SQUARES),
        ),
        attacked=(cf.GaussianDiscriminant("class", shrinkage=0.1), cf.GaussianDiscriminant("diagonal")),
    ),
    "gaussian_nb": Row(cf.GaussianNB(), "clf"),
    "bernoulli_nb": Row(cf.BernoulliNB(), "clf"),
    "multinomial_nb": Row(cf.MultinomialNB(), "clf", frozenset({"counts"})),
    "logistic_regression": Row(
        cf.LogisticRegression(),
        "clf",
        checked=(cf.LogisticRegression(alpha=0.01, basis=SQUARES),),
        attacked=(cf.LogisticRegression(alpha=0.0),),
    ),
    "poisson_regressor": Row(
        cf.PoissonRegressor(),
        "pois",
        checked=tuple(
            cf.PoissonRegressor(solver=solver, max_iter=20) for solver in ("sgd", "mini-batch", "averaged-sgd")
        ),
        attacked=(cf.PoissonRegressor(0.0),),
    ),
    "gamma_regressor": Row(cf.GammaRegressor(), "positive", refitted=(cf.GammaRegressor(0.1),)),
    "glm": Row(cf.GLM(), "reg", checked=(cf.GLM("gaussian", fit_intercept=False),)),
    "perceptron": Row(
        cf.Perceptron(),
        "clf",
        IN_ORDER,
        checked=(cf.Perceptron(0.5, order="shuffled"), cf.Perceptron(basis=SQUARES)),
        attacked=(cf.Perceptron(order="shuffled"),),
    ),
    "svc": Row(
        cf.SVC(cache_size=20),
        "clf",
        checked=(
            cf.SVC(0.01, kernel=cf.kernels.Linear(), multi_class="one-vs-rest", class_weight="balanced"),
            cf.SVC(0.01, kernel=cf.kernels.Gaussian(2.0) + 1, standardize=True, solver="smo"),
        ),
        attacked=(cf.SVC(0.01, kernel=cf.kernels.Polynomial(2), fit_intercept=False, standardize=True, cache_size=20),),
    ),
    "linear_svc": Row(
        cf.LinearSVC(),
        "clf",
        checked=(
            cf.LinearSVC(loss="hinge"),
            cf.LinearSVC(0.1, "hinge", standardize=True),
            cf.LinearSVC(loss="hinge", basis=SQUARES),
        ),
        attacked=(cf.LinearSVC(loss="hinge"),),
        refitted=(cf.LinearSVC(0.1, solver="coordinate"), cf.LinearSVC(0.1, "hinge", solver="sgd", max_iter=3)),
    ),
    "svr": Row(
        cf.SVR(epsilon=1.0, cache_size=20),
        "reg",
        checked=(cf.SVR(0.01, epsilon=0.0, kernel=cf.kernels.Linear(), fit_intercept=False),),
    ),
    "hard_margin_svc": Row(
        cf.HardMarginSVC(not_separable="warn", cache_size=20),
        "clf",
        checked=(cf.HardMarginSVC(cf.kernels.Gaussian(1.0), not_separable="warn"),),
    ),
    "decision_tree_classifier": Row(
        cf.DecisionTreeClassifier(max_depth=2),
        "clf",
        checked=(
            cf.DecisionTreeClassifier(),
            cf.DecisionTreeClassifier(max_bins=16),
            cf.DecisionTreeClassifier(criterion="entropy", min_samples_leaf=3, max_leaf_nodes=8),
            cf.DecisionTreeClassifier(search="optimal", max_depth=2),
        ),
        attacked=(cf.DecisionTreeClassifier(ccp_alpha=0.01), cf.DecisionTreeClassifier(search="optimal", max_depth=2)),
    ),
    "decision_tree_regressor": Row(
        cf.DecisionTreeRegressor(max_depth=2),
        "reg",
        checked=(
            cf.DecisionTreeRegressor(),
            cf.DecisionTreeRegressor(min_samples_split=5, ccp_alpha=0.01),
            cf.DecisionTreeRegressor(search="optimal", max_depth=2, min_samples_leaf=2),
        ),
    ),
    "ada_boost_classifier": Row(
        cf.AdaBoostClassifier(10),
        "clf",
        checked=(cf.AdaBoostClassifier(20, learning_rate=0.5),),
    ),
    "ada_boost_regressor": Row(
        cf.AdaBoostRegressor(5, max_depth=2),
        "reg",
        HASHED,
        checked=(
            cf.AdaBoostRegressor(8, loss="square", learning_rate=0.5),
            cf.AdaBoostRegressor(6, loss="exponential"),
        ),
    ),
    "random_forest_classifier": Row(
        cf.RandomForestClassifier(5, max_depth=2), "clf", HASHED, checked=(cf.RandomForestClassifier(10),)
    ),
    "random_forest_regressor": Row(
        cf.RandomForestRegressor(5, max_depth=2),
        "reg",
        HASHED,
        checked=(cf.RandomForestRegressor(10, max_features=0.5),),
    ),
    "gradient_boosting_classifier": Row(
        cf.GradientBoostingClassifier(5, min_samples_leaf=2),
        "clf",
        HASHED,
        checked=(cf.GradientBoostingClassifier(10, min_samples_leaf=1, growth="depth", max_depth=3),),
    ),
    "gradient_boosting_regressor": Row(
        cf.GradientBoostingRegressor(5, min_samples_leaf=2),
        "reg",
        HASHED,
        checked=(cf.GradientBoostingRegressor(10, min_samples_leaf=1, subsample=0.7, family="huber"),),
    ),
    "pca": Row(
        cf.PCA(),
        "tr",
        checked=(
            cf.PCA(1),
            cf.PCA(0.9, standardize=True),
            cf.PCA("mle", solver="exact"),
            cf.PCA(whiten=True),
            cf.PCA(center=False, ddof=0),
            cf.PCA(1, solver="randomized"),
            cf.PCA(1, basis=SQUARES),
        ),
        attacked=(cf.PCA(2, whiten=True), cf.PCA(standardize=True), cf.PCA(2, solver="randomized")),
    ),
}

_LASSO = cf.GLM("poisson", alpha=0.01, l1_ratio=1.0)
# What has no row in certifit's table: more kinds of targets, models of models, maps.
OTHERS = {
    "glm of counts": Row(
        cf.GLM("negative-binomial", alpha=0.01),
        "pois",
        checked=(cf.GLM("poisson"),),
        attacked=(cf.GLM("poisson", "sqrt"),),
        refitted=(_LASSO,),
    ),
    "glm of amounts": Row(cf.GLM("gamma", alpha=0.1), "positive"),
    "one against the rest": Row(
        cf.OneVsRestClassifier(cf.LogisticRegression(0.1)),
        "clf",
        checked=(cf.OneVsRestClassifier(cf.GaussianNB()), cf.OneVsRestClassifier(TheirLogistic())),
        attacked=(cf.OneVsRestClassifier(cf.GaussianDiscriminant()),),
    ),
    "bagging of classes": Row(
        cf.BaggingClassifier(cf.DecisionTreeClassifier(max_depth=3), 4),
        "clf",
        HASHED,
        checked=(
            cf.BaggingClassifier(TheirLogistic(), 3, voting="hard"),
            cf.BaggingClassifier(cf.GaussianNB(), 3, max_samples=0.6, bootstrap=False),
        ),
    ),
    "bagging": Row(
        cf.BaggingRegressor(cf.Ridge(0.1), 4),
        "reg",
        HASHED,
        checked=(cf.BaggingRegressor(TheirRidge(), 3), cf.BaggingRegressor(cf.DecisionTreeRegressor(), 3)),
    ),
    "calibrated": Row(
        cf.Calibrated(cf.LogisticRegression(0.1), cv=3),
        "clf",
        HASHED,
        checked=(
            cf.Calibrated(cf.GaussianNB(), "isotonic", cv=2),
            cf.Calibrated(TheirLogistic(), cv=2),
        ),
    ),
    "calibrated by steps": Row(cf.Calibrated(cf.DecisionTreeClassifier(max_depth=2), "isotonic", cv=3), "clf", HASHED),
    "one against the rest in order": Row(cf.OneVsRestClassifier(cf.Perceptron()), "clf", IN_ORDER),
    "cross-validated": Row(
        cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 0.1]}, cv=3),
        "reg",
        checked=(
            cf.CrossValidated(cf.LinearRegression(), cv=3),
            cf.CrossValidated(cf.Ridge(), cv="loo"),
            cf.CrossValidated(TheirRidge(), {"alpha": [0.1, 1]}, cv=3),
        ),
        attacked=(cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 0.1]}, cv="loo"),),
    ),
    "cross-validated lasso": Row(cf.CrossValidated(cf.Lasso(), cv=3), "reg", IN_ORDER),
    "cross-validated classes": Row(
        cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0, 0.1]}, cv=3),
        "clf",
        IN_ORDER,
        checked=(cf.CrossValidated(TheirLogistic(), {"C": [0.1, 1]}, cv=3),),
    ),
    "forward selection": Row(
        cf.ForwardSelection(cf.LinearRegression(), n_features_to_select=1, cv=3),
        "reg",
        IN_ORDER,
        checked=(
            cf.ForwardSelection(cf.LinearRegression(), cv=3),
            cf.ForwardSelection(cf.Ridge(), 1, cv=2, scoring="neg_mean_absolute_error"),  # by refits
        ),
        refitted=(cf.ForwardSelection(cf.Ridge(0.1), n_features_to_select=2),),
    ),
    "backward selection": Row(
        cf.BackwardSelection(cf.LinearRegression(), n_features_to_select=1, cv=3),
        "reg",
        IN_ORDER,
        refitted=(cf.BackwardSelection(cf.LinearRegression(), n_features_to_select=2),),
    ),
    "mutual information": Row(
        cf.MutualInformationFilter(),
        "tr",
        frozenset({"categories", "target"}),
        checked=(
            cf.MutualInformationFilter(1, n_neighbors=1),
            cf.MutualInformationFilter(0.5, target="continuous"),
            cf.MutualInformationFilter("all", target="discrete"),
            cf.MutualInformationFilter("all", discrete_features=True),
        ),
    ),
    "polynomial": Row(cf.Polynomial(2), "tr", checked=(cf.Polynomial(), cf.Polynomial(3, form="powers"))),
    "functions": Row(cf.Functions([np.square, np.sin]), "tr", refitted=(cf.Functions([np.tanh]),)),
}
ROWS = LEARNERS | OTHERS


def name_of(model: Any) -> str:
    """Its repr in one line."""
    return " ".join(str(model).split())


def settings(*parts: str) -> dict[str, tuple[Row, Any]]:
    """Every row's model, and its settings in these parts, by name."""
    found = {}
    for row in ROWS.values():
        for models in ((row.model,), *(getattr(row, part) for part in parts)):
            found |= {name_of(model): (row, model) for model in models}
    return found


CHECKED = settings("checked")
# Models whose X is the matrix of a kernel, and why some checks cannot pass: their matrices are kernels of nothing.
_NO_KERNEL = {
    "check_positive_only_tag_during_fit": "takes a mean off the matrix, which then is not Mercer and is refused",
    "check_estimators_dtypes": "cuts the matrix to whole numbers, which then is not Mercer and is refused",
}
OF_MATRICES: tuple[tuple[Any, dict[str, str]], ...] = (
    (cf.KernelRidge(0.1, kernel="precomputed", indefinite="allow"), {}),
    (cf.KernelRidge(0.1, kernel="precomputed"), _NO_KERNEL),
    (cf.KernelPCA(1, kernel="precomputed"), _NO_KERNEL),
    (cf.KernelLMS(kernel="precomputed"), _NO_KERNEL),
    (cf.SVC(0.1, kernel="precomputed"), _NO_KERNEL),
)
REFITTED = settings("attacked", "refitted")
LEFT_TO_SOAK = () if IS_SOAK else ("LocallyWeightedRegression(tau=0.7)",)  # 50,000 rows take it long
# For `python tests/hostile.py --factories learners:ATTACKED`.
ATTACKED: dict[str, tuple[str, Callable[[], Any], frozenset[str]]] = {
    name: (row.kind, partial(clone, model), row.flags)
    for name, (row, model) in settings("attacked").items()
    if name not in LEFT_TO_SOAK
}
