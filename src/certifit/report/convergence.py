"""How a solver came to its fit, step by step: its own estimate of the excess; the losses of a network by epoch.

Of a network also what was checked of its gradients, and the spread of its starts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.evaluation.pictures.convergence import drawn_gaps
from certifit.evaluation.pictures.network import drawn_epochs
from certifit.report import svg, text
from certifit.report.facts import Fit
from certifit.report.text import Table

FEWEST_STEPS = 3
# What is at or below this is rounding, and left out.
FLOOR = 1e-35


def draw_gaps(context: dict[str, Any]) -> str:
    """Gaps on a log axis against steps; empty text for fewer than three of them."""
    history = context["history"]
    rows = [] if history is None else history["rows"]
    steps, gaps = drawn_gaps([row["iteration"] for row in rows], [row["gap"] for row in rows], FLOOR)
    drawn = [(step, gap) for step, gap in zip(steps.tolist(), gaps.tolist(), strict=True) if gap > FLOOR]
    if len(drawn) < FEWEST_STEPS:
        return ""
    points = [(step, svg.log10(gap)) for step, gap in drawn]
    x, y = [at for at, _ in points], [height for _, height in points]
    frame = svg.PowerFrame.around((min(x), max(x)), (min(y), max(y)), margin=0.04)
    marks = [frame.line(points, "line"), frame.dots(points, "s6", 6)]
    body = [frame.axes("step", "excess over the best"), frame.clipped("gaps", marks)]
    description = (
        f"Excess of the objective over the best, as the solver reckons, from {text.power(drawn[0][1])} "
        f"to {text.power(drawn[-1][1])} in {history['n_steps']} steps."
    )
    return svg.document("gaps", "Excess step by step", description, body)


def learning_facts(fit: Fit) -> Table | None:
    """None of a model that is no network."""
    if "learning" not in fit.sections:
        return None
    model = fit.model
    drawn, certificate = drawn_epochs(model.history_), model.certificate_
    return {
        "epochs": drawn.epochs.tolist(),
        "lines": {name: line.tolist() for name, line in drawn.lines.items()},
        "layers": "-".join(text.count(size) for size in model.layer_sizes_),
        "n_parameters": len(model.parameters_),
        "n_checked": certificate.n_checked,
        "n_kinks": certificate.n_kinks,
        "gradient_norm": certificate.gradient_norm,
        "relative_norm": certificate.relative_norm,
        "starts": sorted(np.asarray(model.starts_, dtype=np.float64).tolist()),
        "sentences": _sentences(drawn.lines, model),
    }


def _sentences(lines: dict[str, np.ndarray], model: Any) -> list[str]:
    certificate, starts = model.certificate_, np.asarray(model.starts_)
    sentences = [
        f"{text.plural(certificate.n_checked, 'derivative')} by back-propagation were compared with differences of the "
        f"loss{_kinks(certificate.n_kinks)}. The gradient that is left at the end has a norm of "
        f"{text.number(certificate.gradient_norm, 2)}: how flat the loss is there, not how far the best network is."
    ]
    if "loss on rows held out" in lines:
        least = int(np.argmin(lines["loss on rows held out"]))
        sentences.append(
            "The weights are those of the epoch with the least loss on the rows held out, "
            f"{text.number(lines['loss on rows held out'][least])}."
        )
    if len(starts) > 1:
        sentences.append(
            f"{len(starts)} random starts ended between {text.number(starts.min())} and {text.number(starts.max())}; "
            "the best end is the model. A network has many minima."
        )
    return sentences


def _kinks(n_kinks: int) -> str:
    return f", and {n_kinks} at kinks of ReLU were left out" if n_kinks else ""


FEWEST_EPOCHS = 3


def draw_learning(context: dict[str, Any]) -> str:
    """A line per loss; empty text for models that are no network, and for fewer than three epochs."""
    facts = context["learning"]
    if facts is None or len(facts["epochs"]) < FEWEST_EPOCHS or not facts["lines"]:
        return ""
    epochs = [float(epoch) for epoch in facts["epochs"]]
    values = [value for line in facts["lines"].values() for value in line]
    is_log = min(values) > 0 and max(values) > 100 * min(values)
    scale = svg.log10 if is_log else float
    kind = svg.PowerFrame if is_log else svg.Frame
    frame = kind.around((epochs[0], epochs[-1]), (scale(min(values)), scale(max(values))), margin=0.04)
    marks, keys = [], []
    for k, (name, line) in enumerate(facts["lines"].items()):
        points = [(epoch, scale(value)) for epoch, value in zip(epochs, line, strict=True)]
        marks.append(frame.line(points, f"line-many c{k + 1}"))
        keys.append(
            f'<text class="key c{k + 1}" x="{frame.right - 6:.1f}" y="{frame.top + 16 + 16 * k:.1f}" '
            f'text-anchor="end">{svg.escape(name)}</text>'
        )
    body = [frame.axes("epoch", "mean loss"), frame.clipped("learning", marks), *keys]
    words = "; ".join(
        f"{name} from {text.number(line[0])} to {text.number(line[-1])}" for name, line in facts["lines"].items()
    )
    return svg.document("learning", "Epoch by epoch", words, body)
