"""Models of scores in a file: logistic and softmax regression and generalised linear models.

    C   rows of weights: one per class with softmax, else 1    m   rows of the history    q   coefficients with tests

A family and its link are stored by name. Estimates, names, rows and weights of an inference follow from the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit.models.file_checks import (
    DEFAULT_TOLERANCES,
    NEAR,
    SAME,
    UNIT,
    Floats,
    agree,
    alpha_problems,
    inverse_problems,
)
from certifit.models.record import (
    CLAIM,
    CLASS_WEIGHT,
    COUNT,
    FLAG,
    LABELLED,
    LENGTH_OF_HISTORY,
    LITERAL,
    MAGNITUDE,
    MORE_HISTORY,
    NUMBER,
    NUMBER_FROM_0,
    PENALISED,
    PENALTY,
    TARGET,
    TARGET_NAME,
    TEXT,
    TEXTS,
    Array,
    Check,
    Content,
    Field,
    Maybe,
    Metadata,
    Model,
    Object,
    OrNull,
    Problems,
    Record,
    Setting,
    Shown,
    Spec,
    fault_problems,
    fields_at,
    history_array,
    history_rows,
    more_columns,
    one_of,
    show_coefficients,
)

if TYPE_CHECKING:
    from certifit.mathematics.families.links import Link
    from certifit.mathematics.families.responses import Response

SOLVERS = (
    "auto",
    "gradient-descent",
    "conjugate-gradient",
    "bfgs",
    "lbfgs",
    "newton",
    "sgd",
    "mini-batch",
    "averaged-sgd",
    "coordinate-descent",
)
STOCHASTIC = ("sgd", "mini-batch", "averaged-sgd")  # the last objective of their history is not that of the weights
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
# Of models that have one law: by their default link.
LAWS = {"logistic_regression": "bernoulli", "poisson_regressor": "poisson", "gamma_regressor": "gamma"}
LIMIT = Check("a float, or infinity", lambda value: type(value) is float and not math.isnan(value), float)
INFERENCE: Mapping[str, Spec] = {  # null: rows are needed, or there is no such number
    "deviance": NUMBER,
    "mean_information": MAGNITUDE,
    "null_deviance": OrNull(LIMIT),
    "pearson": MAGNITUDE,
    "saturated": OrNull(NUMBER),
}
START = Check(
    "'zero', 'given' or an integer >= 0",
    lambda value: value in ("zero", "given") if isinstance(value, str) else type(value) is int and value >= 0,
)
ROUNDINGS = 256  # units of the last place that a sum over rows may be off by, of its largest terms
_PARAMETERS = {"tweedie": "power", "negative-binomial": "alpha"}
_OWN = "code, which a model file never stores."


# Family and link


def _law_of(model: Model) -> Metadata:
    """Family and link of a model that has them as parameters; None is the family's first link."""
    from certifit.mathematics.families.responses import FAMILIES, family_of
    from certifit.mathematics.losses.scores import ScoreLoss

    if isinstance(model.family, ScoreLoss):
        raise ValueError(
            f"family=Loss(...) is a loss of your own: {_OWN} "
            "Use a family by its name, or predict in the program that fits it."
        )
    law = family_of(model.family)
    if type(law) is not type(FAMILIES.get(law.name)):
        raise ValueError(
            f"family={type(law).__qualname__!a:.60} is a family of your own: {_OWN} "
            f"Use one of {', '.join(NAMES)}, or predict in the program that fits it."
        )
    key = _PARAMETERS.get(law.name)
    parameter = None if key is None else float(getattr(law, key))
    return {"link": _link_name(model.link), "name": law.name, "parameter": parameter}


def _no_penalty(model: Model) -> None:
    """A model with a penalty of the user's own is refused."""
    if model.penalty is not None:
        raise ValueError(
            f"penalty=Penalty(...) is a penalty of your own: {_OWN} Use l1_ratio, penalty_factors and bounds, or "
            "predict in the program that fits it."
        )


