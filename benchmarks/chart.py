"""The chart of the README, from result lines: how many times longer the fastest peer takes, losses included.

    python -m benchmarks.chart --out docs/pictures/speed.svg

A bar is the wall time of the fastest peer that solved the problem as well, over certifit's, in the same run.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from . import record
from .table import EQUAL, OURS, by_problem, fastest

RESULTS = Path(__file__).parent / "results"
# What the bar is called -> file of results, task (or name of the problem) and the beginning of its size.
BARS = {
    "least squares, 1e6 × 50": ("least-squares", "ols_1e6x50", ""),
    "ridge, 50 penalties × 10 folds": ("selection", "ridge, cross-validated", ""),
    "forward selection, 10 of 40, 10 folds": ("selection", "forward selection", "10 of 40"),
    "lasso, 100 penalties × 10 folds": ("sparse", "cv_20k_100", ""),
    "logistic, 500,000 × 50": ("glm", "logistic, L2", ""),
    "Poisson, 500,000 × 50": ("glm", "poisson, L2", ""),
    "Poisson with categories, fremtpl2": ("glm", "Poisson with exposure, fremtpl2", ""),
    "discriminant analysis, 1e6 × 50": ("classes", "discriminant, shared", "1,000,000 x 50, float64"),
    "Gaussian naive Bayes, 1e6 × 50": ("classes", "Gaussian naive Bayes", "1,000,000 x 50, float64"),
    "words of 100,000 sentences": ("text", "words", "subjectivity x 10"),
    "PCA, 1e6 × 100": ("pca", "principal components", "1,000,000 x 100, 10 components, float64"),
    "PCA, 6,000 × 5,000": ("pca", "principal components", "6,000 x 5,000"),
    "PCA, 150 × 4": ("pca", "PCA, 100 fits", ""),
}
FASTER, SLOWER = "#2a6f97", "#b5541c"


@dataclass(frozen=True)
class Bar:
    """The fastest peer of equal quality on one problem. ratio: its time over certifit's."""

    label: str
    peer: str
    ratio: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chart", description="Draw the chart of the README.")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    bars = sorted((bar(label, *place) for label, place in BARS.items()), key=lambda bar: bar.ratio)
    draw(bars, options.out)


def bar(label: str, file: str, task: str, size: str) -> Bar:
    """One bar from the lines of a file, of either form of result."""
    lines = [json.loads(line) for line in (RESULTS / f"{file}.jsonl").read_text().splitlines()]
    if "problem" in lines[0]:
        return _bar_of_records(label, by_problem(record.read(RESULTS / f"{file}.jsonl"))[task])
    rows = [row for row in lines if row["task"] == task and row["size"].startswith(size)]
    best = min(rows, key=lambda row: row["theirs"])
    return Bar(label, best["rival"], best["ratio"])


def _bar_of_records(label: str, lines: list[Any]) -> Bar:
    solved = [line for line in lines if line["status"] == "ok"]
    ours = fastest(line for line in solved if line["rival"] == OURS)
    peers = [line for line in solved if line["rival"] != OURS]
    # Peers that stop early are drawn where none solved the problem as well.
    best = fastest(line for line in peers if line["excess"] <= EQUAL) or fastest(peers)
    if ours is None or best is None:
        raise SystemExit(f"No result for {label}.")
    return Bar(label, best["rival"], best["wall"] / ours["wall"])


def draw(bars: list[Bar], path: Path) -> None:
    """Bars from 1, on a logarithmic axis: to the right certifit is faster."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "certifit", "font.family": "sans-serif", "font.size": 9}
    ):
        figure, axes = plt.subplots(figsize=(7.6, 0.3 * len(bars) + 0.9), layout="constrained")
        colors = [FASTER if bar.ratio >= 1 else SLOWER for bar in bars]
        axes.barh([bar.label for bar in bars], [bar.ratio - 1 for bar in bars], left=1, color=colors, height=0.62)
        for place, bar in enumerate(bars):
            axes.text(
                max(bar.ratio, 1) * 1.07, place, f"{float(f'{bar.ratio:.2g}'):,g}× {bar.peer}", va="center", fontsize=8
            )
        axes.set(
            xscale="log", xlim=(0.35, 30_000), xlabel="time of the fastest peer of equal quality / time of certifit"
        )
        axes.set_xticks([0.5, 1, 10, 100, 1000], ["0.5", "1", "10", "100", "1,000"])
        axes.minorticks_off()
        axes.axvline(1, color="#333", linewidth=0.8)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
