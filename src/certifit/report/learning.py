"""How a network learned: losses epoch by epoch, what was checked of its gradients, the spread of its starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.evaluation.pictures.network import drawn_epochs
from certifit.report import text
from certifit.report.facts import Fit
from certifit.report.text import Table


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
