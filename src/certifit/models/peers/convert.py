"""Unfitted models of scikit-learn as models of certifit with the same optimum, and back."""

from __future__ import annotations

from importlib import import_module

from sklearn.base import BaseEstimator

from certifit.models.adapter import learner_of, origins_of
from certifit.models.peers.discriminants import DISCRIMINANTS
from certifit.models.peers.margins import MARGINS
from certifit.models.peers.table import GLUM, SKLEARN, STATSMODELS, Peer, Sizes

PEERS: dict[str, dict[str, Peer]] = {
    "sklearn": SKLEARN | MARGINS | DISCRIMINANTS,
    "statsmodels": STATSMODELS,
    "glum": GLUM,
}
# Of scikit-learn's models that are not among its linear ones.
PLACES = {"PCA": "decomposition"} | dict.fromkeys(MARGINS, "svm")


def from_sklearn(estimator: BaseEstimator, n_rows: float | None = None) -> BaseEstimator:
    """The model of certifit whose optimum is that of an unfitted model of scikit-learn (or glum), in the right units.

    Ridge(alpha=a) is Ridge(a / n) here, LogisticRegression(C=C) is LogisticRegression(1 / (C n)), HuberRegressor(
    epsilon=e, alpha=a) is HuberRegressor(e, a / n). Solver, tol and max_iter do not change the optimum and are dropped.

    n_rows : the number of rows, or the sum of weights, of the fit; needed where the unit depends on it.

    >>> import certifit as cf
    >>> from sklearn.linear_model import LogisticRegression
    >>> cf.from_sklearn(LogisticRegression(C=10.0), n_rows=200)
    LogisticRegression(alpha=0.0005)
    """
    peer, _ = peer_of(estimator)
    return peer.ours(estimator.get_params(deep=False), Sizes(n_rows))


def to_sklearn(model: BaseEstimator, n_rows: float | None = None) -> BaseEstimator:
    """The model of scikit-learn whose optimum is that of an unfitted model of certifit: the inverse of from_sklearn.

    n_rows : as for from_sklearn. A parameter that scikit-learn's model does not have is refused.

    >>> import certifit as cf
    >>> cf.to_sklearn(cf.Ridge(alpha=0.01), n_rows=200)
    Ridge(alpha=2.0)
    """
    learner = learner_of(model)
    peer = PEERS["sklearn"].get(learner.name) if learner.is_ours else None
    if peer is None or peer.theirs is None:
        legal = ", ".join(name for name, row in PEERS["sklearn"].items() if row.theirs is not None)
        raise TypeError(f"{type(model).__name__} has no counterpart in scikit-learn. Those that have: {legal}.")
    place = import_module(f"sklearn.{PLACES.get(learner.name, 'linear_model')}")
    converted: BaseEstimator = getattr(place, learner.name)(**peer.theirs(model.get_params(deep=False), Sizes(n_rows)))
    return converted


def peer_of(estimator: object) -> tuple[Peer, str]:
    """The row of a model of another library, and its name there."""
    origins = origins_of(getattr(estimator, "model", estimator))
    known = [(PEERS[library][name], name) for library, name in origins if name in PEERS.get(library, {})]
    if not known:
        library, name = origins[0]
        names = "; ".join(f"{library}: {', '.join(rows)}" for library, rows in PEERS.items())
        raise TypeError(f"{name} of {library} is not known here. Known: {names}.")
    return known[0]
