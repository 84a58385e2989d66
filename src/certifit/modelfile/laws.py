"""The law of a model's targets in a file: its family and link by name, and what a summary needs beside coefficients.

Estimates, names, rows and weights of an inference follow from the rest, so a file cannot contradict itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from certifit.modelfile.agreement import DEFAULT_TOLERANCES, NEAR, SAME, UNIT, agree, check_inverse
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Arrays, Metadata
from certifit.modelfile.schema import MAGNITUDE, NUMBER, TEXT, Check, OrNull, Spec, brief, one_of, refuse_any

NAMES = (
    "gaussian",
    "bernoulli",
    "binomial",
    "poisson",
    "gamma",
    "exponential",
    "inverse-gaussian",
    "tweedie",
    "negative-binomial",
)
LAW: Mapping[str, Spec] = {"link": OrNull(TEXT), "name": one_of(*NAMES), "parameter": OrNull(NUMBER)}
LIMIT = Check("a float, or infinity", lambda value: type(value) is float and not math.isnan(value))
# Of models that have one law: by their default link.
LAWS = {"logistic_regression": "bernoulli", "poisson_regressor": "poisson", "gamma_regressor": "gamma"}
INFERENCE: Mapping[str, Spec] = {  # null: rows are needed, or there is no such number
    "deviance": NUMBER,
    "mean_information": MAGNITUDE,
    "null_deviance": OrNull(LIMIT),
    "pearson": MAGNITUDE,
    "saturated": OrNull(NUMBER),
}
ROUNDINGS = 256  # units of the last place that a sum over rows may be off by, of its largest terms
STOCHASTIC = ("sgd", "mini-batch", "averaged-sgd")  # the last objective of their history is not that of the weights
_PARAMETERS = {"tweedie": "power", "negative-binomial": "alpha"}


def dump_law(model: Any) -> Metadata:
    """Family and link of a model that has them as parameters; None is the family's first link."""
    from certifit.families.responses import FAMILIES, family_of
    from certifit.losses.scores import ScoreLoss

    if isinstance(model.family, ScoreLoss):
        raise ModelFileError(
            "family=Loss(...) is a loss of your own: code, which a model file never stores. "
            "Use a family by its name, or predict in the program that fits it."
        )
    try:
        law = family_of(model.family)
    except ValueError as error:  # changed after the fit
        raise ModelFileError(str(error)) from None
    if type(law) is not type(FAMILIES.get(law.name)):
        raise ModelFileError(
            f"family={brief(type(law).__qualname__)} is a family of your own: code, which a model file never stores. "
            f"Use one of {', '.join(NAMES)}, or predict in the program that fits it."
        )
    key = _PARAMETERS.get(law.name)
    parameter = None if key is None else float(getattr(law, key))
    return {"link": _link_name(model.link), "name": law.name, "parameter": parameter}


def _link_name(link: Any) -> str | None:
    from certifit.families.links import LINKS

    if link is None or isinstance(link, str):
        return link
    for name, known in LINKS.items():
        if type(link) is type(known) and link.name == name and vars(link) == vars(known):
            return name
    raise ModelFileError(
        f"link={brief(type(link).__qualname__)} is a link of your own: code, which a model file never stores. "
        f"Use one of {', '.join(LINKS)}, or predict in the program that fits it."
    )


def read_law(metadata: Metadata) -> tuple[Any, Any]:
    """The family and its link, or a ModelFileError."""
    from certifit.families.responses import FAMILIES

    law = metadata.get("law") or {"name": LAWS[metadata["estimator"]], "link": None, "parameter": None}
    family: Any = FAMILIES[law["name"]]
    key = _PARAMETERS.get(law["name"])
    refuse_any({f"a parameter of the family {law['name']!r}": (key is None) != (law["parameter"] is None)})
    try:
        family = family if key is None else replace(family, **{key: law["parameter"]})
        return family, family.link(law["link"])
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None


def build_law(law: Metadata, family: Any) -> dict[str, Any]:
    """The parameters family and link; a family with a parameter comes back as the object."""
    return {"family": law["name"] if law["parameter"] is None else family, "link": law["link"]}


def dump_inference(inference: Any) -> Metadata | None:
    """What a summary needs beside the rest of the file; its matrix is an array."""
    if inference is None:
        return None
    numbers = {key: float(getattr(inference, key)) for key in INFERENCE}
    return {key: None if math.isnan(number) else number for key, number in numbers.items()}


def check_inference(metadata: Metadata, arrays: Arrays, family: str) -> None:
    """Refuse deviances that are not those of the objective or of each other, or a matrix that is no inverse."""
    stored, certificate, weight = metadata["inference"], metadata["certificate"], metadata["data"]["sum_weight"]
    has_intercept = metadata["parameters"]["fit_intercept"]
    mass = stored["mean_information"] if has_intercept else None
    check_inverse(arrays["inference.inverse"], mass, certificate["condition"])
    deviance, null = stored["deviance"], stored["null_deviance"]
    objective = float(arrays["history"][-1, 0])
    tolerance = certificate["tolerance"]
    is_best = certificate["value"] <= tolerance and not certificate["is_local"]
    # Scores that cancel a large intercept, or columns that nearly repeat others, have fewer digits than is asked here.
    lost = UNIT * max(float(np.abs(arrays["intercept"]).max()), certificate["condition"])
    is_last = metadata["parameters"]["solver"] not in STOCHASTIC and tolerance < DEFAULT_TOLERANCES[1] and lost < SAME
    size = abs(deviance) + (0.0 if null is None else null)
    data = metadata["data"]
    terms = weight * (1 + abs(data["target_mean"]) + data["target_sd"])  # what a deviance is a small difference of
    slack = (tolerance + NEAR) * size + (ROUNDINGS * UNIT * terms if math.isfinite(terms) else math.inf)
    refuse_any(
        {
            "a deviance below 0": deviance < -slack,
            "a deviance that is not that of the objective": is_best
            and is_last
            and abs(deviance - 2 * weight * objective) > slack,
            "a deviance above that of the null model": is_best and null is not None and deviance > null + slack,
            "a Pearson sum that is not the sum of squares": family == "gaussian"
            and not agree(stored["pearson"], deviance, NEAR),
        }
    )


def build_inference(metadata: Metadata, arrays: Arrays, names: tuple[str, ...]) -> Any:
    """The inference of a file, whose law is sound; a ValueError where it is none."""
    from certifit.certificates.glm_inference import GlmInference

    family, link = read_law(metadata)
    has_intercept = bool(metadata["parameters"]["fit_intercept"])
    numbers: dict[str, Any] = {
        key: math.nan if value is None else value for key, value in metadata["inference"].items()
    }
    return GlmInference(
        names=names,
        estimate=np.concatenate([arrays["intercept"][: int(has_intercept)], arrays["coef"][0]]),
        inverse=arrays["inference.inverse"],
        family=family,
        link=link.name,
        n_rows=float(metadata["data"]["n_rows"]),
        sum_weight=float(metadata["data"]["sum_weight"]),
        has_intercept=has_intercept,
        **numbers,
    )
