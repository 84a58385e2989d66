"""How far scores on kddcup99's official test move where nothing that matters is changed.

    python -m benchmarks.one_split [tree] [sets] [adaboost]

Categories are 0/1 columns, equal rows are one row of a weight. `tree`: many columns split a node equally well, and it
is chance which one is taken: scikit-learn takes one by its seed, certifit the first one, so its columns are shuffled.
`sets`: the same tree of certifit where categories are split by sets of levels, as on the command line. `adaboost`: the
training rows are drawn anew, with replacement. Some 20, 20 and 90 CPU seconds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import certifit as cf
from benchmarks.tree_tables import table

Rows = tuple[Any, Any, Any]  # columns, whether each row is an attack, how often it is there


def encoded() -> tuple[Rows, Rows]:
    """Rows to fit, and new ones; levels that no training row has are no column."""
    train, new = table("kddcup99")
    X, new_X = (pd.get_dummies(part.drop(columns="attack"), dtype=np.float64) for part in (train, new))
    both = zip((X, new_X.reindex(columns=X.columns, fill_value=0.0)), (train, new), strict=True)
    first, second = (_merged(columns, part["attack"] == "yes") for columns, part in both)
    return first, second


def _merged(columns: pd.DataFrame, y: pd.Series) -> Rows:
    kept = columns.assign(attack=y.to_numpy(dtype=np.float64))
    counts = kept.groupby(list(kept.columns), sort=True).size()
    rows = counts.index.to_frame().to_numpy()
    return rows[:, :-1], rows[:, -1].astype(np.int64), counts.to_numpy(dtype=np.float64)


def show(name: str, k: int, chances: Any, new: Rows) -> None:
    """Print a line."""
    _, y, weight = new
    accuracy = np.average((chances > 0.5) == y, weights=weight)
    print(f"{name} {k}: accuracy {accuracy:.4f}, AUC {roc_auc_score(y, chances, sample_weight=weight):.4f}", flush=True)


def trees(train: Rows, new: Rows, n_fits: int = 8) -> None:
    """The same tree of 8 levels, ties decided in other ways."""
    X, y, weight = train
    for k in range(n_fits):
        theirs = DecisionTreeClassifier(max_depth=8, random_state=k).fit(X, y, sample_weight=weight)
        show("tree of scikit-learn, seed", k, theirs.predict_proba(new[0])[:, 1], new)
        order = np.random.default_rng(k).permutation(X.shape[1])
        ours = cf.DecisionTreeClassifier(max_depth=8).fit(X[:, order], y, weight)
        show("tree of certifit, order", k, ours.predict_proba(new[0][:, order])[:, 1], new)


def tree_of_sets(n_fits: int = 4) -> None:
    """A tree that splits categories by sets of levels; a level that is new is the first one."""
    train, new = table("kddcup99")
    words = [name for name in train if not pd.api.types.is_numeric_dtype(train[name]) and name != "attack"]
    for name in words:
        code = {level: k for k, level in enumerate(sorted(train[name].unique()))}
        train[name], new[name] = train[name].map(code), new[name].map(code).fillna(0)
    train["attack"], new["attack"] = train["attack"] == "yes", new["attack"] == "yes"
    rows, weight = np.unique(train.to_numpy(dtype=np.float64), axis=0, return_counts=True)
    target = train.columns.get_loc("attack")
    for k in range(n_fits):
        order = np.random.default_rng(k).permutation(np.delete(np.arange(rows.shape[1]), target))
        categories = [j for j, column in enumerate(order) if train.columns[column] in words]
        tree = cf.DecisionTreeClassifier(max_depth=8, categorical_features=categories)
        tree.fit(rows[:, order], rows[:, target].astype(np.int64), weight.astype(np.float64))
        chances = tree.predict_proba(new.to_numpy(dtype=np.float64)[:, order])[:, 1]
        show("tree of certifit, sets of levels, order", k, chances, (None, new["attack"], np.ones(len(new))))


def boosted(train: Rows, new: Rows, n_fits: int = 4) -> None:
    """AdaBoost of 100 stumps on training rows drawn anew."""
    X, y, weight = train
    rng = np.random.default_rng(5)
    for k in range(n_fits):
        draws = rng.multinomial(int(weight.sum()), weight / weight.sum()).astype(np.float64)
        there = draws > 0
        for name, model in (
            ("scikit-learn", AdaBoostClassifier(n_estimators=100, random_state=0)),
            ("certifit", cf.AdaBoostClassifier(100)),
        ):
            model.fit(X[there], y[there], sample_weight=draws[there])
            show(f"AdaBoost of {name}, draw", k, model.predict_proba(new[0])[:, 1], new)


if __name__ == "__main__":
    asked = sys.argv[1:] or ["tree", "sets", "adaboost"]
    if "sets" in asked:
        tree_of_sets()
    if {"tree", "adaboost"} & set(asked):
        fitted, unseen = encoded()
        if "tree" in asked:
            trees(fitted, unseen)
        if "adaboost" in asked:
            boosted(fitted, unseen)
