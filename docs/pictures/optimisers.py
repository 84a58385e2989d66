"""Draws docs/pictures/optimisers.png: the way of each smooth solver on one logistic regression."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_breast_cancer

import certifit as cf

mpl.use("Agg")
import matplotlib.pyplot as plt

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
ALPHA = 0.01


def value(w: np.ndarray) -> float:
    """Mean log loss and half squares."""
    z = X @ w
    return float(np.mean(np.logaddexp(0, z) - y * z) + ALPHA * w @ w / 2)


def gradient(w: np.ndarray) -> np.ndarray:
    """Of the value."""
    return X.T @ (1 / (1 + np.exp(-X @ w)) - y) / len(y) + ALPHA * w


def hessian(w: np.ndarray) -> np.ndarray:
    """Of the value."""
    p = 1 / (1 + np.exp(-X @ w))
    return X.T @ ((p * (1 - p))[:, None] * X) / len(y) + ALPHA * np.eye(len(w))


METHODS = {
    "gradient descent, step 0.5": cf.GradientDescent(step=0.5),
    "gradient descent, line search": cf.GradientDescent(),
    "conjugate gradient": cf.ConjugateGradient(),
    "L-BFGS": cf.LBFGS(),
    "BFGS": cf.BFGS(),
    "Newton": cf.Newton(),
}
start = np.zeros(X.shape[1])
runs = {
    name: cf.minimize(value, start, method, gradient, hessian, tol=1e-12, max_iter=5000)
    for name, method in METHODS.items()
}
best = min(run.value for run in runs.values())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
cf.ConvergenceDisplay.from_runs(runs, best=best, ax=left)
cf.ConvergenceDisplay.from_runs(runs, y="step", ax=right)
for ax, title in ((left, "objective above its minimum"), (right, "length of the step")):
    ax.set(xscale="symlog", xlim=(0, 3000), xlabel="iteration (logarithmic from 2 on)", ylabel="")
    ax.set_title(title, loc="left", fontsize="medium")
    ax.grid(alpha=0.25)
left.set_ylim(1e-16, 2)
right.set_ylim(1e-9, 1e5)
left.get_legend().remove()
right.legend(fontsize="small", loc="upper right")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=110, metadata={"Software": None})
for name, run in runs.items():
    print(f"{name:32s}{len(run.history_) - 1:6d} steps, {run.reason}")
