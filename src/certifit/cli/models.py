"""The models of `certifit fit`: which ones a name means, how each is made, which options go with which."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from certifit.cli.paths import listed_names
from certifit.data.tasks import CLASSES, COUNTS, POSITIVE, QUANTITY, TASKS

LINEAR = "least squares"
AUTO = "auto"


@dataclass(frozen=True)
class Asked:
    """What a model is made from: parameters that all models have, options of its own, and the rule of the folds."""

    common: Mapping[str, Any]
    own: Mapping[str, Any]
    rule: str


@dataclass(frozen=True)
class Kind:
    """A model: its name in a table, how it is made, what it predicts, and the options that go with it.

    counts: it reads columns that are there or not, or that are counted, such as words. needs_folds: its strength has no
    usual value, so folds must choose one that is not given.
    tunes: the option whose value the folds choose where it is not given.
    has_p_values: why it is taken where it does nearly as well as the best.
    """

    name: str
    make: Callable[[Asked], Any]
    takes: tuple[str, ...] = ()
    predicts: str = QUANTITY
    counts: bool = False
    needs_folds: bool = False
    tunes: str | None = None
    has_p_values: bool = False


def _linear(asked: Asked) -> Any:
    from certifit.models.linear import LinearRegression

    return LinearRegression(**asked.common)


def _ridge(asked: Asked) -> Any:
    from certifit.models.linear import Ridge

    return Ridge(asked.own.get("alpha"), standardize=True, **asked.common)


def _lasso(asked: Asked) -> Any:
    from certifit.models.sparse import Lasso

    return _tuned(Lasso(**asked.common, **_sparse(asked.own)), asked, "alpha", "alpha")


def _elastic_net(asked: Asked) -> Any:
    from certifit.models.sparse import ElasticNet

    ratio = {"l1_ratio": asked.own["l1_ratio"]} if "l1_ratio" in asked.own else {}
    return _tuned(ElasticNet(**asked.common, **ratio, **_sparse(asked.own)), asked, "alpha", "alpha")


def _huber(asked: Asked) -> Any:
    from certifit.models.robust import HuberRegressor

    return HuberRegressor(standardize=True, **asked.common, **asked.own)


def _glm(asked: Asked, family: str) -> Any:
    from certifit.models.glm import GLM

    return GLM(family, "log", **asked.common)


def _poisson(asked: Asked) -> Any:
    return _glm(asked, "poisson")


def _gamma(asked: Asked) -> Any:
    return _glm(asked, "gamma")


def _poisson_ridge(asked: Asked) -> Any:
    from certifit.models.glm import PoissonRegressor

    return _tuned(PoissonRegressor(standardize=True, **asked.common), asked, "alpha", "alpha")


def _gamma_ridge(asked: Asked) -> Any:
    from certifit.models.glm import GammaRegressor

    return _tuned(GammaRegressor(standardize=True, **asked.common), asked, "alpha", "alpha")


def _logistic(asked: Asked) -> Any:
    from certifit.models.logistic import LogisticRegression

    return _tuned(LogisticRegression(standardize=True, **asked.common), asked, "alpha", "alpha")


def _discriminant(asked: Asked, covariance: str = "shared") -> Any:
    from certifit.models.generative import GaussianDiscriminant

    model = GaussianDiscriminant(covariance, standardize=True, singular="raise", **_but(asked.common, "fit_intercept"))
    return _tuned(model, asked, "shrinkage", "shrinkage")


def _quadratic(asked: Asked) -> Any:
    return _discriminant(asked, "class")


def _gaussian_nb(asked: Asked) -> Any:
    from certifit.models.naive_bayes import GaussianNB

    return GaussianNB(**_but(asked.common, "fit_intercept"))


def _bernoulli_nb(asked: Asked) -> Any:
    from certifit.models.count_naive_bayes import BernoulliNB

    return _tuned(BernoulliNB(**_but(asked.common, "fit_intercept", "basis")), asked, "smoothing", "alpha")


def _multinomial_nb(asked: Asked) -> Any:
    from sklearn.base import clone

    from certifit.models.count_naive_bayes import MultinomialNB

    common = _but(asked.common, "fit_intercept", "basis")
    encoder = clone(common["encoder"])
    if encoder.texts is not None:
        encoder.texts.set_params(binary=False)
    return _tuned(MultinomialNB(**common | {"encoder": encoder}), asked, "smoothing", "alpha")


_LINEAR_TAKES = ("degree", "no_intercept")
_SPARSE_TAKES = ("alpha", "increasing", "decreasing", "unpenalised", *_LINEAR_TAKES)
_RATE_TAKES = (*_LINEAR_TAKES, "offset", "exposure")
KINDS = {
    "linear": Kind(LINEAR, _linear, _LINEAR_TAKES, has_p_values=True),
    "ridge": Kind("ridge", _ridge, ("alpha", *_LINEAR_TAKES), tunes="alpha"),
    "lasso": Kind("lasso", _lasso, _SPARSE_TAKES, needs_folds=True, tunes="alpha"),
    "elastic-net": Kind("elastic net", _elastic_net, ("l1_ratio", *_SPARSE_TAKES), needs_folds=True, tunes="alpha"),
    "huber": Kind("huber", _huber, ("alpha", "delta", *_LINEAR_TAKES)),
    "poisson": Kind("Poisson regression", _poisson, _RATE_TAKES, COUNTS, has_p_values=True),
    "poisson-ridge": Kind(
        "Poisson ridge", _poisson_ridge, ("alpha", *_RATE_TAKES), COUNTS, needs_folds=True, tunes="alpha"
    ),
    "gamma": Kind("Gamma regression", _gamma, _RATE_TAKES, POSITIVE, has_p_values=True),
    "gamma-ridge": Kind(
        "Gamma ridge", _gamma_ridge, ("alpha", *_RATE_TAKES), POSITIVE, needs_folds=True, tunes="alpha"
    ),
    "logistic": Kind("logistic regression", _logistic, ("alpha", *_LINEAR_TAKES, "offset"), CLASSES, tunes="alpha"),
    "discriminant": Kind("linear discriminant", _discriminant, ("shrinkage", "degree"), CLASSES, tunes="shrinkage"),
    "quadratic": Kind("quadratic discriminant", _quadratic, ("shrinkage", "degree"), CLASSES, tunes="shrinkage"),
    "gaussian-nb": Kind("Gaussian naive Bayes", _gaussian_nb, ("degree",), CLASSES),
    "bernoulli-nb": Kind(
        "Bernoulli naive Bayes", _bernoulli_nb, ("smoothing",), CLASSES, counts=True, tunes="smoothing"
    ),
    "multinomial-nb": Kind(
        "multinomial naive Bayes", _multinomial_nb, ("smoothing",), CLASSES, counts=True, tunes="smoothing"
    ),
}
# What auto compares for every task, and for classes where a column is free text. A task without models of its own is
# recognised as a quantity.
COMPARED: dict[str, tuple[str, ...]] = {
    QUANTITY: ("linear", "ridge", "lasso"),
    COUNTS: ("poisson", "poisson-ridge"),
    POSITIVE: ("gamma", "gamma-ridge"),
    CLASSES: ("discriminant", "quadratic", "gaussian-nb", "logistic"),
    "texts": ("bernoulli-nb", "multinomial-nb"),
}
# option -> models that have it
GOES_WITH = {
    option: tuple(kind for kind, row in KINDS.items() if option in row.takes)
    for option in dict.fromkeys(option for row in KINDS.values() for option in row.takes)
}
# Options that auto takes too: the first where every model it compares has them, columns for those models that do.
SHARED = ("degree", "no_intercept")
OFFSETS = ("offset", "exposure")
OWN = tuple(option for option in GOES_WITH if option not in (*SHARED, *OFFSETS))

options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--task", type=click.Choice([AUTO, *TASKS]), default=AUTO, show_default=True,
        help="What the target is. auto: text, true/false and two whole numbers are classes; whole numbers >= 0 with an "
        "exposure, or from 0 or 1 up and skewed to the right, are counts; skewed numbers > 0 are positive; others a "
        "quantity.",
    ),
    click.option(
        "--model", "kind", type=click.Choice([AUTO, *KINDS]), default=AUTO, show_default=True,
        help="Of a quantity: linear: least squares, with p-values. ridge, lasso, elastic-net: with a penalty, without "
        "p-values; the last two leave columns out, and standardise them first. huber: outliers do not carry it away. "
        "Of counts: poisson, with p-values, and poisson-ridge, with a penalty; of positive quantities: gamma and "
        "gamma-ridge. Of classes: logistic: log-odds as a sum over columns, with a penalty (p-values with --alpha 0). "
        "discriminant: Gaussian classes of one covariance, straight boundaries. quadratic: each class has "
        "its own. gaussian-nb, bernoulli-nb, multinomial-nb: naive Bayes of numbers, of what is there or not, of "
        "counts. auto: the best on rows it did not see of linear, ridge and lasso, of poisson and poisson-ridge, of "
        "gamma and gamma-ridge (the first where it is within one standard error); of discriminant, quadratic, "
        "gaussian-nb and logistic; or, with free text, of the last two.",
    ),
    click.option(
        "--alpha", type=float, metavar="A",
        help="Strength of the penalty, on standardised columns. Default: the folds choose; for huber 0.",
    ),
    click.option(
        "--l1-ratio", type=float, metavar="R", help="elastic-net: share of the L1 penalty, above 0 to 1. Default: 0.5.",
    ),
    click.option("--increasing", metavar="A,B", help="lasso, elastic-net: columns whose weight may not be negative."),
    click.option("--decreasing", metavar="A,B", help="lasso, elastic-net: columns whose weight may not be positive."),
    click.option("--unpenalised", metavar="A,B", help="lasso, elastic-net: columns that the penalty spares."),
    click.option(
        "--delta", type=float, metavar="D", help="huber: residuals beyond so many scales are outliers. Default: 1.35.",
    ),
    click.option(
        "--shrinkage", type=click.FloatRange(0, 1), metavar="S",
        help="discriminant, quadratic: 0 to 1, how far covariances go towards equal variances. Default: the folds "
        "choose.",
    ),
    click.option(
        "--smoothing", type=click.FloatRange(min=0), metavar="A",
        help="bernoulli-nb, multinomial-nb: what is added to every count. Default: the folds choose.",
    ),
    click.option(
        "--positive", metavar="LABEL", help="Of two classes, the one to find. Default: the second in order.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What is to be predicted, the models asked for, and the options that only some models have."""

    kind: str = AUTO
    task: str = AUTO
    own: Mapping[str, Any] = field(default_factory=dict)
    positive: str | None = None
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: COMPARED)

    @staticmethod
    def of(
        kind: str,
        task: str = AUTO,
        positive: str | None = None,
        compared: Mapping[str, tuple[str, ...]] | None = None,
        **own: Any,
    ) -> "Choice":
        """From the options of the command line; refuses one that does not go with the model, or that with the task.

        compared: the models of every task, COMPARED unless given.
        """
        given = {name: value for name, value in own.items() if value is not None}
        for name in given:
            if kind not in GOES_WITH[name]:
                legal = " or ".join(GOES_WITH[name])
                raise click.UsageError(f"--{_option(name)} is for --model {legal}, and --model is {kind}.")
        predicts = task if kind == AUTO else KINDS[kind].predicts
        if task not in (AUTO, predicts):
            legal = ", ".join(name for name, row in KINDS.items() if row.predicts == task)
            models = f"Its models are {legal}." if legal else "No model is made for it."
            raise click.UsageError(f"--model {kind} predicts {TASKS[predicts]}, and --task is {task}. {models}")
        if positive is not None and predicts not in (AUTO, CLASSES):
            raise click.UsageError(f"--positive names one of two classes, and the target is {TASKS[predicts]}.")
        return Choice(kind, predicts, given, positive, COMPARED if compared is None else compared)

    def recognised(self, task: str) -> str:
        """A task that was found, where models are compared for it; else a quantity."""
        return task if self.compared[task] else QUANTITY

    def kinds(self, task: str, has_texts: bool = False, **shared: bool) -> tuple[str, ...]:
        """The models to compare. shared: which of the options that auto takes too are given."""
        compared = self._compared("texts" if has_texts and task == CLASSES else task, shared)
        for name in (name for name, is_given in shared.items() if is_given):
            lacking = [kind for kind in compared if name not in KINDS[kind].takes]
            if lacking:
                legal = ", ".join(kind for kind in GOES_WITH.get(name, ()) if _may_be(kind, task, name))
                instead = f" It is for --model {legal}." if legal else " Leave it out."
                why = f", and the target {task}" if task == CLASSES and self.kind == AUTO else ""
                raise click.UsageError(f"--{_option(name)} does not go with {', '.join(lacking)}{why}.{instead}")
        return compared

    def _compared(self, task: str, shared: Mapping[str, bool]) -> tuple[str, ...]:
        """The models of a task, of those that auto compares the ones that read the columns which are given."""
        if self.kind != AUTO:
            return (self.kind,)
        if not self.compared[task]:
            raise click.UsageError(f"No model is made for {TASKS[task]}. Use --task {QUANTITY}.")
        given = {name for name in OFFSETS if shared.get(name)}
        compared = self.compared[task]
        return tuple(kind for kind in compared if given.issubset(KINDS[kind].takes)) or compared

    def refuse_rule(self, kinds: Sequence[str], cv: int | None) -> None:
        """Raise where nothing is left for folds to choose, so that a rule of the choice says nothing."""
        if cv == 0:
            raise click.UsageError("--rule chooses by folds, and --cv is 0.")
        if not any(KINDS[kind].tunes is not None and KINDS[kind].tunes not in self.own for kind in kinds):
            given = next((option for kind in kinds if (option := KINDS[kind].tunes) in self.own), None)
            why = f"--model {kinds[0]} has nothing to tune" if given is None else f"--{given} is given"
            raise click.UsageError(f"--rule says which strength the folds choose, and {why}. Leave it out.")

    def models(
        self, kinds: Sequence[str], common: Mapping[str, Any], rule: str, names: Sequence[str]
    ) -> dict[str, Any]:
        """The models by name; one whose strength the folds choose is wrapped in CrossValidated. names: of the data."""
        from certifit.data.roles import refuse_unknown

        for option in ("increasing", "decreasing", "unpenalised"):
            for name in _names(self.own, option):
                refuse_unknown(name, names, f"--{option}: the data")
        asked = Asked(common, self.own, rule)
        return {KINDS[kind].name: KINDS[kind].make(asked) for kind in kinds}