def _link_name(link: str | Link | None) -> str | None:
    from certifit.mathematics.families.links import LINKS

    if link is None or isinstance(link, str):
        return link
    for name, known in LINKS.items():
        if type(link) is type(known) and link.name == name and vars(link) == vars(known):
            return name
    raise ValueError(
        f"link={type(link).__qualname__!a:.60} is a link of your own: {_OWN} "
        f"Use one of {', '.join(LINKS)}, or predict in the program that fits it."
    )


def read_law(metadata: Metadata) -> tuple[Response, Link]:
    """The family of a file and its link; a ValueError where there is no such pair."""
    from certifit.mathematics.families.responses import FAMILIES

    law = metadata.get("law") or {"name": LAWS[metadata["estimator"]], "link": None, "parameter": None}
    family: Any = FAMILIES[law["name"]]
    key = _PARAMETERS.get(law["name"])
    if (key is None) != (law["parameter"] is None):
        raise ValueError(f"a parameter of the family {law['name']!r}")
    family = family if key is None else replace(family, **{key: law["parameter"]})
    return family, family.link(law["link"])


def _given_family(content: Content) -> str | Response:
    """A family with a parameter comes back as the object."""
    law = content.metadata["law"]
    name: str = law["name"]
    return name if law["parameter"] is None else read_law(content.metadata)[0]


def _law_problems(content: Content) -> Iterator[Problems]:
    read_law(content.metadata)
    yield {}


def _told_law(metadata: Metadata) -> dict[str, object]:
    return {"law": (metadata["law"]["name"], metadata["law"]["link"] or read_law(metadata)[1].name)}


# Inference


def _number_or_none(key: str) -> Field:
    def get(model: Model) -> float | None:
        number = float(getattr(model.inference_, key))
        return None if math.isnan(number) else number

    return Field(INFERENCE[key], f"inference_.{key}", get)


def _inference(content: Content) -> dict[str, object]:
    from certifit.inference.glm import Multinomial, score_names

    metadata = content.metadata
    family, link = read_law(metadata)
    has_intercept = bool(content.parameters["fit_intercept"])
    weights = np.column_stack([content.arrays["intercept"]] * has_intercept + [content.arrays["coef"]])
    names, is_of_classes = content.coefficients, len(weights) > 1
    if content.labels is not None:
        names = tuple(score_names(content.labels, names))
    return {
        **{key: math.nan if value is None else value for key, value in metadata["inference"].items()},
        "names": names,
        "estimate": (weights[1:] - weights[0] if is_of_classes else weights).ravel(),
        "family": Multinomial() if is_of_classes else family,
        "n_scores": max(len(weights) - 1, 1),
        "link": link.name,
        "n_rows": float(metadata["data"]["n_rows"]),
        "sum_weight": float(metadata["data"]["sum_weight"]),
        "has_intercept": has_intercept,
    }


def _inference_problems(content: Content) -> Iterator[Problems]:
    """Standard errors of what is no maximum likelihood, or deviances that contradict the objective or each other."""
    metadata = content.metadata
    stored = metadata["certificate"]
    if metadata["inference"] is None:
        return
    problems = {
        "under a penalty": metadata["solution"]["alpha"] > 0,
        "within bounds": metadata["penalty"]["has_bounds"],
        "of redundant columns": stored["rank"] < len(content.columns),
        "of a fit with a fault": stored["fault"] != "",
        "of weighted classes": metadata.get("class_weight") is not None,
    }
    yield {f"standard errors {problem}": is_so for problem, is_so in problems.items()}
    mass = metadata["inference"]["mean_information"] if content.parameters["fit_intercept"] else None
    yield from inverse_problems(content.arrays["inference.inverse"], mass, stored["condition"])
    yield _deviance_problems(content)


