"""Boosted regression trees in a file, end to end.

r   rounds    s   r + 1    n   nodes
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.adaboost_r2.state import TreeMedian
from certifit.models.file_checks import NEAR
from certifit.models.record import (
    CLAIM,
    COUNT_FROM_1,
    MAGNITUDE,
    TARGET,
    TARGET_NAME,
    TEXT,
    Array,
    Content,
    Field,
    Object,
    Problems,
    Record,
    Shown,
    fault_problems,
    fields_at,
)

_CERTIFICATE = {**CLAIM, "deviation": MAGNITUDE, "fault": TEXT, "n_rounds": COUNT_FROM_1}
_NODES = {"feature": "int64", "left": "int64", "threshold": "float64", "is_missing_left": "uint8", "values": "float64"}


def _median(content: Content) -> TreeMedian:
    names = ("ends", *_NODES, "error", "alpha")
    return TreeMedian(**{name: content.arrays[f"trees.{name}"] for name in names})


def _shape_problems(content: Content) -> Iterator[Problems]:
    """Nodes that are no trees: in each, children lie behind their parents and are 1, 2, ... without a gap."""
    arrays, p = content.arrays, len(content.columns)
    ends, left, feature = arrays["trees.ends"], arrays["trees.left"], arrays["trees.feature"]
    inner = left != 0
    stored = content.metadata["certificate"]
    yield {
        "ends that do not rise from 0 to the number of nodes": ends[0] != 0
        or ends[-1] != len(left)
        or (np.diff(ends) < 1).any(),
        "more rounds than were asked for": len(ends) - 1 > content.parameters["n_estimators"],
        "another number of rounds than the certificate": stored["n_rounds"] != len(ends) - 1,
        "flags that are not 0 or 1": (arrays["trees.is_missing_left"] > 1).any(),
        "a threshold of minus infinity": np.isneginf(arrays["trees.threshold"]).any(),
        "a split of a column that is not there": ((feature[inner] < 0) | (feature[inner] >= p)).any(),
        "a leaf with a column or a threshold": (feature[~inner] != -1).any() or arrays["trees.threshold"][~inner].any(),
        "neither a fault nor a proof": not stored["fault"] and not stored["value"] <= 1,
    }
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        of_tree = left[begin:end]
        children, parents = of_tree[of_tree != 0], np.flatnonzero(of_tree)
        is_tree = np.array_equal(np.sort(children), np.arange(1, end - begin, 2)) and (children > parents).all()
        yield {"nodes that are no tree": (end - begin) % 2 == 0 or not is_tree}


def _round_problems(content: Content) -> Iterator[Problems]:
    """Weights that are not those of the errors, and rounds after one that ends them."""
    error, alpha = content.arrays["trees.error"], content.arrays["trees.alpha"]
    rate = float(content.parameters["learning_rate"])
    inside = (error > 0) & (error < 0.5)
    e = np.where(inside, error, 0.25)
    with np.errstate(over="ignore"):
        wanted = np.where(inside, rate * (np.log1p(-e) - np.log(e)), alpha)
    yield {
        "an error outside of 0 to 1": ((error < 0) | (error > 1 + NEAR)).any(),
        "a weight below 0": (alpha < 0).any(),
        "rounds after one that ends them": not inside[:-1].all(),
        "a weight that is not that of its error": not np.allclose(alpha, wanted, rtol=NEAR, atol=NEAR),
    }


def _show(content: Content) -> Shown:
    return {"model": {"n_rounds": content.metadata["n_rounds"], "has_standard_errors": False}}


RECORD = Record(
    fields={
        "certificate": fields_at("certificate_.*", _CERTIFICATE),
        "n_rounds": Field(COUNT_FROM_1, get=lambda model: model.median_.n_rounds),
        **TARGET,
        **TARGET_NAME,
    },
    arrays={
        "trees.ends": Array(("s",), "int64", at="median_.ends"),
        **{
            f"trees.{name}": Array(("n",), dtype, may_be_infinite=name == "threshold", at=f"median_.{name}")
            for name, dtype in _NODES.items()
        },
        "trees.error": Array(("r",), at="median_.error"),
        "trees.alpha": Array(("r",), at="median_.alpha"),
    },
    objects={
        "certificate_": Object("models.adaboost_r2.certificate:MedianCertificate"),
        "median_": Object("models.adaboost_r2.state:TreeMedian"),
    },
    derived={"history_": lambda content: _median(content).history()},
    sizes=(lambda metadata: {"r": metadata["n_rounds"], "s": metadata["n_rounds"] + 1},),
    checks=(_shape_problems, _round_problems, fault_problems),
    shown=(_show,),
    counts="weighted",
)
