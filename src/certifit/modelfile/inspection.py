"""Inspect: what a model file holds, told by its reader alone. No class is built, no row is read, nothing is proven.

Every check of `load` is made, so what is shown is what a load would give. A linear model without a table or a
polynomial needs neither scikit-learn nor the models.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from certifit.exact.kinds import kind_of_proof
from certifit.modelfile import container, laws
from certifit.modelfile.disk import MAX_FILE, ModelFileError, Path, read_bytes, show
from certifit.modelfile.family import Metadata, Parts
from certifit.modelfile.files import check_metadata
from certifit.modelfile.registry import entry_named


@dataclass(frozen=True)
class Inspection:
    """What a model file says, in plain Python types. See `to_dict` for JSON.

    A model has coefficients, classes or components, whichever its kind has; the others are None. So is a target
    that there is not.
    """

    file: dict[str, Any]
    model: dict[str, Any]
    target: str | None
    features: dict[str, Any]
    encoder: dict[str, Any] | None
    coefficients: dict[str, Any] | None
    classes: dict[str, Any] | None
    components: dict[str, Any] | None
    certificate: dict[str, Any]
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; infinity, which JSON does not have, is the text 'infinity'."""
        plain: dict[str, Any] = _plain({field.name: getattr(self, field.name) for field in fields(self)})
        return plain