def _deviance_problems(content: Content) -> Problems:
    metadata, data, certificate = content.metadata, content.metadata["data"], content.metadata["certificate"]
    weight, tolerance = data["sum_weight"], certificate["tolerance"]
    deviance, null, pearson = (metadata["inference"][key] for key in ("deviance", "null_deviance", "pearson"))
    objective = float(content.arrays["history"][-1, 0])
    is_best = certificate["value"] <= tolerance and not certificate["is_local"]
    # Scores that cancel a large intercept, or columns that nearly repeat others, have fewer digits than is asked here.
    lost = UNIT * max(float(np.abs(content.arrays["intercept"]).max()), certificate["condition"])
    is_last = content.parameters["solver"] not in STOCHASTIC and tolerance < DEFAULT_TOLERANCES[1] and lost < SAME
    size = abs(deviance) + (0.0 if null is None else null)
    terms = weight * (1 + abs(data["target_mean"]) + data["target_sd"])  # what a deviance is a small difference of
    slack = (tolerance + NEAR) * size + (ROUNDINGS * UNIT * terms if math.isfinite(terms) else math.inf)
    return {
        "a deviance below 0": deviance < -slack,
        "a deviance that is not that of the objective": is_best
        and is_last
        and abs(deviance - 2 * weight * objective) > slack,
        "a deviance above that of the null model": is_best and null is not None and deviance > null + slack,
        "a Pearson sum that is not the sum of squares": read_law(metadata)[0].name == "gaussian"
        and not agree(pearson, deviance, NEAR),
    }


def _class_problems(content: Content) -> Iterator[Problems]:
    """Codes 0 to K - 1 of another spread than they can have."""
    metadata, n_classes = content.metadata, content.metadata["labels"]["count"]
    yield {"fewer than two classes": n_classes < 2}
    mean, spread = metadata["data"]["target_mean"], min(metadata["data"]["target_sd"], float(n_classes))
    largest = mean * (n_classes - 1 - mean)  # Bhatia and Davis; two codes reach it
    yield {
        "codes of classes with another spread": not 0 <= mean <= n_classes - 1
        or spread**2 > largest * (1 + SAME) + SAME
        or (n_classes == 2 and not abs(spread**2 - largest) <= SAME),
    }


# What all of them have


def solver_name(model: Model) -> str:
    """What a file calls the solver; an instance is code, which a file never holds."""
    if isinstance(model.solver, str):
        return model.solver
    from certifit.minimise.minimum import name_of

    name = name_of(model.solver)
    text = ascii(model.solver)
    raise ValueError(
        f"solver={text if len(text) <= 60 else text[:57] + '...'} is an object, and a model file has solvers by name. "
        f"The weights are found: model.set_params(solver={(name if name in SOLVERS else 'auto')!r}), then save. "
        "A later fit of the loaded model takes the steps of that name."
    )


def start_word(model: Model) -> str | int | None:
    """What a file says of the start; the numbers of an array are an array of it."""
    if model.start is None or isinstance(model.start, str):
        return None if model.start is None else str(model.start)
    return int(model.start) if isinstance(model.start, Integral) else "given"


def start_array(model: Model) -> Floats:
    """The numbers of a start, a row per score."""
    return np.atleast_2d(np.asarray(model.start, dtype=np.float64))


def asked_start(model: Model) -> str | int | Floats | None:
    """The start in a form that compares."""
    return start_array(model) if start_word(model) == "given" else start_word(model)


def _given_start(content: Content) -> str | int | Floats | None:
    """The parameter start; of files without one, None."""
    word: str | int | None = content.metadata.get("start")
    if word != "given":
        return word
    numbers: Floats = content.arrays["start"]
    return numbers if len(numbers) > 1 else numbers[0]


def _certificate(content: Content) -> dict[str, object]:
    return {"n_columns": len(content.columns), "names": content.coefficients}


def _problems(content: Content) -> Iterator[Problems]:
    metadata, arrays, p = content.metadata, content.arrays, len(content.columns)
    stored, iterations = metadata["certificate"], arrays["history.iterations"]
    yield {
        f"rank {stored['rank']} of {p} columns": stored["rank"] > p,
        "more dependent columns than the rank leaves": len(stored["dependent"]) > p - stored["rank"],
        "an intercept without fit_intercept": not content.parameters["fit_intercept"] and arrays["intercept"].any(),
        "iterations that do not follow each other": iterations[0] < 0 or (iterations[1:] <= iterations[:-1]).any(),
    }
    factors = arrays.get("class_weight", np.ones(1))
    alpha = metadata["solution"]["alpha"]
    yield alpha_problems(content.parameters["alpha"], alpha, metadata["data"]["sum_weight"], factors)


