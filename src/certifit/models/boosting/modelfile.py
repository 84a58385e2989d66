"""Boosted trees in a file, end to end.

s   trees + 1    n   nodes    c   sets of levels    w   scores of a row    r   rounds    v   rounds with held-out rows
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.boosting.state import BoostingState
from certifit.models.boosting.task import directions_of
from certifit.models.record import (
    CLAIM,
    COUNT,
    COUNT_FROM_1,
    LABELLED,
    MAGNITUDE,
    NUMBER,
    ROWS,
    TARGET,
    TARGET_NAME,
    TEXT,
    Array,
    Content,
    Field,
    Model,
    Object,
    OrNull,
    Problems,
    Record,
    Setting,
    Shown,
    fault_problems,
    fields_at,
)
from certifit.models.trees.levels import categories_setting, set_problems, stored_levels

_CERTIFICATE = {
    **CLAIM,
    "deviation": MAGNITUDE,
    "fault": TEXT,
    "held_out": OrNull(NUMBER),
    "loss": NUMBER,
    "n_trees": COUNT_FROM_1,
    "null_loss": NUMBER,
}
_LEVELS = "trees.n_levels"
_NAMES = (
    "start",
    "ends",
    "feature",
    "left",
    "threshold",
    "is_missing_left",
    "value",
    "weight",
    "gain",
    "loss",
    "held_out",
)


def _shape_problems(content: Content) -> Iterator[Problems]:
    """Nodes that are no trees: in each, children lie behind their parents and are 1, 2, ... without a gap."""
    arrays, p, metadata = content.arrays, len(content.columns), content.metadata
    ends, left, feature = (arrays[f"trees.{name}"] for name in ("ends", "left", "feature"))
    inner = left != 0
    n_classes = 0 if content.labels is None else len(content.labels)
    yield {
        "ends that do not rise from 0 to the number of nodes": ends[0] != 0
        or ends[-1] != len(left)
        or (np.diff(ends) < 1).any(),
        "another number of scores than of classes": metadata["n_scores"] != (n_classes if n_classes > 2 else 1),
        "more rounds than were asked for": metadata["n_rounds"] > content.parameters["n_estimators"],
        "another number of trees than the certificate": metadata["certificate"]["n_trees"] != len(ends) - 1,
        "flags that are not 0 or 1": (arrays["trees.is_missing_left"] > 1).any(),
        "a threshold of minus infinity": np.isneginf(arrays["trees.threshold"]).any(),
        "a split of a column that is not there": ((feature[inner] < 0) | (feature[inner] >= p)).any(),
        "a leaf with a column, a threshold or a gain": (feature[~inner] != -1).any()
        or arrays["trees.threshold"][~inner].any()
        or arrays["trees.gain"][~inner].any(),
        "a gain or a weight below 0": (arrays["trees.gain"] < 0).any() or (arrays["trees.weight"] < 0).any(),
        "another loss than the certificate": arrays["trees.loss"][-1] != metadata["certificate"]["loss"],
        "held-out losses of some rounds": 0 < metadata["n_held_out"] < metadata["n_rounds"]
        or metadata["n_held_out"] > content.parameters["n_estimators"],
        "directions that are not 1, -1 or 0": not np.isin(arrays["directions"], (-1, 0, 1)).all(),
        "neither a fault nor a proof": not metadata["certificate"]["fault"]
        and not metadata["certificate"]["value"] <= 1,
    }
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        of_tree = left[begin:end]
        children, parents = of_tree[of_tree != 0], np.flatnonzero(of_tree)
        is_tree = np.array_equal(np.sort(children), np.arange(1, end - begin, 2)) and (children > parents).all()
        yield {"nodes that are no tree": (end - begin) % 2 == 0 or not is_tree}


def _level_problems(content: Content) -> Iterator[Problems]:
    if _LEVELS in content.arrays:
        directions = content.arrays["directions"]
        yield {"a category with a direction": ((directions != 0) & (content.arrays[_LEVELS] > 0)).any()}
    yield from set_problems(content, "trees")


def _history(content: Content) -> list[dict[str, float]]:
    return BoostingState(**{name: content.arrays[f"trees.{name}"] for name in _NAMES}).history


def _show(content: Content) -> Shown:
    return {"model": {"n_rounds": content.metadata["n_rounds"], "has_standard_errors": False}}


def _array(name: str, shape: str, dtype: str = "float64", infinite: bool = False) -> Array:
    return Array((shape,), dtype, may_be_infinite=infinite, at=f"boosting_.{name}")


def _directions(model: Model) -> list[int] | None:
    """The direction of every column, where one has any."""
    directions = directions_of(model.monotonic_cst, model.column_names_)
    return None if directions is None else list(directions)


def _stored_directions(content: Content) -> list[int] | None:
    directions = content.arrays["directions"].tolist()
    return directions if any(directions) else None


_BOOSTING = Record(
    fields={
        "certificate": fields_at("certificate_.*", _CERTIFICATE),
        "n_held_out": Field(COUNT, get=lambda model: len(model.boosting_.held_out)),
        "n_nodes": Field(COUNT_FROM_1, get=lambda model: len(model.boosting_.left)),
        "n_sets": Field(
            COUNT,
            get=lambda model: None if model.boosting_.n_levels is None else len(model.boosting_.sets),
            is_left_out=True,
        ),
        "n_rounds": Field(COUNT_FROM_1, get=lambda model: model.boosting_.n_rounds),
        "n_scores": Field(COUNT_FROM_1, get=lambda model: model.boosting_.width),
        **TARGET_NAME,
    },
    arrays={
        "directions": Array(("p",), "int64", get=lambda model: _directions(model) or [0] * len(model.column_names_)),
        "trees.start": _array("start", "w"),
        "trees.ends": _array("ends", "s", "int64"),
        "trees.feature": _array("feature", "n", "int64"),
        "trees.left": _array("left", "n", "int64"),
        "trees.threshold": _array("threshold", "n", infinite=True),
        "trees.is_missing_left": _array("is_missing_left", "n", "uint8"),
        "trees.value": _array("value", "n"),
        "trees.weight": _array("weight", "n"),
        "trees.gain": _array("gain", "n"),
        "trees.loss": _array("loss", "r"),
        "trees.held_out": _array("held_out", "v"),
        _LEVELS: Array(("p",), "uint8", at="boosting_.n_levels", when=lambda metadata: "n_sets" in metadata),
        "trees.sets": Array(
            ("c", "4"),
            "int64",
            get=lambda model: model.boosting_.sets.view(np.int64),
            when=lambda metadata: "n_sets" in metadata,
        ),
    },
    objects={
        "certificate_": Object("models.boosting.certificate:GradientBoostingCertificate"),
        "boosting_": Object("models.boosting.state:BoostingState", lambda content: stored_levels(content, "trees")),
    },
    derived={"history_": _history},
    sizes=(
        lambda metadata: {
            "c": metadata.get("n_sets", 0),
            "n": metadata["n_nodes"],
            "r": metadata["n_rounds"],
            "s": metadata["n_rounds"] * metadata["n_scores"] + 1,
            "v": metadata["n_held_out"],
            "w": metadata["n_scores"],
        },
    ),
    checks=(_shape_problems, _level_problems, fault_problems),
    shown=(_show,),
    settings={
        "monotonic_cst": Setting(_directions, _stored_directions),
        "categorical_features": categories_setting("trees"),
    },
)
CLASSIFIER = LABELLED | _BOOSTING | Record(fields={"data": ROWS}, counts="counted")
REGRESSOR = _BOOSTING | Record(
    fields={**TARGET, "offset": Field(OrNull(TEXT), "offset_name_"), "exposure": Field(OrNull(TEXT), "exposure_name_")},
    counts="weighted",
)
