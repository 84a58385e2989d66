"""The proof of a model that another library fitted, in its own objective."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.models.certificate import Certificate
from certifit.models.learner import Params
from certifit.models.peers.convert import peer_of
from certifit.models.peers.table import Sizes
from certifit.statistics.residual import UNIT

MOST_NAMED = 3  # coefficients that are named
MOST_DIGITS = 15


@dataclass(frozen=True)
class Audit:
    """What is proven of somebody else's fit. str() of it is plain words.

    name: of the class; objective: what it minimises, in its own units; converted: the same model in certifit, fitted
    to the same rows: its optimum; certificate: that of the solution audited. names, coefficients, optimum, digits:
    every coefficient that was audited, that of the optimum, and to how many digits they agree; none where the optimum
    itself is not proven or not unique, or the model has no coefficients. unit: of the certificate's value.
    advice: what to do where it does not hold.
    """

    name: str
    objective: str
    converted: BaseEstimator
    certificate: Certificate
    names: tuple[str, ...] = ()
    coefficients: tuple[float, ...] = ()
    optimum: tuple[float, ...] = ()
    digits: tuple[int, ...] = ()
    unit: str = "(relative)"
    advice: str = ""

    @property
    def holds(self) -> bool:
        """Whether the fit is proven to be at its optimum within the tolerance."""
        return self.certificate.holds

    def sentences(self) -> list[str]:
        """The audit in words."""
        return [
            self._first(),
            *self._about_digits(),
            f"Its objective: {self.objective}. In certifit: {self.converted!r}.",
        ]

    def _first(self) -> str:
        value = self.certificate.value
        if not np.isfinite(value):
            return f"Nothing is proven of this {self.name}: {self.certificate.sentences()[0]}"
        if self.holds:
            return f"This {self.name} is at its optimum: its objective is proven to be within {value:.1e} {self.unit}."
        return (
            f"This {self.name} stopped above its optimum: its objective can be up to {value:.1e} {self.unit} above the "
            f"best possible. Asked was {self.certificate.tolerance:.0e}. {self.advice}"
        )

    def _about_digits(self) -> list[str]:
        if not self.digits:
            return []
        worst = sorted(range(len(self.digits)), key=lambda j: self.digits[j])[:MOST_NAMED]
        if self.digits[worst[0]] >= 6:
            return [f"Every coefficient has at least {self.digits[worst[0]]} right digits."]
        return [f"Farthest from the optimum: {'; '.join(self._about(j) for j in worst if self.digits[j] < 6)}."]

    def _about(self, j: int) -> str:
        """One coefficient in words."""
        value, best = self.coefficients[j], self.optimum[j]
        if self.digits[j] > 0:
            return f"{self.names[j]} has {self.digits[j]} right digit{'s' * (self.digits[j] > 1)}"
        wrong = ", its first digit is wrong" if f"{value:.0e}" != f"{best:.0e}" else ""
        return f"{self.names[j]} is {value:.3g} where the optimum has {best:.3g}{wrong}"

    def __str__(self) -> str:
        return "\n".join(self.sentences())


ITERATED = "Give it a smaller tol and a larger max_iter, scale the columns, or use the model named below."
DIRECT = "Scale the columns, leave out those that nearly repeat others, or use the model named below."


def audit(
    model: BaseEstimator,
    X: UserRows,
    y: UserTarget = None,
    sample_weight: UserWeights = None,
    *,
    tol: float | None = None,
) -> Audit:
    """The certificate of a fitted model of scikit-learn, statsmodels or glum, computed from its coefficients alone.

    model : a fitted LinearRegression, Ridge, Lasso, ElasticNet, HuberRegressor, LogisticRegression, PoissonRegressor,
        GammaRegressor, PCA, KernelRidge, SVC, SVR, LinearSVC, LinearDiscriminantAnalysis or
        QuadraticDiscriminantAnalysis of scikit-learn, the results of OLS, Logit or GLM of statsmodels, or a
        GeneralizedLinearRegressor of glum
    X, y, sample_weight : what it was fitted to; for statsmodels the columns as they were given, with the constant
    tol : the relative excess that counts as converged; None is the default of the model of certifit

    The same model is fitted here too: its optimum is what the digits of the coefficients are counted against.

    >>> import numpy as np
    >>> import certifit as cf
    >>> from sklearn.linear_model import Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3)) @ [[1, 1, 0], [0, 0.1, 0], [0, 0, 1]]
    >>> stopped = Lasso(0.001, max_iter=2, tol=0).fit(X, X @ [1.0, -1.0, 0.5])
    >>> cf.audit(stopped, X, X @ [1.0, -1.0, 0.5]).holds
    False
    """
    peer, name = peer_of(model)
    _refuse_unfitted(model, name)
    ours = peer.ours(_parameters(model), _sizes(X, sample_weight))
    if tol is not None:
        ours.set_params(tol=tol)
    roles = {} if sample_weight is None else {"sample_weight": sample_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the audit says it
        ours.fit(X, y, **roles)
    _refuse_other_labels(model, ours, name)
    audited = copy.copy(ours)
    peer.place(model, audited, X)
    certificate = audited.certify(X, y, **roles)
    if not np.isfinite(certificate.value):
        certificate = replace(certificate, value=_above_optimum(audited, ours, X, y, roles))
    is_direct = hasattr(model, "get_params") and model.get_params(deep=False).get("max_iter") is None
    return Audit(
        name, peer.objective, ours, certificate, *_compared(audited, ours), peer.unit, DIRECT if is_direct else ITERATED
    )


def _above_optimum(audited: BaseEstimator, ours: BaseEstimator, X: UserRows, y: UserTarget, roles: Params) -> float:
    """A bound on the relative excess of a point so far off that no bound of its own exists, by the optimum proven here.

    No objective is below f (1 - v), f that of our fit and v its certificate; inf where there is none.
    """
    proof = ours.certificate_
    task = ours._task_on(X, y, **roles)
    if not proof.holds or proof.is_exact_fit or not hasattr(task, "evaluate") or not getattr(task, "is_smooth", True):
        return float(np.inf)
    here, best = (float(task.evaluate(task.to_point(model._state())).value) for model in (audited, ours))
    rounding = (ours.data_["n_rows"] + 100) * 4 * UNIT * (here + best)
    return (here - best * (1 - proof.value) + rounding) / here if here > best else float(np.inf)


def _refuse_unfitted(model: BaseEstimator, name: str) -> None:
    if not any(hasattr(model, fitted) for fitted in ("coef_", "params", "components_", "dual_coef_", "means_")):
        raise ValueError(f"This {name} is not fitted. Call fit first.")
    for role in ("offset", "exposure", "freq_weights", "var_weights"):
        values = getattr(getattr(model, "model", None), role, None)
        if values is not None and np.ptp(np.asarray(values, dtype=np.float64)) > 0:
            raise ValueError(f"This {name} was fitted with {role}, which an audit does not take.")
    if np.ndim(getattr(model, "coef_", 0)) == 2 and not hasattr(model, "classes_") and len(model.coef_) > 1:
        raise ValueError(f"This {name} has several targets. Audit one target at a time.")


def _refuse_other_labels(model: BaseEstimator, ours: BaseEstimator, name: str) -> None:
    if hasattr(model, "classes_") and not np.array_equal(np.asarray(model.classes_), ours.classes_):
        raise ValueError(f"The labels y are not those that this {name} was fitted to: {np.asarray(model.classes_)}.")


def _parameters(model: BaseEstimator) -> Params:
    """Those of the fit; of statsmodels the names of family and link."""
    if hasattr(model, "get_params"):
        params = dict(model.get_params(deep=False))
        return params | ({"n_components": model.n_components_} if hasattr(model, "n_components_") else {})
    family = getattr(model.model, "family", None)
    if family is None:
        return {}
    return {"family": type(family).__name__, "link": type(family.link).__name__}


def _sizes(X: UserRows, sample_weight: UserWeights) -> Sizes:
    if isinstance(X, Source):
        raise TypeError("An audit takes the arrays or the frame that the model was fitted to. Got a scan.")
    shape: tuple[int, ...] = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    total = float(shape[0]) if sample_weight is None else float(np.sum(np.asarray(sample_weight, dtype=np.float64)))
    return Sizes(total, int(shape[1]) if len(shape) > 1 else None, _variance(X))


def _variance(X: UserRows) -> float | None:
    """Of all values; None where they are not all numbers."""
    if sp.issparse(X):
        rows = sp.csr_array(X)
        return float(rows.multiply(rows).mean() - rows.mean() ** 2)
    try:
        return float(np.var(np.asarray(X, dtype=np.float64)))
    except (TypeError, ValueError):
        return None


Compared = tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...], tuple[int, ...]]


def _compared(audited: BaseEstimator, ours: BaseEstimator) -> Compared:
    """Names, audited values, values of the optimum and right digits of the coefficients."""
    if not hasattr(ours, "fit_intercept") or not hasattr(ours, "coef_"):
        return (), (), (), ()
    if not ours.certificate_.holds or _is_shared(ours):
        return (), (), (), ()
    columns = list(ours.column_names_)
    values, best = np.atleast_2d(audited.coef_), np.atleast_2d(ours.coef_)
    labels = [""] if len(values) == 1 else [f" for class {label}" for label in ours.classes_]
    names = [f"{column}{label}" for label in labels for column in columns]
    if ours.fit_intercept and len(labels) == 1:
        values = np.column_stack([values, np.ravel(audited.intercept_)])
        best = np.column_stack([best, np.ravel(ours.intercept_)])
        names.append("the intercept")
    values, best = values.ravel(), best.ravel()
    return tuple(names), tuple(values.tolist()), tuple(best.tolist()), _right_digits(values, best)


def _is_shared(ours: BaseEstimator) -> bool:
    """Whether coefficients can move without a change of the objective: columns that repeat others, no penalty."""
    certificate = ours.certificate_
    is_short = certificate.rank is not None and certificate.n_columns is not None
    return bool(is_short and certificate.rank < certificate.n_columns and not ours.alpha_)


def _right_digits(values: Array, best: Array) -> tuple[int, ...]:
    """floor(-log10 of the relative error), from 0 to 15; a coefficient of 0 is right or wrong."""
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = -np.log10(np.abs(values - best) / np.abs(best))
    digits = np.where(values == best, MOST_DIGITS, np.where(best == 0, 0.0, digits))
    return tuple(int(count) for count in np.clip(np.floor(digits), 0, MOST_DIGITS))
