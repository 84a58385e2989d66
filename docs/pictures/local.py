"""The picture of docs/local.md: python docs/pictures/local.py"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import certifit as cf

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 200))
y = np.sin(2 * x) + 0.2 * rng.normal(size=200)
grid = np.linspace(0, 6, 400)
model = cf.LocallyWeightedRegression().fit(x[:, None], y)

figure, (widths, line, curve) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
for axes in (widths, line):
    axes.plot(x, y, ".", color="0.7", markersize=4)
for tau, name in ((0.03, "too narrow"), (model.tau_, "by leave-one-out"), (1.5, "too wide")):
    fit = cf.LocallyWeightedRegression(tau).fit(x[:, None], y)
    widths.plot(grid, fit.predict(grid[:, None]), label=f"tau = {tau:.2g}, {name}")
widths.legend(loc="lower left", fontsize=8)
widths.set(title="Three widths", xlabel="x", ylabel="y")

at = model.local([2.0])
line.scatter(x, y, s=60 * at.weights, color="tab:orange", label="size: weight at x = 2")
near = np.abs(grid - 2.0) < 0.8
line.plot(grid[near], at.coefficients[0] + at.coefficients[1] * (grid[near] - 2.0), "k", label="the local line")
band = model.predict_band(grid[:, None])
line.fill_between(grid, *band.T, alpha=0.25, label="95 % pointwise band")
line.legend(loc="lower left", fontsize=8)
line.set(title="The line at one point", xlabel="x")

curve.loglog(*model.curve_.T, "o-")
curve.axvline(model.tau_, linestyle=":", color="k")
curve.set(title="Error by leave-one-out", xlabel="tau", ylabel="mean squared error")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
