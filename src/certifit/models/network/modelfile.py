"""Networks in a file: all parameters end to end, with the sizes of the layers.

l   sizes of the states    w   parameters    m   steps of the history    s   starts
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from certifit.models.network.layout import Layout
from certifit.models.record import (
    CLAIM,
    CLASS_WEIGHT,
    COUNT,
    COUNT_FROM_1,
    LABELLED,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
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
    history_rows,
)

KEYS = ("objective", "gradient_norm", "held_out")


def _history(model: Model) -> object:
    rows = [{"held_out": float("nan"), **row} for row in model.history_]
    numbers = np.array([[float(row[key]) for key in KEYS] for row in rows], dtype=np.float64).reshape(-1, len(KEYS))
    return np.where(np.isnan(numbers), -np.inf, numbers)


def _sizes(content: Content) -> tuple[int, ...]:
    return tuple(int(size) for size in content.arrays["layer_sizes"])


def _layout(content: Content) -> Layout:
    p = content.parameters
    return Layout(_sizes(content), p["activation"], p["leak"], p["biases"], p["output_bias"])


def _problems(content: Content) -> Iterator[Problems]:
    metadata, parameters, arrays = content.metadata, content.parameters, content.arrays
    sizes = _sizes(content)
    yield {"a layer without units": min(sizes) < 1 or max(sizes) > 1 << 24}
    outputs = 1 if content.labels is None or len(content.labels) == 2 else len(content.labels)
    yield {
        "inputs that are not its columns": sizes[0] != len(content.columns),
        "another number of outputs": sizes[-1] != outputs,
    }
    kind = content.parameters["dtype"]
    with np.errstate(over="ignore", under="ignore"):
        rounded = arrays["parameters"].astype(kind)
    yield {
        f"parameters that are no {kind}": (rounded != arrays["parameters"]).any(),
        "another number of parameters than its layers have": len(arrays["parameters"]) != _layout(content).n_parameters,
        "a scale that is not above 0": (arrays["units.scale"] <= 0).any() or metadata["solution"]["size"] <= 0,
        "another number of starts": metadata["n_starts"] != parameters["n_starts"],
        "a penalty that was not asked for": parameters["alpha"] not in (None, metadata["solution"]["alpha"]),
        "an objective that is not the certificate's": not np.isclose(
            metadata["solution"]["objective"], metadata["certificate"]["objective"], rtol=1e-6
        ),
    }


def _show(content: Content) -> Shown:
    return {"model": {"layers": list(_sizes(content)), "n_weights": len(content.arrays["parameters"])}}


NETWORK = Record(
    fields={
        "certificate": fields_at(
            "certificate_.*",
            {
                **CLAIM,
                "fault": TEXT,
                "gradient_norm": MAGNITUDE,
                "n_checked": COUNT,
                "n_kinks": COUNT,
                "objective": NUMBER,
                "polished": TEXT,
                "relative_norm": MAGNITUDE,
            },
        ),
        "diverged": Field(OrNull(TEXT), get=lambda model: model.diverged_ or None, is_left_out=True),
        **TARGET_NAME,
        "n_iterations": Field(COUNT_FROM_1, get=lambda model: len(model.history_)),
        "n_layers": Field(COUNT_FROM_1, get=lambda model: len(model.layer_sizes_)),
        "n_parameters": Field(COUNT_FROM_1, get=lambda model: len(model.parameters_)),
        "n_starts": Field(COUNT_FROM_1, get=lambda model: len(model.starts_)),
        "solution": fields_at(
            "*_", {"alpha": NUMBER_FROM_0, "level": NUMBER, "size": NUMBER, "objective": NUMBER, "n_iter": COUNT_FROM_1}
        ),
        **TARGET,
    },
    arrays={
        "history": Array(("m", str(len(KEYS))), may_be_infinite=True, get=_history),
        "layer_sizes": Array(("l",), "int64", get=lambda model: np.array(model.layer_sizes_, dtype=np.int64)),
        "parameters": Array(("w",), get=lambda model: np.asarray(model.parameters_, dtype=np.float64)),
        "starts": Array(("s",), may_be_infinite=True, at="starts_"),
        "units.mean": Array(("p",), at="mean_"),
        "units.scale": Array(("p",), at="scale_"),
    },
    settings={
        "hidden_layer_sizes": Setting(
            lambda model: tuple(int(size) for size in model.hidden_layer_sizes), lambda content: _sizes(content)[1:-1]
        ),
        "start": Setting(lambda model: None, lambda content: None),  # a file holds where the fit ended
    },
    objects={"certificate_": Object("models.network.certificate:NetworkCertificate")},
    derived={
        "diverged_": lambda content: content.metadata.get("diverged") or "",
        "history_": lambda content: history_rows(content.arrays["history"], keys=KEYS),
        "layer_sizes_": _sizes,
        "parameters_": lambda content: content.arrays["parameters"].astype(content.parameters["dtype"]),
        "polished_": lambda content: content.metadata["certificate"]["polished"],
    },
    sizes=(
        lambda metadata: {
            "l": metadata["n_layers"],
            "m": metadata["n_iterations"],
            "s": metadata["n_starts"],
            "w": metadata["n_parameters"],
        },
    ),
    checks=(fault_problems, _problems),
    shown=(_show,),
    told=(lambda metadata: {"alpha": metadata["solution"]["alpha"]},),
)
REGRESSOR = NETWORK | Record(
    fields={
        "exposure": Field(OrNull(TEXT), get=lambda model: model.exposure_name_, is_left_out=True),
        "offset": Field(OrNull(TEXT), get=lambda model: model.offset_name_, is_left_out=True),
    },
    derived={
        "exposure_name_": lambda content: content.metadata.get("exposure"),
        "offset_name_": lambda content: content.metadata.get("offset"),
    },
    counts="weighted",
)
_WORD = CLASS_WEIGHT.fields["class_weight"]
assert isinstance(_WORD, Field)
CLASSIFIER = (
    NETWORK
    | LABELLED
    | CLASS_WEIGHT
    | Record(fields={"class_weight": replace(_WORD, is_left_out=True)}, counts="counted")
)
