"""The script that somebody writes without certifit: `python -m benchmarks.shapes_script FILE TARGET GOAL "MODEL;..."`.

The models are those that `certifit fit` compared, by its names in any case; each is tried with at most seven strengths,
fewer than there. scikit-learn has no local regression; a name that is neither that, nor a baseline, nor known here is
an error.
"""

import sys

import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

SEVEN = [1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3]
SHRINKAGES = [1e-3, 1e-2, 0.1, 0.3, 0.5, 0.7, 1.0]
DEPTHS, ROUNDS = {"max_depth": [1, 2, 4, 6, 8, 10, 17]}, {"max_iter": [50, 100, 200]}
BOOSTING = {"learning_rate": 0.05, "early_stopping": False}
QUANTITY = {
    "least squares": (LinearRegression(), {}),
    "ridge": (Ridge(), {"alpha": SEVEN}),
    "lasso": (Lasso(), {"alpha": SEVEN}),
    "regression tree": (DecisionTreeRegressor(), DEPTHS),
    "neural network": (MLPRegressor(early_stopping=True), {}),
    "gradient boosting": (HistGradientBoostingRegressor(**BOOSTING), ROUNDS),
    "random forest": (RandomForestRegressor(), {}),
    "kernel ridge": (KernelRidge(kernel="rbf"), {"alpha": SEVEN}),
}
CLASSES = {
    "linear discriminant": (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": SHRINKAGES}),
    "quadratic discriminant": (QuadraticDiscriminantAnalysis(solver="eigen"), {"shrinkage": SHRINKAGES}),
    "Gaussian naive Bayes": (GaussianNB(), {}),
    "Bernoulli naive Bayes": (BernoulliNB(), {}),
    "multinomial naive Bayes": (MultinomialNB(), {}),
    "logistic regression": (LogisticRegression(max_iter=1000), {"C": SEVEN}),
    "decision tree": (DecisionTreeClassifier(), DEPTHS),
    "neural network": (MLPClassifier(early_stopping=True), {}),
    "AdaBoost": (AdaBoostClassifier(), {"n_estimators": ROUNDS["max_iter"]}),
    "gradient boosting": (HistGradientBoostingClassifier(**BOOSTING), ROUNDS),
    "random forest": (RandomForestClassifier(), {}),
    "linear support vector machine": (CalibratedClassifierCV(LinearSVC()), {"estimator__C": SEVEN}),
    "support vector machine": (CalibratedClassifierCV(SVC()), {"estimator__C": SEVEN}),
}
NOT_HERE = ("local regression", "class shares")


def main(file: str, target: str, goal: str, names: str) -> None:
    table = pd.read_parquet(file) if file.endswith(".parquet") else pd.read_csv(file)
    X, y = table.drop(columns=target), table[target]
    numbers, words = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    encoder = ColumnTransformer([("numbers", StandardScaler(), numbers), ("words", OneHotEncoder(), words)])
    if goal == "texts":
        encoder = ColumnTransformer([("texts", TfidfVectorizer(), X.columns[0])])
    models = {name.lower(): row for name, row in (QUANTITY if goal == "quantity" else CLASSES).items()}
    for model, values in (
        models[name] for name in names.lower().split(";") if not name.startswith("mean of ") and name not in NOT_HERE
    ):
        grid = {f"{type(model).__name__.lower()}__{name}": value for name, value in values.items()}
        scoring = "neg_root_mean_squared_error" if goal == "quantity" else "neg_log_loss"
        search = GridSearchCV(make_pipeline(encoder, model), grid, cv=10, scoring=scoring).fit(X, y)
        print(type(model).__name__, search.best_params_, search.best_score_)


if __name__ == "__main__":
    main(*sys.argv[1:])
