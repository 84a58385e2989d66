"""docs/pictures/networks.png: approximation in 2, 5 and 10 columns, sizes of steps, a minimum, a boundary, units.

python docs/pictures/networks.py
"""

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

import certifit as cf

warnings.simplefilter("ignore")  # fits that are stopped early on purpose
figure, axes = plt.subplots(2, 4, figsize=(18, 8.5), layout="constrained")
for ax, d in zip(axes[0], (2, 5, 10), strict=False):
    cf.ApproximationDisplay.from_function(cf.Waves.drawn(d), n_units=16, n_rows=1500, ax=ax)
    ax.set(title=f"{d} columns", ylim=(1e-3, 200))

x = np.linspace(-1, 1, 60)[:, None]
plain = {"solver": "gradient-descent", "momentum": 0.0, "dtype": "float64", "n_iter_no_change": 10_000}
steps = {
    f"step {rate:g}": cf.MLPRegressor((8,), activation="tanh", learning_rate=rate, max_iter=200, **plain).fit(
        x, np.sin(3 * x[:, 0])
    )
    for rate in (1e-3, 0.1, 0.9)
}
cf.EpochsDisplay.from_estimators(steps, ax=axes[0, 3])
axes[0, 3].set(title="too small, right, too large")

# One unit, z = v tanh(w x): five rows want w near 1.5, one with a large x wants it near 0, four hold v at 1.
rows = np.array([0.9, 0.95, 1.0, 1.05, 1.1, 20.0, 1e4, -1e4, 1e4, -1e4])[:, None]
target = np.array([0.9] * 5 + [0.1, 1.0, -1.0, 1.0, -1.0])
unit = {
    "activation": "tanh", "biases": False, "output_bias": False, "standardize": False, "alpha": 0.0, "dtype": "float64",
    "momentum": 0.0, "learning_rate": 0.03, "n_iter_no_change": 10_000, "start": [[[0.01]], [[1.0]]],
}  # fmt: skip
ways = {
    "gradient descent": [
        cf.MLPRegressor((1,), solver="gradient-descent", max_iter=k, **unit).fit(rows, target).parameters_[0]
        for k in (1, 3, 10, 30, 100, 200)
    ],
    "single rows": [
        cf.MLPRegressor((1,), solver="sgd", batch_size=1, max_iter=k, **unit).fit(rows, target).parameters_[0]
        for k in (1, 3, 10, 30, 100, 200)
    ],
}
weights = np.geomspace(1e-3, 3, 400)


def loss(w: np.ndarray) -> np.ndarray:
    """The mean of the losses with v = 1."""
    return np.mean((np.tanh(np.outer(w, rows[:, 0])) - target) ** 2, axis=1) / 2


axes[1, 0].semilogx(weights, loss(weights), color="0.6")
for k, (name, way) in enumerate(ways.items()):
    axes[1, 0].plot(way, loss(np.array(way)), "o-", ms=5, color=f"C{k}", label=name)
axes[1, 0].set(xlabel="weight w, v = 1", ylabel="mean loss", title="a minimum that single rows leave")
axes[1, 0].legend(fontsize="small")

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
y = np.where(np.hypot(*X.T) < 1.1, "inside", "outside")
model = cf.MLPClassifier((6,), activation="tanh", learning_rate=0.03, max_iter=150)
cf.BoundariesDisplay.from_epochs(model, X, y, epochs=(5, 15, 40, 150), ax=axes[1, 1])
axes[1, 1].set(title="the boundary as it moves")
model.fit(X, y)
for ax, at in zip(axes[1, 2:], (0, 1), strict=True):
    units = cf.HiddenUnitsDisplay.from_estimator(model, X)
    ax.contourf(units.across, units.up, units.values[at], 12, cmap="viridis")
    ax.plot(*X.T, ".", color="white", ms=3, alpha=0.6)
    ax.set(title=f"what hidden unit {at + 1} computes", xlabel="x0", ylabel="x1")
    plt.close(units.figure_)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=80)
