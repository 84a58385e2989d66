"""The script that somebody writes without certifit: `python -m benchmarks.shapes_script FILE TARGET GOAL`."""

import sys

import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

SEVEN = [1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3]
SHRINKAGES = [1e-3, 1e-2, 0.1, 0.3, 0.5, 0.7, 1.0]
MODELS = {
    "quantity": [(LinearRegression(), {}), (Ridge(), {"alpha": SEVEN}), (Lasso(), {"alpha": SEVEN})],
    "classes": [
        (LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": SHRINKAGES}),
        (QuadraticDiscriminantAnalysis(solver="eigen"), {"shrinkage": SHRINKAGES}),
        (GaussianNB(), {}),
        (LogisticRegression(max_iter=1000), {"C": SEVEN}),
    ],
    "texts": [(BernoulliNB(), {}), (MultinomialNB(), {}), (LogisticRegression(max_iter=1000), {"C": SEVEN})],
}


def main(file: str, target: str, goal: str) -> None:
    table = pd.read_parquet(file) if file.endswith(".parquet") else pd.read_csv(file)
    X, y = table.drop(columns=target), table[target]
    numbers, words = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    encoder = ColumnTransformer([("numbers", StandardScaler(), numbers), ("words", OneHotEncoder(), words)])
    if goal == "texts":
        encoder = ColumnTransformer([("texts", TfidfVectorizer(), X.columns[0])])
    for model, values in MODELS[goal]:
        grid = {f"{type(model).__name__.lower()}__{name}": value for name, value in values.items()}
        scoring = "neg_root_mean_squared_error" if goal == "quantity" else "neg_log_loss"
        search = GridSearchCV(make_pipeline(encoder, model), grid, cv=10, scoring=scoring).fit(X, y)
        print(type(model).__name__, search.best_params_, search.best_score_)


if __name__ == "__main__":
    main(*sys.argv[1:])
