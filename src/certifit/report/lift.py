"""How rates that a model of means predicts agree with what was observed, group by group; in two passes, no row is kept.

The rate of a row is its predicted mean over its exposure, exp(offset); without an offset the mean itself. Rows are
sorted by it into ten groups of equal exposure. Of a group, with weights w, exposures e and means mu:

    observed = sum w y / sum w e,   predicted = sum w mu / sum w e,   standard error = sqrt(sum w (y - mu)^2) / sum w e
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.privacy import Rule
from certifit.data.source import Block, Source
from certifit.report import svg, text
from certifit.report.passes import Drawn, Seen, Sketch, bin_sums, encoded, newly_predicted, predicted, share_of

N_GROUPS = 10
NORMAL_95 = 1.959963984540054


@dataclass(kw_only=True)
class Means(Seen):
    """What passes over the rows of a model of means tell. sums: of the groups, w e, w y, w mu, w (y - mu)^2, rows."""

    has_exposure: bool
    is_new: bool = False  # the groups are of predictions by fits that did not see the row
    target: Sketch = field(default_factory=Sketch)
    rate: Sketch = field(default_factory=Sketch)
    sums: Array = field(default_factory=lambda: np.zeros((5, 0)))

    def add(self, block: Block, columns: Any, weight: Array) -> None:
        """First pass: the rows of one block."""
        y = np.asarray(block.y, dtype=np.float64)
        self.n_rows += y.size
        self.mass += float(weight.sum())
        self.target.add(y, weight)
        self.columns.add(columns, y, weight)
        self.drawn.add(block.first_row, columns, y, weight)

    def add_rates(self, block: Block, mean: Array, weight: Array) -> None:
        """First pass: the rates that the groups are cut at."""
        exposure = self.exposures(block)
        self.rate.add(mean / exposure, weight * exposure)

    def count(self, block: Block, mean: Array, weight: Array, edges: Array) -> None:
        """Second pass: the rows of one block by group."""
        y, exposure = np.asarray(block.y, dtype=np.float64), self.exposures(block)
        group = np.searchsorted(edges, mean / exposure)
        parts = (weight * exposure, weight * y, weight * mean, weight * (y - mean) ** 2, (weight > 0).astype(float))
        self.sums = self.sums + np.array([bin_sums(group, part, len(edges) + 1) for part in parts])

    def exposures(self, block: Block) -> Array:
        """exp(offset) where means are proportional to it, else 1."""
        if not self.has_exposure or block.offset is None:
            return np.ones(block.n_rows)
        return np.asarray(np.exp(block.offset))


def survey(model: Any, source: Source, has_exposure: bool, new: Array | None = None) -> Means:
    """Two passes over the data. new: one mean per row by fits that did not see it, which the groups then group."""
    means = Means(has_exposure=has_exposure, drawn=Drawn(share_of(model)), is_new=new is not None)
    for block, mean, weight in predicted(model, source):
        means.add(block, encoded(model, block.X), weight)
        if new is None:
            means.add_rates(block, mean, weight)
    for block, mean, weight in [] if new is None else newly_predicted(new, source):
        means.add_rates(block, mean, weight)
    edges = np.unique(means.rate.quantile(np.arange(1, N_GROUPS) / N_GROUPS))
    means.sums = np.zeros((5, len(edges) + 1))
    for block, mean, weight in predicted(model, source) if new is None else newly_predicted(new, source):
        means.count(block, mean, weight, edges)
    return means


def lift_groups(means: Means, rule: Rule) -> list[dict[str, float]]:
    """The groups that have rows, lowest predicted rate first."""
    groups = []
    for exposure, y, mean, squares, n_rows in _joined(means.sums.T, rule):
        half = NORMAL_95 * np.sqrt(squares) / exposure
        observed = y / exposure
        groups.append(
            {"rows": n_rows, "exposure": exposure, "predicted": mean / exposure, "observed": observed}
            | {"low": observed - half, "high": observed + half}
        )
    return groups


def _joined(sums: Array, rule: Rule) -> list[list[float]]:
    """Groups of some exposure, a small one joined with the next: the mean of a few rows tells their targets."""
    groups: list[list[float]] = []
    for group in sums.tolist():
        if groups and not rule.may_print(groups[-1][-1]):
            groups[-1] = [a + b for a, b in zip(groups[-1], group, strict=True)]
        else:
            groups.append(group)
    if len(groups) > 1 and not rule.may_print(groups[-1][-1]):
        last = groups.pop()
        groups[-1] = [a + b for a, b in zip(groups[-1], last, strict=True)]
    return [group for group in groups if group[0] > 0]


def draw_lift(context: dict[str, Any]) -> str:
    """Dots with intervals round the line of equality; empty text without means, or with one group."""
    lift: dict[str, Any] = ({} if context["deviance"] is None else context["deviance"]["lift"]) or {}
    groups = lift.get("groups", [])
    if len(groups) < 2:
        return ""
    least = min(min(one["predicted"], one["observed"], one["low"]) for one in groups)
    most = max(max(one["predicted"], one["observed"], one["high"]) for one in groups)
    ends = (min(0.0, least), most)
    frame = svg.Frame.around(ends, ends, margin=0.03)
    marks = frame.agreement(groups, ends, [_tip(one, lift["is_rate"]) for one in groups])
    what = "rate" if lift["is_rate"] else "mean"
    target = text.visible(context["model"]["target"], 24)
    body = [frame.axes(f"predicted {what} of {target}", f"observed {what}"), frame.clipped("lift", marks)]
    pairs = [(text.number(one["predicted"], 3), text.number(one["observed"], 3)) for one in groups]
    words = "; ".join(f"predicted {predicted}, observed {observed}" for predicted, observed in pairs)
    return svg.document("lift", "Observed against predicted", f"Groups by predicted {what}: {words}.", body)


def _tip(one: dict[str, Any], is_rate: bool) -> str:
    exposure = f", exposure {text.number(one['exposure'])}" if is_rate else ""
    return (
        f"{text.count(one['rows'])} rows{exposure}: predicted {text.number(one['predicted'], 3)}, observed "
        f"{text.number(one['observed'], 3)} ({text.number(one['low'], 3)} to {text.number(one['high'], 3)})"
    )
