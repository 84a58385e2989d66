"""The settings that the net fits, by the group of tables that suits them: every row of LEARNERS and COMPOSITES."""

from __future__ import annotations

from typing import Any

import certifit as cf

SUMS_OF_A_QUANTITY: dict[str, Any] = {
    "linear": cf.LinearRegression(),
    "linear, no intercept": cf.LinearRegression(fit_intercept=False),
    "ridge": cf.Ridge(0.1),
    "ridge, standardised": cf.Ridge(0.01, standardize=True),
    "lasso": cf.Lasso(0.05),
    "lasso, bounds": cf.Lasso(0.01, bounds=(0.0, 2.0), standardize=True),
    "elastic net": cf.ElasticNet(0.01, 0.5),
    "huber": cf.HuberRegressor(),
    "huber, mad": cf.HuberRegressor(scale="mad", alpha=0.01),
    "quantile": cf.QuantileRegressor(0.7),
    "glm": cf.GLM(alpha=0.01),
    "lasso, folds": cf.CrossValidated(cf.Lasso(), cv=3),
    "ridge, 1se": cf.CrossValidated(cf.Ridge(standardize=True), {"alpha": [1e-3, 0.1, 10.0]}, cv=5, rule="1se"),
    "pca": cf.PCA(2, standardize=True),
}
QUANTITY: dict[str, Any] = SUMS_OF_A_QUANTITY | {
    "linear, squares": cf.LinearRegression(basis=cf.Polynomial(2)),
    "huber, folds": cf.CrossValidated(cf.HuberRegressor(), {"alpha": [0.01, 1.0]}, cv=3),
    "quantile, penalised": cf.QuantileRegressor(0.4, 0.01, standardize=True),
    "kernel ridge": cf.KernelRidge(0.1, kernel=cf.kernels.Gaussian(2.0), standardize=True),
    "kernel lms": cf.KernelLMS(standardize=True, max_iter=20),
    "kernel pca": cf.KernelPCA(2, standardize=True),
    "local": cf.LocallyWeightedRegression(1.0),
    "local, tricube": cf.LocallyWeightedRegression(2.0, weights="tricube", terms="constant"),
    "network": cf.MLPRegressor((5,), max_iter=100),
    "svr": cf.SVR(0.01, epsilon=0.1, standardize=True),
    "tree": cf.DecisionTreeRegressor(max_depth=3),
    "tree, optimal": cf.DecisionTreeRegressor(search="optimal", max_depth=2, min_samples_leaf=5),
    "tree, pruned": cf.DecisionTreeRegressor(min_samples_split=5, ccp_alpha=0.05),
    "adaboost": cf.AdaBoostRegressor(5, max_depth=2),
    "forest": cf.RandomForestRegressor(5, max_depth=3),
    "boosting": cf.GradientBoostingRegressor(10, min_samples_leaf=3, max_leaf_nodes=6),
    "boosting, huber": cf.GradientBoostingRegressor(5, family="huber", growth="depth", max_depth=2, min_samples_leaf=3),
    "bagging": cf.BaggingRegressor(cf.Ridge(0.1), 4),
    "forward": cf.ForwardSelection(cf.LinearRegression(), cv=3),
    "backward": cf.BackwardSelection(cf.LinearRegression(), n_features_to_select=1, cv=3),
    "information": cf.MutualInformationFilter(1),
}
COUNTS: dict[str, Any] = {
    "poisson": cf.PoissonRegressor(0.0),
    "poisson, penalised": cf.PoissonRegressor(0.1, standardize=True),
    "poisson, l1": cf.GLM("poisson", alpha=0.02, l1_ratio=1.0),
    "poisson, sqrt": cf.GLM("poisson", "sqrt", alpha=0.01),
    "negative binomial": cf.GLM("negative-binomial", alpha=0.01),
    "poisson, folds": cf.CrossValidated(cf.PoissonRegressor(), cv=3),
    "poisson, sgd": cf.PoissonRegressor(solver="sgd", max_iter=5),
    "boosting of counts": cf.GradientBoostingRegressor(5, family="poisson", min_samples_leaf=5),
    "network of counts": cf.MLPRegressor((4,), activation="tanh", loss="poisson", max_iter=100),
    "linear": cf.LinearRegression(),
}
POSITIVE: dict[str, Any] = {
    "gamma": cf.GammaRegressor(),
    "gamma, penalised": cf.GammaRegressor(0.1),
    "inverse gaussian": cf.GLM("inverse-gaussian", alpha=0.1),
    "tweedie": cf.GLM("tweedie", alpha=0.01),
    "gamma, l1": cf.GLM("gamma", alpha=0.02, l1_ratio=0.5),
    "boosting of amounts": cf.GradientBoostingRegressor(5, family="gamma", min_samples_leaf=5),
    "gamma, folds": cf.CrossValidated(cf.GammaRegressor(), cv=3),
    "ridge": cf.Ridge(0.1),
}
TEXTS: dict[str, Any] = {
    "bernoulli": cf.BernoulliNB(),
    "multinomial": cf.MultinomialNB(0.5),
    "logistic": cf.LogisticRegression(0.01),
    "logistic, l1": cf.LogisticRegression(0.01, 1.0),
    "linear svm": cf.LinearSVC(0.01),
    "logistic, folds": cf.CrossValidated(cf.LogisticRegression(), {"alpha": [0.01, 0.1]}, cv=3),
}
SUMS: dict[str, Any] = TEXTS | {
    "logistic, no penalty": cf.LogisticRegression(0.0),
    "logistic, balanced": cf.LogisticRegression(0.1, class_weight="balanced", standardize=True),
    "linear svm, hinge": cf.LinearSVC(0.1, "hinge", standardize=True),
    "discriminant": cf.GaussianDiscriminant(),
    "quadratic": cf.GaussianDiscriminant("class", shrinkage=0.1),
    "gaussian": cf.GaussianNB(),
    "perceptron": cf.Perceptron(max_iter=50),
    "one against the rest": cf.OneVsRestClassifier(cf.LogisticRegression(0.1)),
    "discriminant, folds": cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.0, 0.2]}, cv=3),
}
CLASSES: dict[str, Any] = SUMS | {
    "logistic, squares": cf.LogisticRegression(0.01, basis=cf.Polynomial(2), standardize=True),
    "svm": cf.SVC(0.01, kernel=cf.kernels.Gaussian(2.0), standardize=True),
    "svm, smo": cf.SVC(
        0.01, kernel=cf.kernels.Polynomial(2), standardize=True, solver="smo", multi_class="one-vs-rest"
    ),
    "hard margin": cf.HardMarginSVC(not_separable="warn"),
    "network": cf.MLPClassifier((5,), max_iter=100),
    "tree": cf.DecisionTreeClassifier(max_depth=3),
    "tree, optimal": cf.DecisionTreeClassifier(search="optimal", max_depth=2),
    "tree, pruned": cf.DecisionTreeClassifier(criterion="entropy", ccp_alpha=0.01),
    "adaboost": cf.AdaBoostClassifier(10),
    "forest": cf.RandomForestClassifier(5, max_depth=3),
    "boosting": cf.GradientBoostingClassifier(5, min_samples_leaf=3, max_leaf_nodes=6),
    "bagging": cf.BaggingClassifier(cf.DecisionTreeClassifier(max_depth=3), 4),
    "calibrated": cf.Calibrated(cf.LogisticRegression(0.1), cv=3),
    "calibrated by steps": cf.Calibrated(cf.DecisionTreeClassifier(max_depth=2), "isotonic", cv=3),
}
GROUPS = {
    "linear": SUMS_OF_A_QUANTITY,
    "quantity": QUANTITY,
    "counts": COUNTS,
    "positive": POSITIVE,
    "texts": TEXTS,
    "sums": SUMS,
    "classes": CLASSES,
}
# Scores of folds, which need no fit that is kept: a model, by group.
SCORED = {
    "linear": cf.Ridge(0.1),
    "quantity": cf.LinearRegression(),
    "counts": cf.PoissonRegressor(0.1),
    "positive": cf.GammaRegressor(0.1),
    "texts": cf.BernoulliNB(),
    "sums": cf.LogisticRegression(0.1),
    "classes": cf.GaussianDiscriminant(shrinkage=0.1),
}
