"""Draws docs/pictures/boundaries.png: a straight boundary, one through basis functions, and those of three classes."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_iris

import certifit as cf

mpl.use("Agg")
import matplotlib.pyplot as plt

rng = np.random.default_rng(0)
places = rng.uniform(-2, 2, size=(300, 2))
outside = (places**2).sum(axis=1) + 0.3 * rng.normal(size=300) >= 1
flowers, kind = load_iris(return_X_y=True, as_frame=True)
kind = kind.map({0: "setosa", 1: "versicolor", 2: "virginica"})
petals = flowers[["petal length (cm)", "petal width (cm)"]]

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
corner = rng.uniform(0, 3, size=(200, 2))
above = corner.sum(axis=1) + 0.4 * rng.normal(size=200) >= 3
line = cf.LogisticRegression().fit(corner, above)
circle = cf.LogisticRegression(basis=cf.Polynomial(2)).fit(places, outside)
cf.BoundaryDisplay.from_estimator(line, corner, above, ax=left)
cf.BoundaryDisplay.from_estimator(circle, places, outside, ax=middle)
cf.BoundaryDisplay.from_estimator(cf.LogisticRegression().fit(petals, kind), petals, kind, ax=right)
titles = ("a line: z = 0", "through basis=Polynomial(2)", "three classes: softmax")
for ax, title in zip((left, middle, right), titles, strict=True):
    ax.set_title(title, loc="left", fontsize="medium")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=80, metadata={"Software": None})
