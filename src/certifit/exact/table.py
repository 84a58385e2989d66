"""The exact certificates that rows of the table of models name, and the one way to ask for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from certifit.exact.closed_forms import CountFit, GaussianFit
from certifit.exact.huber import HuberFit
from certifit.exact.losses import NoExactForm, loss_in_balls
from certifit.exact.pca import ComponentsFit
from certifit.exact.penalised import Penalty, ScoreFit
from certifit.exact.proof import Asked, ExactProof, ExactRows, nothing_proven
from certifit.exact.softmax import SoftmaxFit
from certifit.mathematics.losses.scores import Squared
from certifit.mathematics.losses.user import Loss
from certifit.models.adapter import learner_of
from certifit.models.certificate import Certificate
from certifit.models.discriminant.likelihood import LikelihoodCertificate
from certifit.models.pca.certificate import PCACertificate
from certifit.models.table import LEARNERS

Prover = Callable[[Any, ExactRows, Asked], ExactProof]


def exact_proof(model: Any, rows: ExactRows, certificate: Certificate) -> ExactProof:
    """The certificate of a fitted model in ball arithmetic, on the rows of `rows_of(model.mapped_again(source))`.

    certificate: the one in float64. Where it treats columns as exact combinations of others (`literal`), the value is
    proven without these columns, as it claims, and `literal` over all weights.
    """
    prove = prover_of(model)
    if isinstance(certificate, LikelihoodCertificate) and certificate.fault:
        return nothing_proven(certificate.theorem, certificate.fault)
    is_mended = "a millionth" in getattr(certificate, "kind", "")
    is_still = isinstance(certificate, PCACertificate) and not certificate.rank
    asked = Asked(claims_exact_fit=certificate.is_exact_fit, is_mended=is_mended, is_still=is_still)
    proof = prove(model, rows, asked)
    if certificate.literal is None:
        return proof
    restricted = prove(model, rows, replace(asked, aside=set_aside(certificate, rows.names)))
    return replace(restricted, literal=(proof.lower, proof.upper))


def prover_of(model: Any) -> Prover:
    """The exact certificate of a model, or a refusal."""
    learner = learner_of(model)
    if learner.exact is None:
        known = ", ".join(row.name for row in LEARNERS.values() if row.exact is not None)
        raise NoExactForm(f"{learner.name} has no exact certificate. These have one: {known}.")
    if isinstance(model.get_params(deep=False).get("family"), Loss):
        raise NoExactForm("A loss of your own is not known as a formula, so it has no exact certificate.")
    prove = PROVERS[learner.exact]
    if prove is _generalised:
        loss_in_balls(model._loss())
    return prove


def set_aside(certificate: Certificate, names: tuple[str, ...]) -> frozenset[int]:
    """Places of the columns that the relations of a certificate express by others: "x3 = x0 + 2 x1" sets x3 aside."""
    reasons = set()
    for relation in certificate.dependent:
        matching = [j for j, name in enumerate(names) if relation.startswith(f"{name} = ")]
        if matching:
            reasons.add(max(matching, key=lambda j: len(names[j])))
    return frozenset(reasons)


def _least_squares(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    penalty = Penalty.ridge(
        float(model.alpha_), rows.n_columns, bool(model.get_params(deep=False).get("standardize", False))
    )
    return ScoreFit(rows.dense(), Squared(), penalty, model.fit_intercept, model.coef_, model.intercept_, asked).proof()


def _sparse(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    s = model._strengths(list(rows.names), float(model.alpha_))
    penalty = Penalty(s.alpha, s.l1_ratio, s.factors, s.lower, s.upper, bool(model.standardize))
    return ScoreFit(rows.dense(), Squared(), penalty, model.fit_intercept, model.coef_, model.intercept_, asked).proof()


def _generalised(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    if model.get_params(deep=False).get("penalty") is not None:
        raise NoExactForm(f"There is no exact certificate with {model.penalty.name}: its functions are floating point.")
    s = model._strengths(list(rows.names), float(model.alpha_))
    standardize = bool(model.standardize)
    penalty = Penalty(s.alpha, s.l1_ratio, s.factors, s.lower, s.upper, standardize)
    w, b = model._weights().coef, model._weights().intercept
    return ScoreFit(rows.dense(), model._loss(), penalty, bool(model.fit_intercept), w, b, asked).proof()


def _logistic(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    labelled = rows.dense().of_classes()
    if len(model.classes_) == 2:
        return _generalised(model, labelled, asked)
    s = model._strengths(list(rows.names), float(model.alpha_))
    penalty = Penalty(s.alpha, s.l1_ratio, s.factors, s.lower, s.upper, bool(model.standardize))
    if s.alpha * s.l1_ratio > 0 or np.isfinite([s.lower, s.upper]).any():
        raise NoExactForm(
            f"An L1 penalty or bounds of {len(model.classes_)} classes have no exact certificate; of two classes, or "
            "with squares alone, they have one. The certificate in float64 is a proof too."
        )
    fit_intercept = bool(model.fit_intercept)
    return SoftmaxFit(labelled, penalty, fit_intercept, model.coef_, model.intercept_, asked).proof()


def _huber(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    return HuberFit(rows.dense(), model, asked).proof()


def _gaussian(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    return GaussianFit(rows.dense().of_classes(), model, asked).proof()


def _counts(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    return CountFit(rows.of_classes(), model).proof()


def _components(model: Any, rows: ExactRows, asked: Asked) -> ExactProof:
    return ComponentsFit(rows.dense(), model, asked).proof()


PROVERS: dict[str, Prover] = {
    "least_squares": _least_squares,
    "sparse": _sparse,
    "huber": _huber,
    "logistic": _logistic,
    "scores": _generalised,
    "gaussian": _gaussian,
    "counts": _counts,
    "components": _components,
}
