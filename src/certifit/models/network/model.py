"""Multi-layer perceptrons: the models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from sklearn.utils import Tags

from certifit.data.columns import Array
from certifit.data.labels import coded, read_labels
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import (
    OutPath,
    Predictions,
    UserLabels,
    UserRows,
    UserTarget,
    UserWeights,
    refuse_nonfinite,
)
from certifit.maps import UserEncoder
from certifit.models.certificate import Certificate
from certifit.models.classifier import Classifier, ClassWeight, WeightedClasses
from certifit.models.estimator import Regressor
from certifit.models.metric import Metric
from certifit.models.network.base import Network
from certifit.models.network.losses import NetworkLoss
from certifit.models.network.task import NetworkState, NetworkTask

DEVIANCES = {"poisson": "neg_mean_poisson_deviance", "gamma": "neg_mean_gamma_deviance"}


class MLPRegressor(Network, Regressor[NetworkTask, NetworkState]):
    """A multi-layer perceptron of a number.

    x_0 = x,   x_t = act(W_t x_(t-1) + b_t),   z = W_T x_(T-1) + b_T
    minimise:   sum_i weight_i l(y_i, z_i) / sum_i weight_i  +  alpha/2 sum of squared weights

    certificate:  no worse than the best constant, gradients against differences, the gradient's norm (a local claim)

    Parameters
    ----------
    loss : str, default "squared"
        "squared", "full-squared": (y - z)^2 / 2, (y - z)^2. "huber": Huber's of width `delta`, 1.35. "poisson",
        "gamma", "exponential", "inverse-gaussian", "tweedie" (of a `power` between 1 and 2, 1.5), "negative-binomial"
        (variance mu + overdispersion mu^2, 1): half the deviance with mean exp(z). "binomial": the log loss of a share
        y between 0 and 1.
    hidden_layer_sizes : tuple of int, default (100,)
        Units of every hidden layer; () is a linear model.
    activation : {"relu", "leaky-relu", "tanh", "sigmoid", "identity"}, default "relu"
        relu'(0) = 0; leaky-relu has the slope `leak` (default 0.01) below 0, and at 0.
    biases, output_bias : bool, default True
        Whether hidden layers and the output have biases. Biases are not penalised.
    solver : {"adam", "sgd", "gradient-descent", "lbfgs"}, default "adam"
        Adam and SGD step after every batch; gradient descent and L-BFGS use all rows for a step.
    alpha : float >= 0 or None, default None
        Strength of the penalty alpha/2 sum of squared weights. None is 1e-4 / min(200, n), that of scikit-learn.
    batch_size : int or None, default None
        Rows of a batch; None is min(200, n).
    learning_rate, schedule, decay : 1e-3, "constant", None
        The step after t steps: learning_rate, over (1 + decay t) ("inverse") or its root ("inverse-root"). A decay of
        None is 1 / (steps of an epoch).
    momentum : float in [0, 1), default 0
        Of SGD and gradient descent.
    max_iter, least_fall, n_iter_no_change : 200 epochs, 1e-4, 10
        It ends where the loss has not fallen by least_fall for so many epochs.
    max_time : seconds or None
    early_stopping, validation_fraction : False, 0.1
        Hold out a share of the rows, and keep the weights of the epoch with the least loss on them. "auto": of 10,000
        rows or more, as `certifit fit` does.
    n_starts : int, default 1
        Random starts; the best end is kept, and starts_ has the objectives of all.
    polish : bool, default False
        Refit the output layer given the hidden features, a convex problem with a proof.
    standardize : bool, default True
        The network sees (x - mean) / standard deviation of every column, and of y for losses of y - z. partial_fit
        takes those of the rows of its first call, and their number for the default of alpha.
    shuffle, random_state : True, 0
    dtype : {"float32", "float64"}, default "float32"
    start : list of weights per layer, or None
        W (outputs x inputs), or (W, b), of every layer. None draws them.
    encoder : as for LinearRegression

    Attributes
    ----------
    layer_weights_, layer_biases_ : per layer; starts_ : objectives of all starts; n_iter_ : epochs
    history_ : one row per epoch: objective as its batches were met, held_out loss; certificate_ : what was checked

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1.0]])
    >>> model = cf.MLPRegressor((1, 1), activation="identity", loss="full-squared", biases=False, output_bias=False,
    ...     start=[[[2.0]], [[3.0]], [[0.5]]], standardize=False, alpha=0.0, max_iter=1, learning_rate=1e-300,
    ...     dtype="float64", solver="sgd")
    >>> model = model.fit(X, [1.0])
    >>> [state.item() for state in model.forward(X)]
    [1.0, 2.0, 6.0, 3.0]
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (100,),
        *,
        loss: Literal[
            "squared",
            "full-squared",
            "huber",
            "poisson",
            "gamma",
            "exponential",
            "inverse-gaussian",
            "tweedie",
            "negative-binomial",
            "binomial",
        ] = "squared",
        delta: float = 1.35,
        power: float = 1.5,
        overdispersion: float = 1.0,
        activation: Literal["relu", "leaky-relu", "tanh", "sigmoid", "identity"] = "relu",
        leak: float = 0.01,
        biases: bool = True,
        output_bias: bool = True,
        solver: Literal["adam", "sgd", "gradient-descent", "lbfgs"] = "adam",
        alpha: float | None = None,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        schedule: Literal["constant", "inverse", "inverse-root"] = "constant",
        decay: float | None = None,
        momentum: float = 0.0,
        max_iter: int = 200,
        max_time: float | None = None,
        least_fall: float = 1e-4,
        n_iter_no_change: int = 10,
        early_stopping: bool | Literal["auto"] = False,
        validation_fraction: float = 0.1,
        n_starts: int = 1,
        polish: bool = False,
        standardize: bool = True,
        shuffle: bool = True,
        dtype: Literal["float32", "float64"] = "float32",
        random_state: int = 0,
        start: Sequence[object] | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation=activation,
            leak=leak,
            biases=biases,
            output_bias=output_bias,
            solver=solver,
            alpha=alpha,
            batch_size=batch_size,
            learning_rate=learning_rate,
            schedule=schedule,
            decay=decay,
            momentum=momentum,
            max_iter=max_iter,
            max_time=max_time,
            least_fall=least_fall,
            n_iter_no_change=n_iter_no_change,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_starts=n_starts,
            polish=polish,
            standardize=standardize,
            shuffle=shuffle,
            dtype=dtype,
            random_state=random_state,
            start=start,
            encoder=encoder,
        )
        self.loss = loss
        self.delta = delta
        self.power = power
        self.overdispersion = overdispersion

    def fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Self:
        """Fit to rows X and target y (arrays, sparse matrices, data frames), or to a scan that carries its target.

        sample_weight: one number per row; weight 2 is the row twice.
        offset: one number per row, added to its score. exposure: one number > 0 per row, whose log is added to the
        offset; y stays a count.
        """
        return self._fit(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)

    def partial_fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Self:
        """One pass over more rows, from the weights so far. Nothing is certified: `certify(X, y)` looks at all rows."""
        return self._partial_fit(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)

    def predict(
        self, X: UserRows, out: OutPath = None, *, offset: UserWeights = None, exposure: UserWeights = None
    ) -> Predictions:
        """z, or E y of a loss with a link, for every row. Without an offset or exposure they are 0 and 1: a rate.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        return self._predict(X, out, offset=offset, exposure=exposure)

    def certify(
        self,
        X: UserRows,
        y: UserTarget = None,
        sample_weight: UserWeights = None,
        offset: UserWeights = None,
        exposure: UserWeights = None,
    ) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        return self._certify(X, y, sample_weight=sample_weight, offset=offset, exposure=exposure)

    @property
    def default_scoring(self) -> str | Metric | None:
        """What the model is scored by where the user names nothing; None is its own score."""
        return DEVIANCES.get(self.loss)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._loss().is_of_mean
        return tags

    def _loss(self) -> NetworkLoss:
        return NetworkLoss(self.loss, float(self.delta), float(self.power), float(self.overdispersion))

    def _n_outputs(self) -> int:
        return 1

    def scores(self, block: Block) -> Array:
        """Predictions of the rows of a block of the source that the model was fitted to."""
        if block.X.shape[0] == 0:
            return np.zeros(0)
        with np.errstate(over="ignore", invalid="ignore"):
            z = self._outputs(block)[:, 0] * self.size_ + self.level_
            means = self._loss().mean(z if block.offset is None else z + np.asarray(block.offset))
        if not np.isfinite(means).all():
            refuse_nonfinite(Memory(self.columns_of(block), None, names=self.column_names_))
            raise ValueError("Some rows are so far from those of the fit that predictions leave the numbers.")
        return np.asarray(means)


class MLPClassifier(Network, WeightedClasses[NetworkTask, NetworkState], Classifier[NetworkTask, NetworkState]):
    """A multi-layer perceptron of classes.

    x_0 = x,   x_t = act(W_t x_(t-1) + b_t),   z = W_T x_(T-1) + b_T
    minimise:   sum_i weight_i (-log p(y_i)) / sum_i weight_i  +  alpha/2 sum of squared weights

    p = sigmoid(z) for two classes, softmax(z) for more
    certificate:  no worse than the best constant, gradients against differences, the gradient's norm (a local claim)

    Parameters
    ----------
    hidden_layer_sizes, activation, leak, biases, output_bias, solver, alpha, batch_size, learning_rate, schedule,
    decay, momentum, max_iter, max_time, least_fall, n_iter_no_change, early_stopping, validation_fraction, n_starts,
    polish, standardize, shuffle, random_state, dtype, start, encoder : as for MLPRegressor, but that early_stopping is
        "auto" by default
    class_weight : dict {label: weight}, "balanced" or None, default None
        Factors of the weights of the rows of every class; "balanced" gives every class the same sum.

    Attributes
    ----------
    as for MLPRegressor

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = cf.MLPClassifier((8,), activation="tanh", solver="lbfgs", alpha=1e-4).fit(X, [0, 1, 1, 0])
    >>> model.predict(X).tolist(), model.certificate_.holds
    ([0, 1, 1, 0], True)
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (100,),
        *,
        class_weight: ClassWeight = None,
        activation: Literal["relu", "leaky-relu", "tanh", "sigmoid", "identity"] = "relu",
        leak: float = 0.01,
        biases: bool = True,
        output_bias: bool = True,
        solver: Literal["adam", "sgd", "gradient-descent", "lbfgs"] = "adam",
        alpha: float | None = None,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        schedule: Literal["constant", "inverse", "inverse-root"] = "constant",
        decay: float | None = None,
        momentum: float = 0.0,
        max_iter: int = 200,
        max_time: float | None = None,
        least_fall: float = 1e-4,
        n_iter_no_change: int = 10,
        early_stopping: bool | Literal["auto"] = "auto",
        validation_fraction: float = 0.1,
        n_starts: int = 1,
        polish: bool = False,
        standardize: bool = True,
        shuffle: bool = True,
        dtype: Literal["float32", "float64"] = "float32",
        random_state: int = 0,
        start: Sequence[object] | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation=activation,
            leak=leak,
            biases=biases,
            output_bias=output_bias,
            solver=solver,
            alpha=alpha,
            batch_size=batch_size,
            learning_rate=learning_rate,
            schedule=schedule,
            decay=decay,
            momentum=momentum,
            max_iter=max_iter,
            max_time=max_time,
            least_fall=least_fall,
            n_iter_no_change=n_iter_no_change,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_starts=n_starts,
            polish=polish,
            standardize=standardize,
            shuffle=shuffle,
            dtype=dtype,
            random_state=random_state,
            start=start,
            encoder=encoder,
        )
        self.class_weight = class_weight

    def partial_fit(
        self,
        X: UserRows,
        y: UserTarget = None,
        classes: UserLabels = None,
        sample_weight: UserWeights = None,
    ) -> Self:
        """One pass over more rows, from the weights so far. classes: all labels there will be, in the first call."""
        return self._partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    def _add(self, source: Source) -> None:
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all rows at once. Give the weights: {label: weight}.")
        super()._add(source)

    def _loss(self) -> NetworkLoss:
        return NetworkLoss("logistic" if len(self.classes_) == 2 else "softmax")

    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _targets(self, y: UserTarget) -> Array:
        labels = np.asarray(read_labels(y))
        classes, codes = coded(labels)
        return np.asarray([self.classes_.tolist().index(label) for label in classes.tolist()], dtype=np.float64)[codes]

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row."""
        from certifit.models.network.scores import scores

        z = scores(self._fitted_layout(), self.parameters_, self._units(), columns, self.dtype)
        return z if z.shape[1] > 1 else np.column_stack([np.zeros(len(z)), z[:, 0]])