def inspect(path: Path, *, max_bytes: int = MAX_FILE) -> Inspection:
    """What the model file at a path holds; a ModelFileError for anything but a sound file.

    >>> import tempfile
    >>> import certifit as cf
    >>> from certifit.modelfile import inspect
    >>> model = cf.Ridge(alpha=1.0).fit([[1.0, 0.0], [2.0, 1.0], [4.0, 3.0]], [2.0, 3.0, 7.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cf.save(model, f"{folder}/m.certifit")
    ...     found = inspect(f"{folder}/m.certifit")
    >>> found.model["class"], found.coefficients["count"], found.data["n_rows"]
    ('Ridge', 2, 3)
    """
    data = read_bytes(path, max_bytes)
    try:
        metadata, arrays = container.from_bytes(data)
        entry = check_metadata(metadata)
        family = entry.family
        parts = family.read(metadata, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{show(path)} is not a sound model file: {error}") from None
    own = family.describe(metadata, arrays, parts)
    return Inspection(
        file=_file(data, metadata),
        model=_model(metadata) | own.get("model", {}),
        target=metadata.get("target"),
        features=_features(metadata),
        encoder=_encoder(metadata, parts),
        coefficients=own.get("coefficients"),
        classes=own.get("classes"),
        components=own.get("components"),
        certificate=_certificate(entry.learner.name, parts),
        data={**metadata["data"], **{key: metadata[key] for key in ("n_iterations",) if key in metadata}},
    )


def _file(data: bytes, metadata: Metadata) -> dict[str, Any]:
    return {
        "n_bytes": len(data),
        "format": metadata["format"],
        "library": metadata["library"],
        "sha256": hashlib.sha256(data).hexdigest(),
        **container.digests(data),
    }


_MEAN = "sum_i weight_i"
_RESIDUAL = "(y_i - b - x_i'w)"
_SQUARES = f"{_MEAN} {_RESIDUAL}^2 / (2 {_MEAN})"


def _factor(metadata: Metadata, spread: str) -> str:
    has_factors = metadata.get("penalty", {}).get("has_factors", False)
    names = {"factors": has_factors, spread: metadata["parameters"].get("standardize", False)}
    return "".join(f"{name} * " for name, is_there in names.items() if is_there)


def _within(metadata: Metadata) -> str:
    return " within bounds" if metadata["penalty"]["has_bounds"] else ""


def _ridge(metadata: Metadata) -> str:
    return f"{_SQUARES} + {metadata['solution']['alpha']:g}/2 {_factor(metadata, 'sd^2')}|w|^2"


def _lasso(metadata: Metadata) -> str:
    return f"{_SQUARES} + {metadata['solution']['alpha']:g} {_factor(metadata, 'sd')}|w|_1{_within(metadata)}"


def _elastic_net(metadata: Metadata) -> str:
    ratio = float(metadata["parameters"]["l1_ratio"])
    first, second = _factor(metadata, "sd"), _factor(metadata, "sd^2/sd_y")
    mixed = f"({ratio:g} {first}|w|_1 + {1 - ratio:g}/2 {second}|w|^2)"
    return f"{_SQUARES} + {metadata['solution']['alpha']:g} {mixed}{_within(metadata)}"


def _huber(metadata: Metadata) -> str:
    alpha, is_joint = metadata["parameters"]["alpha"], metadata["parameters"]["scale"] == "joint"
    penalty = f" + {alpha:g}/2 |w|^2" if alpha else ""
    if is_joint:
        return f"{_MEAN} s h({_RESIDUAL} / s) / {_MEAN} + s/2{penalty} over w, b and s > 0"
    return f"{_MEAN} s^2 h({_RESIDUAL} / s) / {_MEAN}{penalty} at s = {metadata['robust']['scale']:g}"


def _loss(metadata: Metadata) -> str:
    """What h is, where the objective names it."""
    if "robust" not in metadata:
        return ""
    delta = float(metadata["parameters"]["delta"])
    return f", h(z) = z^2/2 if |z| <= {delta:g} else {delta:g} |z| - {delta * delta / 2:g}"


_SUM = "sum_i weight_i log"
_COVARIANCES = {"shared": "one covariance S", "class": "covariances S_k", "diagonal": "diagonal S_k"}


def _discriminant(metadata: Metadata) -> str:
    given = metadata["parameters"]
    unit = " in standard deviations" if given["standardize"] else ""
    shrunk = f", S shrunk by {given['shrinkage']:g}{unit}" if given["shrinkage"] else ""
    return f"{_SUM}(prior_k N(x_i; m_k, S)), k = y_i, {_COVARIANCES[given['covariance']]}{shrunk}"


def _bernoulli(metadata: Metadata) -> str:
    more = f"{metadata['parameters']['alpha']:g} rows more of each class with and without each column"
    return f"{_SUM}(prior_k prod_j p_jk^x_ij (1 - p_jk)^(1 - x_ij)), k = y_i, and {more}"


def _multinomial(metadata: Metadata) -> str:
    more = f"each word {metadata['parameters']['alpha']:g} times more in each class"
    return f"{_SUM}(prior_k prod_j p_jk^x_ij), k = y_i, and {more}"


def _gaussian(metadata: Metadata) -> str:
    return f"{_SUM}(prior_k prod_j N(x_ij; theta_kj, var_kj)), k = y_i"


def _pca(metadata: Metadata) -> str:
    z = "(x - mean)" if metadata["parameters"]["center"] else "x"
    scale = " / scale" if metadata["parameters"]["standardize"] else ""
    return f"trace V'AV over V'V = I, A = mean of z z', z = {z}{scale}"


def _scores(term: str) -> Callable[[Metadata], str]:
    """The mean of a term, and the penalty of a model of scores."""

    def objective(metadata: Metadata) -> str:
        given, ratio = metadata["parameters"], float(metadata["parameters"]["l1_ratio"])
        first, second = _factor(metadata, "sd"), _factor(metadata, "sd^2")
        parts = {f"{ratio:g} {first}|w|_1": ratio, f"{1 - ratio:g}/2 {second}|w|^2": 1 - ratio}
        mixed = " + ".join(part for part, share in parts.items() if share)
        strength = "1/sum_i weight_i" if given["alpha"] is None else f"{given['alpha']:g}"
        own = "" if given["alpha"] == 0 else f" + {strength} ({mixed})"
        many = "[ log sum_k e^z_ik - z_ik of its own class ]"
        law = metadata.get("law")
        shown = many if metadata.get("labels", {"count": 2})["count"] > 2 else term
        if law is not None:
            link = law["link"] or laws.read_law(metadata)[1].name
            shown = f"d(y_i, h(z_i)) / 2, d the {law['name']} deviance, h of the {link} link,"
        return f"{_MEAN} {shown} / {_MEAN}{own}{_within(metadata)}"

    return objective


_MINIMISED, _MAXIMISED = "minimised", "maximised"
# What a model optimises: what `objective` says of a model, without importing one.
OBJECTIVES: Mapping[str, tuple[str, Callable[[Metadata], str]]] = {
    "linear_regression": (_MINIMISED, lambda metadata: _SQUARES),
    "ridge": (_MINIMISED, _ridge),
    "lasso": (_MINIMISED, _lasso),
    "elastic_net": (_MINIMISED, _elastic_net),
    "huber_regressor": (_MINIMISED, _huber),
    "gaussian_discriminant": (_MAXIMISED, _discriminant),
    "gaussian_nb": (_MAXIMISED, _gaussian),
    "bernoulli_nb": (_MAXIMISED, _bernoulli),
    "multinomial_nb": (_MAXIMISED, _multinomial),
    "logistic_regression": (_MINIMISED, _scores("[ log(1 + e^z_i) - y_i z_i ]")),
    "poisson_regressor": (_MINIMISED, _scores("[ e^z_i - y_i z_i ]")),
    "gamma_regressor": (_MINIMISED, _scores("[ y_i e^-z_i + z_i ]")),
    "glm": (_MINIMISED, _scores("")),
    "perceptron": (
        "looked for",
        lambda metadata: f"w, b with y_i (b + x_i'w) > {metadata['parameters']['delta']:g} for all rows",
    ),
    "pca": (_MAXIMISED, _pca),
}


def _model(metadata: Metadata) -> dict[str, Any]:
    aim, objective = OBJECTIVES[metadata["estimator"]]
    without = "" if metadata["parameters"].get("fit_intercept", True) else " with b = 0"
    return {
        "class": entry_named(metadata["estimator"]).learner.name,
        "estimator": metadata["estimator"],
        "objective": f"{aim}: {objective(metadata)}{without}{_loss(metadata)}",
        "parameters": metadata["parameters"],
        "basis": metadata.get("basis"),
    }


def _features(metadata: Metadata) -> dict[str, Any]:
    return {"count": metadata["features"]["count"], "names": metadata["features"]["names"]}


def _encoder(metadata: Metadata, parts: Parts) -> dict[str, Any] | None:
    """How a table is read, and what the fit noted about its columns."""
    if parts.maps.fitted_encoder is None:
        return None
    state, _ = parts.maps.fitted_encoder.to_state()
    kinds = {column["name"]: column["kind"] for column in state["columns"]}
    return {"parameters": metadata["encoder"]["parameters"], "kinds": kinds, "notes": list(state["notes"])}


def _certificate(model_name: str, parts: Parts) -> dict[str, Any]:
    certificate = parts.certificate
    keys = ("claim", "theorem", "value", "tolerance", "rounding")
    said = {key: getattr(certificate, key) for key in keys} | {"kind": kind_of_proof(model_name, certificate)}
    # Whoever writes a file can write any certificate: only `verify` proves one.
    return {**said, "holds": certificate.holds, "is_verified": False, "sentences": certificate.sentences()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return "infinity" if isinstance(value, float) and math.isinf(value) else value
