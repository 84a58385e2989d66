"""docs/pictures/trees.png: a tree, its regions and stairs, approximation, boosting, importance, bias and variance.

python docs/pictures/trees.py
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_iris

mpl.use("Agg")
import matplotlib.pyplot as plt

import certifit as cf

rng = np.random.default_rng(0)
figure, axes = plt.subplots(3, 3, figsize=(15, 12), layout="constrained")
iris = load_iris()
tree = cf.DecisionTreeClassifier(max_depth=3).fit(iris.data[:, 2:], iris.target)
cf.TreeDisplay.from_estimator(tree, ax=axes[0, 0])
cf.BoundaryDisplay.from_estimator(tree, iris.data[:, 2:], iris.target, ax=axes[0, 1])
x = np.sort(rng.uniform(0, 6, 150))
y = np.sin(x) + 0.2 * rng.normal(size=150)
stairs = cf.DecisionTreeRegressor(max_depth=3).fit(x[:, None], y)
cf.DependenceDisplay.from_estimator(stairs, x[:, None], 0, y=y, ax=axes[0, 2])

smooth = np.linspace(0, 6, 4000)[:, None]
depths = np.arange(1, 11)
fits = [cf.DecisionTreeRegressor(max_depth=int(depth)).fit(smooth, np.sin(smooth[:, 0])) for depth in depths]
errors = [np.mean((fit.predict(smooth) - np.sin(smooth[:, 0])) ** 2) for fit in fits]
axes[1, 0].loglog([fit.get_n_leaves() for fit in fits], errors, "o-", label="greedy tree")
leaves = np.array([2.0, 1024.0])
axes[1, 0].loglog(leaves, errors[0] * (leaves / leaves[0]) ** -2, "--", color="0.5", label="leaves$^{-2}$")
axes[1, 0].set(xlabel="leaves", ylabel="mean squared error on sin x")
axes[1, 0].legend(fontsize="small")

X = rng.normal(size=(600, 4))
label = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=600) > 0
boosted = cf.AdaBoostClassifier(150).fit(X[:300], label[:300])
cf.BoostingDisplay.from_estimator(boosted, X[300:], label[300:], ax=axes[1, 1])
cf.MarginDisplay.from_estimator(boosted, X[:300], label[:300], rounds=(5, 30), ax=axes[1, 2])

forest = cf.RandomForestRegressor(50).fit(X[:300], X[:300, 0] + X[:300, 1] * X[:300, 2])
target = X[300:, 0] + X[300:, 1] * X[300:, 2]
cf.ImportanceDisplay.from_estimator(forest, X[300:], target, ax=axes[2, 0])
cf.DependenceDisplay.from_estimator(forest, X[300:], 1, ax=axes[2, 1])


def sampler(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A new data set."""
    draw = np.random.default_rng(seed)
    places = draw.uniform(-1, 1, size=(100, 3))
    return places, places.sum(axis=1) + 0.3 * draw.normal(size=100)


points = rng.uniform(-0.95, 0.95, size=(100, 3))
models = {
    "stump": cf.DecisionTreeRegressor(max_depth=1),
    "boosted\nstumps": cf.AdaBoostRegressor(20, max_depth=1),
    "tree": cf.DecisionTreeRegressor(),
    "bagged\ntrees": cf.BaggingRegressor(cf.DecisionTreeRegressor(), 20),
}
result = cf.bias_variance(
    list(models.values()), None, None, points, lambda rows: rows.sum(axis=1), sampler=sampler, n_resamples=40
)
places = np.arange(len(models))
axes[2, 2].bar(places, result.bias_squared, label="bias$^2$")
axes[2, 2].bar(places, result.variance, bottom=result.bias_squared, label="variance")
axes[2, 2].set_xticks(places, list(models))
axes[2, 2].set_ylabel("mean squared error but for noise")
axes[2, 2].legend(fontsize="small")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=80)
