"""Which candidate wins: the best mean score, or the simplest within one standard error of it; and which model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from certifit.data.columns import Array
from certifit.models.folds import Candidate

RULES = ("min", "1se")

# parameter -> +1 where a larger value is the simpler model, -1 where a smaller one is
SIMPLER = {
    "alpha": 1,
    "C": -1,
    "degree": -1,
    "max_depth": -1,
    "max_leaf_nodes": -1,
    "min_samples_leaf": 1,
    "min_samples_split": 1,
    "n_neighbors": 1,
    "n_components": -1,
    "shrinkage": 1,
    "basis": -1,
}


@dataclass(frozen=True)
class Preference:
    """Groups of models, the simplest first: the best model of the first group that is within one standard error of the
    best of all is taken. A model in no group comes last. because: of every group, why its models are preferred.
    """

    groups: tuple[tuple[str, ...], ...] = ()
    because: tuple[str, ...] = ()

    @staticmethod
    def of(prefer: str | Sequence[Sequence[str]] | None, because: str | Sequence[str]) -> Preference:
        """From one name, or groups of names."""
        groups = () if prefer is None else ((prefer,),) if isinstance(prefer, str) else tuple(map(tuple, prefer))
        reasons = (because,) * len(groups) if isinstance(because, str) else tuple(because)
        if len(reasons) != len(groups):
            raise ValueError(f"because must have one reason per group of prefer, {len(groups)}. Got {len(reasons)}.")
        return Preference(groups, reasons)

    @property
    def names(self) -> list[str]:
        """Of all groups."""
        return [name for group in self.groups for name in group]

    def ranks(self, names: Sequence[str]) -> Array:
        """The place of every model's group; models in no group have the place behind the last."""
        place = {name: k for k, group in enumerate(self.groups) for name in group}
        return np.array([place.get(name, len(self.groups)) for name in names])

    def rank(self, name: str) -> int:
        """The place of a model's group."""
        return int(self.ranks([name])[0])

    def reason(self, name: str) -> str:
        """Why a model is preferred."""
        return self.because[self.rank(name)]

    def without(self, name: str) -> Preference:
        """The same with a model in no group."""
        groups = tuple(tuple(other for other in group if other != name) for group in self.groups)
        return Preference(groups, self.because)


NO_PREFERENCE = Preference()


def choose_models(scores: Array, error: Array, ranks: Array) -> Array:
    """Places of the models taken, choices x models: of those within one standard error of the best the first in rank.

    error: of the best of every choice. Models of equal rank: the better one.
    """
    best = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), best]
    is_near = scores >= (top - error)[:, None]  # nothing is near where one split tells no error
    rank = np.where(is_near, ranks, np.inf)
    is_first = is_near & (rank == rank.min(axis=1, keepdims=True))
    taken = np.where(is_first, scores, -np.inf).argmax(axis=1)
    return np.asarray(np.where(is_near.any(axis=1), taken, best))


def choose(mean: Array, error: Array, candidates: Sequence[Candidate], rule: str) -> int:
    """Place of the winner. Ties go to the simpler one where that is known, else to the first."""
    if not np.isfinite(mean).any():
        raise ValueError(
            "No candidate has a finite score. With few samples a fold may hold a single row, whose R2 has no meaning: "
            "use fewer folds, or scoring='neg_mean_squared_error'."
        )
    order = simplicity(candidates) if rule == "1se" else None
    return int(choose_each(mean[None, :], error[None, :], order, rule)[0])


def choose_each(mean: Array, error: Array, order: Array | None, rule: str) -> Array:
    """Places of the winners of several choices, choices x candidates; 0 where no candidate has a score.

    order: `simplicity` of the candidates, for the rule "1se".
    """
    means = np.where(np.isnan(mean), -np.inf, mean)
    best = means.argmax(axis=1)
    if rule == "min" or order is None:
        return np.asarray(best)
    each = np.arange(len(best))
    least = means[each, best] - np.nan_to_num(error[each, best])  # one split tells no error
    is_within = (means >= least[:, None]) & (order >= order[best][:, None])  # never less penalised than the best
    simplest = np.where(is_within, order, -np.inf)
    is_simplest = is_within & (simplest == simplest.max(axis=1, keepdims=True))
    return np.asarray(np.where(is_simplest, means, -np.inf).argmax(axis=1))


def simplicity(candidates: Sequence[Candidate]) -> Array:
    """A number per candidate, larger for the simpler model; refused where candidates differ in more than one way."""
    names = sorted({name for candidate in candidates for name in candidate})
    varying = [name for name in names if len({repr(candidate.get(name)) for candidate in candidates}) > 1]
    if not varying:
        return np.zeros(len(candidates))
    name = varying[0].rpartition("__")[2]
    if len(varying) > 1 or name not in SIMPLER:
        raise ValueError(
            f"rule='1se' needs candidates that differ in one parameter that orders them by simplicity "
            f"({', '.join(SIMPLER)}). These differ in {varying}. Use rule='min'."
        )
    sign = SIMPLER[name]
    return np.array([sign * _size(candidate.get(varying[0]), sign) for candidate in candidates])


def _size(value: object, sign: int) -> float:
    """A number, or the degree of a basis; None is a limit that limits nothing."""
    if value is None and sign < 0:
        return np.inf
    value = getattr(value, "degree", value)
    if not isinstance(value, Real):
        raise ValueError(f"rule='1se' needs numbers to order candidates. Got {value!r}.")
    return float(value)
