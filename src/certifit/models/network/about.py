"""Multi-layer perceptrons."""

from __future__ import annotations

from dataclasses import replace

from certifit.data.roles import CLASSES, COUNTS, POSITIVE, QUANTITY
from certifit.models.learner import (
    MEAN,
    Answer,
    Command,
    Goal,
    Learner,
    Option,
    Param,
    Params,
    Simplicity,
    Told,
    Verb,
    Words,
    always,
    choice,
    count,
    either,
    flag,
    is_number,
    is_whole,
    number,
)
from certifit.models.parameters import NO_INFERENCE, OFFSETS

CHECKED = Goal(
    "weights",
    "smaller",
    "lower",
    "of the gradient",
    "Gradients checked",
    "Are its gradients right?",
    "They agree with differences of the loss, and the loss is the one stated; a network has many minima, and none is "
    "proven to be the best.",
    "Its numbers do not agree with its rows",
    is_derived=True,
    agreed="computed again, its loss agrees, and its gradients on some rows; that no other weights fit better is not "
    "proven",
)
ACTIVATIONS = ("relu", "leaky-relu", "tanh", "sigmoid", "identity")
LOSSES = {
    "squared": "(y_i - z_i)^2 / 2",
    "full-squared": "(y_i - z_i)^2",
    "huber": "huber_delta(y_i - z_i)",
    "poisson": "half Poisson deviance of y_i, mean exp(z_i)",
    "gamma": "half Gamma deviance of y_i, mean exp(z_i)",
    "exponential": "half exponential deviance of y_i, mean exp(z_i)",
    "inverse-gaussian": "half inverse Gaussian deviance of y_i, mean exp(z_i)",
    "tweedie": "half Tweedie deviance of y_i, mean exp(z_i)",
    "negative-binomial": "half negative binomial deviance of y_i, mean exp(z_i)",
    "binomial": "-y_i log p_i - (1 - y_i) log(1 - p_i), p_i = sigmoid(z_i)",
}
SOLVERS = ("adam", "sgd", "gradient-descent", "lbfgs")


def _is_sizes(value: object) -> bool:
    return isinstance(value, tuple | list) and all(is_whole(size) and 1 <= size <= 1 << 20 for size in value)


def _objective(told: Told, loss: str) -> str:
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    strength = "alpha" if alpha is None else f"{alpha:g}"
    sizes = told.params.get("hidden_layer_sizes")
    layers = "" if sizes is None else f" with hidden layers {'-'.join(map(str, sizes)) or 'none'}"
    columns = " of standardised columns" if told.params["standardize"] else ""
    return (
        f"minimised: {MEAN} {loss} / {MEAN} + {strength}/2 sum of squared weights, z the output of a "
        f"network{layers} ({told.params['activation']}){columns}"
    )


def _of_numbers(told: Told) -> str:
    return _objective(told, LOSSES[told.params["loss"]])


def _of_classes(told: Told) -> str:
    return _objective(told, "-log p(class_i)")


_POWER = Param("a number between 1 and 2", 1.5, is_number, lambda v: 1 < float(v) < 2)
SIZES = Param(
    "a tuple of whole numbers from 1 to 2^20, such as (100,)", (100,), lambda v: isinstance(v, tuple | list), _is_sizes
)
_PARAMS: dict[str, Param] = {
    "activation": choice("relu", *ACTIVATIONS),
    "leak": number(0.01, most=1.0),
    "biases": flag(True),
    "output_bias": flag(True),
    "solver": choice("adam", *SOLVERS),
    "alpha": number(None, most=1e100, or_none=True),
    "batch_size": Param("a whole number >= 1", None, is_whole, lambda value: value >= 1, or_none=True),
    "learning_rate": number(1e-3, most=1e10, is_above=True),
    "schedule": choice("constant", "constant", "inverse", "inverse-root"),
    "decay": number(None, most=1e10, or_none=True),
    "momentum": number(0.0, most=0.9999),
    "max_iter": count(200),
    "max_time": number(None, most=1e9, is_above=True, or_none=True),
    "least_fall": number(1e-4),
    "n_iter_no_change": count(10),
    "early_stopping": either("True, False or 'auto'", False, flag(False), choice("auto", "auto")),
    "validation_fraction": number(0.1, least=0.001, most=0.9),
    "n_starts": count(1, most=1000),
    "polish": flag(False),
    "standardize": flag(True),
    "shuffle": flag(True),
    "dtype": choice("float32", "float32", "float64"),
    "random_state": count(0, least=0),
}
_AUTO = replace(_PARAMS["early_stopping"], default="auto")
_OPTIONS = (
    Option(
        "hidden",
        "A,B",
        "network and its kinds: units of every hidden layer. Default: 100.",
        "hidden_layer_sizes",
        lambda text: tuple(int(size) for size in text.split(",")),
        SIZES,
    ),
)
_REMEDY = "Give it more epochs (--max-iter) or another size (--hidden), or take another model."
_WORDS = f"{NO_INFERENCE}the weights of a network have no meaning one by one."


def _goes_in_order(params: Params) -> Verb:
    return Verb.REDUCE if params["solver"] in ("lbfgs", "gradient-descent") else Verb.VISIT


def _command(name: str, goal: str, words: str = "", **fixed: str) -> Command:
    return Command(
        name,
        "neural network",
        f"a neural network{words}, with one hidden layer unless --hidden says otherwise",
        goal=goal,
        compared_for=(goal,),
        options=_OPTIONS,
        fixed={"early_stopping": "auto", **fixed},
        roles=OFFSETS if fixed else (),
        simplicity=Simplicity.MANY_PARTS,
        work=lambda n_rows, n_columns: (235_000.0 + 1_500.0 * n_columns) * n_rows,
    )


ROWS = (
    Learner(
        "mlp_regressor",
        "models.network.model:MLPRegressor",
        _of_numbers,
        Words("neural network", "penalised loss", _WORDS, goal=CHECKED, remedy=_REMEDY),
        {
            "loss": choice("squared", *LOSSES),
            "delta": number(1.35, most=1e10, is_above=True),
            "power": replace(_POWER, is_left_out=True),
            "overdispersion": replace(number(1.0, most=1e10, is_above=True), is_left_out=True),
            **_PARAMS,
        },
        ("hidden_layer_sizes", "start", "encoder"),
        verb=_goes_in_order,
        sections=always(("learning",)),
        commands=(
            _command("regression-network", QUANTITY),
            _command("poisson-network", COUNTS, " for counts", loss="poisson"),
            _command("gamma-network", POSITIVE, " for positive quantities", loss="gamma"),
        ),
        record="models.network.modelfile:REGRESSOR",
    ),
    Learner(
        "mlp_classifier",
        "models.network.model:MLPClassifier",
        _of_classes,
        Words("neural network", "penalised log loss", _WORDS, goal=CHECKED, remedy=_REMEDY),
        _PARAMS | {"early_stopping": _AUTO},
        ("hidden_layer_sizes", "class_weight", "start", "encoder"),
        always(Answer.CLASSES),
        verb=_goes_in_order,
        sections=always(("learning",)),
        commands=(_command("network", CLASSES),),
        record="models.network.modelfile:CLASSIFIER",
    ),
)