def unwrapped(model: Any, kind: str, notes: Sequence[str]) -> Any:
    """The model to fit where nothing was cross-validated; notes: why."""
    inner = getattr(model, "estimator", None)
    if inner is None:
        return model
    if kind == AUTO or not KINDS[kind].needs_folds:
        return inner
    why = " ".join(notes) or "--cv is 0."
    raise click.UsageError(f"--model {kind} needs folds to choose the penalty, or --alpha A. {why}")


def preferred(models: Mapping[str, Any]) -> str | None:
    """The name of the model that can have p-values, where others are compared with it."""
    with_p_values = [row.name for row in KINDS.values() if row.has_p_values and row.name in models]
    return with_p_values[0] if with_p_values else None


def penalised(board: Any) -> Any:
    """The best of the compared models that have a penalty, and so a best fit where classes or counts are separated."""
    models = (entry for entry in board.entries if entry.model is not None)
    return next((entry for entry in models if (getattr(entry.model, "alpha", None) or 0) > 0), None)


def _may_be(kind: str, task: str, option: str) -> bool:
    """Whether a model that has an option suits the task; an offset or exposure says itself what the target is."""
    return option in OFFSETS or KINDS[kind].predicts == task


def _option(name: str) -> str:
    return name.replace("_", "-")


def _but(parameters: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in names}


def _sparse(own: Mapping[str, Any]) -> dict[str, Any]:
    bounds = {name: way for way in ("increasing", "decreasing") for name in _names(own, way)}
    twice = sorted(set(_names(own, "increasing")) & set(_names(own, "decreasing")))
    if twice:
        raise click.UsageError(f"{', '.join(twice)} cannot be both --increasing and --decreasing.")
    factors = dict.fromkeys(_names(own, "unpenalised"), 0.0)
    return {"standardize": True, "bounds": bounds or None, "penalty_factors": factors or None}


def _names(own: Mapping[str, Any], option: str) -> Sequence[str]:
    return listed_names(own.get(option)) or ()


def _tuned(model: Any, asked: Asked, option: str, parameter: str) -> Any:
    """With the value of the option, or chosen by the folds."""
    from certifit.selection.cross_validated import CrossValidated

    if option in asked.own:
        return model.set_params(**{parameter: asked.own[option]})
    return CrossValidated(model, rule=asked.rule)
