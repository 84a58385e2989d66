"""A tree in a file: its nodes as arrays. Numbers of a parent are those of its children added up.

t   nodes    c   nodes that split a category
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.file_checks import NEAR, Floats, agree
from certifit.models.record import (
    CLAIM,
    COUNT,
    COUNT_FROM_1,
    FLAG,
    LABELLED,
    MAGNITUDE,
    ROWS,
    TARGET,
    TARGET_NAME,
    TEXT,
    Array,
    Content,
    Field,
    Model,
    Object,
    Problems,
    Record,
    Setting,
    Shown,
    fault_problems,
    fields_at,
)
from certifit.models.trees.certificate import OPEN
from certifit.models.trees.columns import column_rules
from certifit.models.trees.levels import categories_setting, set_problems, stored_levels
from certifit.models.trees.state import SplitHistory, TreeState

_LEVELS, _DIRECTION = "tree.n_levels", "tree.direction"
_CERTIFICATE = {**CLAIM, "depth": COUNT, "deviation": MAGNITUDE, "fault": TEXT, "n_leaves": COUNT_FROM_1}

# Of trees that were compared with all others of their depth.
_COMPARED = {
    name: Field(spec, f"certificate_.{name}", is_left_out=True)
    for name, spec in {
        "least_loss": MAGNITUDE, "loss": MAGNITUDE, "n_searched": COUNT_FROM_1, "n_thresholds": COUNT,
        "searched_depth": COUNT_FROM_1, "is_closed": FLAG,
    }.items()
}  # fmt: skip
_LEAST_ROWS = {"least_rows": Field(COUNT_FROM_1, "certificate_.least_rows", is_left_out=True)}


def _state(content: Content) -> TreeState:
    arrays = content.arrays
    return TreeState(
        **{
            name: arrays[f"tree.{name}"]
            for name in ("feature", "left", "threshold", "is_missing_left", "weight", "values", "impurity", "decrease")
        },
        **stored_levels(content, "tree"),
    )


def _direction(model: Model) -> object:
    """The directions of the columns as a list; None where none is asked for."""
    rules = column_rules(model.monotonic_cst, None, list(model.column_names_))
    return None if rules.direction is None else rules.direction.astype(np.int64)


def _asked_directions(model: Model) -> object:
    direction = _direction(model)
    return None if direction is None else [int(value) for value in np.asarray(direction)]


def _given_directions(content: Content) -> object:
    stored = content.arrays.get(_DIRECTION)
    return None if stored is None else [int(value) for value in stored]


def _level_problems(content: Content) -> Iterator[Problems]:
    """Sets of levels that are not numbered by their nodes, or hold codes that the category has not."""
    arrays = content.arrays
    direction = arrays.get(_DIRECTION)
    yield {"a direction that is not -1, 0 or 1": direction is not None and not np.isin(direction, (-1, 0, 1)).all()}
    if _LEVELS not in arrays:
        return
    n_levels = arrays[_LEVELS]
    inner = np.flatnonzero(arrays["tree.left"])
    nodes = inner[n_levels[arrays["tree.feature"][inner]] > 0]
    yield {
        "a category with a direction": direction is not None and ((direction != 0) & (n_levels > 0)).any(),
        "sets of levels that are not numbered in the order of their nodes": not np.array_equal(
            arrays["tree.threshold"][nodes], np.arange(len(arrays["tree.sets"]))
        ),
    }
    yield from set_problems(content, "tree")


def _shape_problems(content: Content) -> Iterator[Problems]:
    """Nodes that are no tree: level by level, the children of nodes that split are 1, 2, then 3, 4, and so on."""
    arrays = content.arrays
    left, feature, p = arrays["tree.left"], arrays["tree.feature"], len(content.columns)
    inner = left != 0
    children = np.arange(1, len(left), 2)
    yield {
        "an even number of nodes": len(left) % 2 == 0,
        "children that are not behind their parents, level by level": not (
            len(children) == np.count_nonzero(inner)
            and (left[inner] == children).all()
            and (left[inner] > np.flatnonzero(inner)).all()
        ),
        "a split of a column that is not there": ((feature[inner] < 0) | (feature[inner] >= p)).any(),
        "a leaf with a column, a threshold or a decrease": (feature[~inner] != -1).any()
        or arrays["tree.threshold"][~inner].any()
        or arrays["tree.decrease"][~inner].any()
        or arrays["tree.is_missing_left"][~inner].any(),
        "flags that are not 0 or 1": (arrays["tree.is_missing_left"] > 1).any(),
        "a threshold of minus infinity": np.isneginf(arrays["tree.threshold"]).any(),
    }


def _sum_problems(content: Content) -> Iterator[Problems]:
    """Nodes whose numbers are not those of their children together."""
    tree = _state(content)
    yield {"a node without weight": not (tree.weight > 0).all()}
    inner = np.flatnonzero(tree.left)
    first, second = tree.left[inner], tree.left[inner] + 1
    metadata = content.metadata
    with np.errstate(over="ignore", invalid="ignore"):
        together = tree.weight[first] + tree.weight[second]
        worth = tree.weight / tree.weight[0] * tree.impurity
        wanted = worth[inner] - worth[first] - worth[second]
    yield {
        "an impurity or a decrease below 0": (tree.impurity < 0).any() or (tree.decrease < 0).any(),
        "weights of children that do not add up": not agree(tree.weight[inner], together),
        "a root of another weight than the rows": not agree(tree.weight[0], metadata["data"]["sum_weight"]),
        "decreases that are not those of the impurities": not _near(tree.decrease[inner], wanted, worth[inner]),
        "another number of leaves than the certificate": metadata["certificate"]["n_leaves"] != tree.n_leaves,
        "another depth than the certificate": metadata["certificate"]["depth"] != int(tree.depths.max()),
        "neither a fault nor a proof": not metadata["certificate"]["fault"]
        and not metadata["certificate"]["value"] <= 1,
    }
    yield from (_class_problems if tree.values.ndim == 2 else _mean_problems)(tree, together)


def _near(stored: Floats, wanted: Floats, scale: Floats) -> bool:
    return bool((np.abs(stored - wanted) <= NEAR * scale).all())


def _class_problems(tree: TreeState, together: Floats) -> Iterator[Problems]:
    inner = np.flatnonzero(tree.left)
    of_children = tree.values[tree.left[inner]] + tree.values[tree.left[inner] + 1]
    yield {
        "a negative weight of a class": (tree.values < 0).any(),
        "weights of classes that do not add up": not agree(tree.values.sum(axis=1), tree.weight)
        or not np.allclose(of_children, tree.values[inner], rtol=NEAR, atol=NEAR * float(tree.weight.max())),
    }


def _mean_problems(tree: TreeState, together: Floats) -> Iterator[Problems]:
    inner = np.flatnonzero(tree.left)
    first, second = tree.left[inner], tree.left[inner] + 1
    with np.errstate(over="ignore", invalid="ignore"):
        shares = tree.weight[first] / together
        mean = shares * tree.values[first] + (1 - shares) * tree.values[second]
    size = np.abs(tree.values).max(initial=0.0)
    yield {"a mean that is not that of the children": not _near(tree.values[inner], mean, np.full(len(inner), size))}


def _bound_problems(content: Content) -> Iterator[Problems]:
    """What is said of other trees, without having searched them or against what is said of this one."""
    stated, search = content.metadata["certificate"], content.metadata["parameters"].get("search", "greedy")
    n_stated = sum(name in stated for name in _COMPARED)
    least_rows = stated.get("least_rows")
    yield {
        "half of a comparison with other trees": n_stated not in (0, len(_COMPARED)),
        "another least number of rows of a leaf than was asked for": least_rows is not None
        and least_rows != content.metadata["parameters"]["min_samples_leaf"],
        "a comparison of a greedy tree": search == "greedy" and n_stated > 0,
        "a best tree without a comparison": search == "optimal" and n_stated == 0 and not stated["fault"],
    }
    if n_stated:
        most = OPEN * (1 + NEAR) * max(_root_loss(content), stated["loss"])
        yield {
            "a best tree that is worse than a bound allows": stated["loss"] < stated["least_loss"] * (1 - NEAR),
            "another depth than was searched": stated["searched_depth"] != content.metadata["parameters"]["max_depth"],
            "a proof that is not closed": stated["is_closed"] and not stated["loss"] - stated["least_loss"] <= most,
        }


def _root_loss(content: Content) -> float:
    """The loss without a split: share of wrong rows, or mean squared error."""
    tree = _state(content)
    return float(1 - tree.values[0].max() / tree.weight[0] if tree.values.ndim == 2 else tree.impurity[0])


def _show(content: Content) -> Shown:
    facts = content.metadata["certificate"]
    shown = {"n_nodes": content.metadata["n_nodes"], "n_leaves": facts["n_leaves"], "depth": facts["depth"]}
    return {"model": {**shown, "has_standard_errors": False}}


def _node_arrays(values: tuple[str, ...]) -> dict[str, Array]:
    def array(name: str, shape: tuple[str, ...] = ("t",), dtype: str = "float64", infinite: bool = False) -> Array:
        return Array(shape, dtype, may_be_infinite=infinite, at=f"tree_.{name}")

    return {
        "tree.feature": array("feature", dtype="int64"),
        "tree.left": array("left", dtype="int64"),
        "tree.threshold": array("threshold", infinite=True),
        "tree.is_missing_left": array("is_missing_left", dtype="uint8"),
        "tree.weight": array("weight"),
        "tree.values": array("values", values),
        "tree.impurity": array("impurity"),
        "tree.decrease": array("decrease"),
    }


_TREE = Record(
    fields={
        "certificate": {**fields_at("certificate_.*", _CERTIFICATE), **_COMPARED, **_LEAST_ROWS},
        "n_nodes": Field(COUNT_FROM_1, get=lambda model: model.tree_.n_nodes),
        "n_sets": Field(
            COUNT, get=lambda model: None if model.tree_.n_levels is None else len(model.tree_.sets), is_left_out=True
        ),
        "has_directions": Field(FLAG, get=lambda model: _direction(model) is not None or None, is_left_out=True),
        **TARGET_NAME,
    },
    objects={
        "certificate_": Object("models.trees.certificate:TreeCertificate"),
        "tree_": Object("models.trees.state:TreeState", lambda content: stored_levels(content, "tree")),
    },
    derived={"history_": lambda content: SplitHistory(_state(content), tuple(content.columns))},
    sizes=(lambda metadata: {"t": metadata["n_nodes"], "c": metadata.get("n_sets", 0)},),
    arrays={
        _DIRECTION: Array(("p",), "int64", get=_direction, when=lambda metadata: "has_directions" in metadata),
        _LEVELS: Array(("p",), "uint8", at="tree_.n_levels", when=lambda metadata: "n_sets" in metadata),
        "tree.sets": Array(
            ("c", "4"),
            "int64",
            get=lambda model: model.tree_.sets.view(np.int64),
            when=lambda metadata: "n_sets" in metadata,
        ),
    },
    settings={
        "monotonic_cst": Setting(_asked_directions, _given_directions),
        "categorical_features": categories_setting("tree"),
    },
    checks=(_shape_problems, _level_problems, _sum_problems, _bound_problems, fault_problems),
    shown=(_show,),
    switches=("search", "n_thresholds", "max_nodes", "max_bins"),
)
CLASSIFIER = LABELLED | _TREE | Record(fields={"data": ROWS}, arrays=_node_arrays(("t", "K")), counts="counted")
REGRESSOR = _TREE | Record(fields=TARGET, arrays=_node_arrays(("t",)), counts="weighted")
