"""A forest in a file: its trees end to end.

t   trees    s   t + 1    n   nodes    l   leaves    c   sets of levels
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from certifit.models.file_checks import NEAR
from certifit.models.forest.state import ForestState
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
    Object,
    OrNull,
    Problems,
    Record,
    Shown,
    fault_problems,
    fields_at,
)
from certifit.models.trees.levels import categories_setting, set_problems, stored_levels

_CERTIFICATE = {
    **CLAIM,
    "deviation": MAGNITUDE,
    "fault": TEXT,
    "high": OrNull(NUMBER),
    "low": OrNull(NUMBER),
    "n_trees": COUNT_FROM_1,
    "out_of_bag": OrNull(NUMBER),
}


def _shape_problems(content: Content) -> Iterator[Problems]:
    """Nodes that are no trees: in each, children lie behind their parents and are 1, 2, ... without a gap."""
    arrays, p = content.arrays, len(content.columns)
    ends, left, feature = arrays["forest.ends"], arrays["forest.left"], arrays["forest.feature"]
    inner = left != 0
    yield {
        "ends that do not rise from 0 to the number of nodes": ends[0] != 0
        or ends[-1] != len(left)
        or (np.diff(ends) < 1).any(),
        "more trees than were asked for": content.metadata["n_trees"] > content.parameters["n_estimators"],
        "a proof of fewer trees than were asked for": not content.metadata["certificate"]["fault"]
        and content.metadata["n_trees"] != content.parameters["n_estimators"],
        "another number of trees than the certificate": content.metadata["certificate"]["n_trees"] != len(ends) - 1,
        "flags that are not 0 or 1": (arrays["forest.is_missing_left"] > 1).any(),
        "a threshold of minus infinity": np.isneginf(arrays["forest.threshold"]).any(),
        "a split of a column that is not there": ((feature[inner] < 0) | (feature[inner] >= p)).any(),
        "a leaf with a column": (feature[~inner] != -1).any(),
        "another number of leaves than of values": len(arrays["forest.values"]) != np.count_nonzero(~inner),
        "neither a fault nor a proof": not content.metadata["certificate"]["fault"]
        and not content.metadata["certificate"]["value"] <= 1,
    }
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        of_tree = left[begin:end]
        children, parents = of_tree[of_tree != 0], np.flatnonzero(of_tree)
        is_tree = np.array_equal(np.sort(children), np.arange(1, end - begin, 2)) and (children > parents).all()
        yield {"nodes that are no tree": (end - begin) % 2 == 0 or not is_tree}


def _value_problems(content: Content) -> Iterator[Problems]:
    values, gains = content.arrays["forest.values"], content.arrays["forest.gains"]
    has_classes = content.labels is not None
    yield {
        "shares of classes that are no shares": has_classes
        and ((values < 0).any() or not np.allclose(values.sum(axis=1), 1, rtol=NEAR)),
        "a gain below 0": (gains < 0).any(),
    }


def _history(content: Content) -> list[dict[str, float]]:
    names = ("ends", "threshold", "is_missing_left", "values", "gains")
    state = ForestState(**{name: content.arrays[f"forest.{name}"] for name in names}, **_nodes(content))
    return state.history()


def _nodes(content: Content) -> dict[str, NDArray[np.int32]]:
    """Columns and children, half as large as in the file: a forest has millions of nodes."""
    return {name: content.arrays[f"forest.{name}"].astype(np.int32) for name in ("feature", "left")}


def _show(content: Content) -> Shown:
    facts = content.metadata["certificate"]
    shown = {"n_trees": content.metadata["n_trees"], "out_of_bag": facts["out_of_bag"], "has_standard_errors": False}
    return {"model": shown}


def _arrays(width: str) -> dict[str, Array]:
    def array(name: str, shape: tuple[str, ...], dtype: str = "float64", infinite: bool = False) -> Array:
        return Array(shape, dtype, may_be_infinite=infinite, at=f"forest_.{name}")

    return {
        "forest.ends": array("ends", ("s",), "int64"),
        "forest.feature": Array(("n",), "int64", get=lambda model: model.forest_.feature.astype(np.int64)),
        "forest.left": Array(("n",), "int64", get=lambda model: model.forest_.left.astype(np.int64)),
        "forest.threshold": array("threshold", ("n",), infinite=True),
        "forest.is_missing_left": array("is_missing_left", ("n",), "uint8"),
        "forest.values": array("values", ("l", width)),
        "forest.gains": array("gains", ("t", "p")),
        "forest.n_levels": Array(("p",), "uint8", at="forest_.n_levels", when=lambda metadata: "n_sets" in metadata),
        "forest.sets": Array(
            ("c", "4"),
            "int64",
            get=lambda model: model.forest_.sets.view(np.int64),
            when=lambda metadata: "n_sets" in metadata,
        ),
    }


_FOREST = Record(
    fields={
        "certificate": fields_at("certificate_.*", _CERTIFICATE),
        "n_trees": Field(COUNT_FROM_1, get=lambda model: model.forest_.n_trees),
        "n_sets": Field(
            COUNT,
            get=lambda model: None if model.forest_.n_levels is None else len(model.forest_.sets),
            is_left_out=True,
        ),
        **TARGET_NAME,
    },
    objects={
        "certificate_": Object("models.forest.certificate:ForestCertificate"),
        "forest_": Object(
            "models.forest.state:ForestState", lambda content: {**_nodes(content), **stored_levels(content, "forest")}
        ),
    },
    derived={"history_": _history},
    sizes=(
        lambda metadata: {
            "c": metadata.get("n_sets", 0),
            "t": metadata["n_trees"],
            "s": metadata["n_trees"] + 1,
        },
    ),
    checks=(_shape_problems, _value_problems, lambda content: set_problems(content, "forest"), fault_problems),
    shown=(_show,),
    settings={"categorical_features": categories_setting("forest")},
)
CLASSIFIER = LABELLED | _FOREST | Record(fields={"data": ROWS}, arrays=_arrays("K"), counts="counted")
REGRESSOR = _FOREST | Record(fields=TARGET, arrays=_arrays("1"), counts="weighted")
