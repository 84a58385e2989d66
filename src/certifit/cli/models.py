"""The models of `certifit fit`: which ones a name means, how each is made, which options go with which."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from certifit.cli.paths import listed_names

LINEAR, RIDGE, LASSO, ELASTIC_NET, HUBER = "least squares", "ridge", "lasso", "elastic net", "huber"
KINDS = {
    "auto": (LINEAR, RIDGE, LASSO),
    "linear": (LINEAR,),
    "ridge": (RIDGE,),
    "lasso": (LASSO,),
    "elastic-net": (ELASTIC_NET,),
    "huber": (HUBER,),
}
SPARSE = ("lasso", "elastic-net")
# option -> models that have it
GOES_WITH = {
    "alpha": ("ridge", *SPARSE, "huber"),
    "l1_ratio": ("elastic-net",),
    "increasing": SPARSE,
    "decreasing": SPARSE,
    "unpenalised": SPARSE,
    "delta": ("huber",),
}

options: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--model", "kind", type=click.Choice(list(KINDS)), default="auto", show_default=True,
        help="linear: least squares, with p-values. ridge, lasso, elastic-net: with a penalty, without p-values; the "
        "last two leave columns out, and standardise them first. huber: outliers do not carry it away. auto: the best "
        "of linear, ridge and lasso on rows it did not see; linear where it is within one standard error.",
    ),
    click.option(
        "--alpha", type=float, metavar="A", help="Strength of the penalty. Default: the folds choose; for huber 0.",
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
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """The models asked for, and their own options."""

    kind: str = "auto"
    own: Mapping[str, Any] | None = None

    @staticmethod
    def of(kind: str, **own: Any) -> "Choice":
        """From the options of the command line; refuses one that does not go with the model."""
        given = {name: value for name, value in own.items() if value is not None}
        for name in given:
            if kind not in GOES_WITH[name]:
                option, legal = name.replace("_", "-"), " or ".join(GOES_WITH[name])
                raise click.UsageError(f"--{option} is for --model {legal}, and --model is {kind}.")
        return Choice(kind, given)

    def models(self, options: Mapping[str, Any], rule: str, names: Sequence[str]) -> dict[str, Any]:
        """The models by name; one whose strength the folds choose is wrapped in CrossValidated. names: of the data."""
        from certifit.data.roles import refuse_unknown

        for option in ("increasing", "decreasing", "unpenalised"):
            for name in _names(self.own or {}, option):
                refuse_unknown(name, names, f"--{option}: the data")
        return {name: _MAKERS[name](dict(options), dict(self.own or {}), rule) for name in KINDS[self.kind]}


def unwrapped(model: Any, kind: str, notes: Sequence[str]) -> Any:
    """The model to fit where nothing was cross-validated; notes: why."""
    if hasattr(model, "estimator"):
        why = " ".join(notes) or "--cv is 0."
        raise click.UsageError(f"--model {kind} needs folds to choose the penalty, or --alpha A. {why}")
    return model


def _linear(options: dict[str, Any], own: dict[str, Any], rule: str) -> Any:
    from certifit.models.linear import LinearRegression

    return LinearRegression(**options)


def _ridge(options: dict[str, Any], own: dict[str, Any], rule: str) -> Any:
    from certifit.models.linear import Ridge

    return Ridge(own.get("alpha"), **options)


def _lasso(options: dict[str, Any], own: dict[str, Any], rule: str) -> Any:
    from certifit.models.sparse import Lasso

    return _tuned(Lasso(**options, **_sparse(own)), own, rule)


def _elastic_net(options: dict[str, Any], own: dict[str, Any], rule: str) -> Any:
    from certifit.models.sparse import ElasticNet

    ratio = {"l1_ratio": own["l1_ratio"]} if "l1_ratio" in own else {}
    return _tuned(ElasticNet(**options, **ratio, **_sparse(own)), own, rule)


def _huber(options: dict[str, Any], own: dict[str, Any], rule: str) -> Any:
    from certifit.models.robust import HuberRegressor

    return HuberRegressor(**options, **own)


_MAKERS: dict[str, Callable[[dict[str, Any], dict[str, Any], str], Any]] = {
    LINEAR: _linear, RIDGE: _ridge, LASSO: _lasso, ELASTIC_NET: _elastic_net, HUBER: _huber,
}  # fmt: skip


def _sparse(own: Mapping[str, Any]) -> dict[str, Any]:
    bounds = {name: way for way in ("increasing", "decreasing") for name in _names(own, way)}
    twice = sorted(set(_names(own, "increasing")) & set(_names(own, "decreasing")))
    if twice:
        raise click.UsageError(f"{', '.join(twice)} cannot be both --increasing and --decreasing.")
    factors = dict.fromkeys(_names(own, "unpenalised"), 0.0)
    return {"standardize": True, "bounds": bounds or None, "penalty_factors": factors or None}


def _names(own: Mapping[str, Any], option: str) -> Sequence[str]:
    return listed_names(own.get(option)) or ()


def _tuned(model: Any, own: Mapping[str, Any], rule: str) -> Any:
    from certifit.selection.cross_validated import CrossValidated

    return model.set_params(alpha=own["alpha"]) if "alpha" in own else CrossValidated(model, rule=rule)