def _show_roles(content: Content) -> Shown:
    return {"model": {role: content.metadata.get(role) for role in ("offset", "exposure")}}


def _sizes(metadata: Metadata) -> dict[str, int]:
    n_classes = metadata["labels"]["count"] if "labels" in metadata else 2
    return {"C": 1 if n_classes == 2 else n_classes, "m": metadata["n_iterations"]}


SCORES = (
    PENALISED
    | MORE_HISTORY
    | Record(
        fields={
            "certificate": {
                **fields_at(
                    "certificate_.*",
                    {
                        **CLAIM,
                        "condition": MAGNITUDE,
                        "dependent": TEXTS,
                        "fault": TEXT,
                        "is_local": FLAG,
                        "rank": COUNT,
                    },
                ),
                **LITERAL,
            },
            **TARGET,
            **TARGET_NAME,
            "inference": Maybe("inference_", {key: _number_or_none(key) for key in INFERENCE}),
            "n_iterations": LENGTH_OF_HISTORY,
            "offset": Field(OrNull(TEXT), "offset_name_"),  # what it was called; null: there was none
            "solution": fields_at("*_", {"alpha": NUMBER_FROM_0}),
            "start": Field(START, get=start_word, is_left_out=True),
        },
        arrays={
            "start": Array(("C", "k"), get=start_array, when=lambda metadata: metadata.get("start") == "given"),
            "coef": Array(("C", "p"), get=lambda model: np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))),
            "intercept": Array(("C",), get=lambda model: np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))),
            "history": Array(("m", "3"), may_be_infinite=True, get=history_array),
            "history.iterations": Array(
                ("m",), "int64", get=lambda model: [int(row["iteration"]) for row in model.history_]
            ),
            "inference.inverse": Array(
                ("q", "q"), at="inference_.inverse", when=lambda metadata: metadata["inference"] is not None
            ),
        },
        objects={
            "certificate_": Object("models.glm.certificate:GlmCertificate", _certificate),
            "inference_": Object("inference.glm:GlmInference", _inference),
        },
        derived={
            "rank_": lambda content: content.metadata["certificate"]["rank"],
            "condition_": lambda content: content.metadata["certificate"]["condition"],
            "exposure_name_": lambda content: content.metadata.get("exposure"),
            "history_": lambda content: history_rows(
                content.arrays["history"],
                content.arrays["history.iterations"].tolist(),
                more=more_columns(content),
            ),
        },
        named={"solver": Field(one_of(*SOLVERS), get=solver_name)},
        settings={"start": Setting(asked_start, _given_start)},
        switches=("standardize",),
        sizes=(_sizes,),
        checks=(_problems, fault_problems, _inference_problems),
        shown=(_show_roles,),
        counts="weighted",
    )
    | PENALTY
    | Record(shown=(show_coefficients,))
)
MEAN = SCORES | Record(
    fields={"exposure": Field(OrNull(TEXT), "exposure_name_")},
    derived={
        "coef_": lambda content: content.arrays["coef"][0],
        "intercept_": lambda content: float(content.arrays["intercept"][0]),
    },
)
LOGISTIC = (
    SCORES
    | LABELLED
    | CLASS_WEIGHT
    | Record(
        derived={
            "coef_": lambda content: content.arrays["coef"],
            "intercept_": lambda content: content.arrays["intercept"],
        },
        checks=(_class_problems,),
    )
)
GLM = MEAN | Record(
    fields={
        "law": {
            "link": Field(OrNull(TEXT), get=lambda model: _law_of(model)["link"]),
            "name": Field(one_of(*NAMES), get=lambda model: _law_of(model)["name"]),
            "parameter": Field(OrNull(NUMBER), get=lambda model: _law_of(model)["parameter"]),
        }
    },
    settings={
        "family": Setting(_law_of, _given_family),
        "link": Setting(lambda model: _law_of(model)["link"], lambda content: content.metadata["law"]["link"]),
        "penalty": Setting(_no_penalty, lambda content: None),
    },
    checks=(_law_problems,),
    told=(_told_law,),
)
