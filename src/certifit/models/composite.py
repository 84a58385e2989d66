"""Models that are made of other models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import sklearn
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from certifit.data.user_types import UserRows, UserTarget, UserWeights
from certifit.models.certificate import Certificate, least_certain
from certifit.models.estimator import Estimator, RowsT
from certifit.models.table import COMPOSITES


class Composite(MetaEstimatorMixin, Estimator[RowsT]):
    """An estimator of estimators, ours or of any library: `estimator` is what is copied, `estimators_` are fitted.

    Its certificate is the one of them that says least. A model writes `_gate`, `_learn`, which sets estimators_, and
    `_gate_again`: the checked rows of every estimator.
    """

    estimator: BaseEstimator
    estimators_: list[BaseEstimator]

    @property
    def certificates_(self) -> list[Certificate | None]:
        """The certificates of the estimators; None of one that has none."""
        check_is_fitted(self)
        return [getattr(model, "certificate_", None) for model in self.estimators_]

    @property
    def certificate_(self) -> Certificate:
        """The certificate that says least: one that does not hold, else the one nearest to its tolerance."""
        return self._joint(self.certificates_)

    def _check_parameters(self) -> None:
        """Refuse values that are not legal, by the table of models of models."""
        for row in (row for row in COMPOSITES.values() if isinstance(self, row.load())):
            for name, param in row.params.items():
                param.check(name, getattr(self, name))

    def certify(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Certificate:
        """The certificate that says least of the estimators, recomputed on data; no solver takes part."""
        check_is_fitted(self)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.certify_source(self._gate_again(X, y, **weight))

    def certify_source(self, sources: Sequence[object]) -> Certificate:
        """The certificate that says least of the estimators on checked rows, those of `_gate_again`."""
        pairs = zip(self.estimators_, sources, strict=True)
        return self._joint([model.certify_source(source) for model, source in pairs])

    @abstractmethod
    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> Sequence[object]:
        """Checked rows with a target for every estimator, of the form of those of the fit."""

    def _joint(self, certificates: list[Certificate | None]) -> Certificate:
        stated = [certificate for certificate in certificates if certificate is not None]
        if not stated:
            raise AttributeError(f"{type(self.estimator).__name__} has no certificates.")
        return least_certain(stated)

    def _handed_on(self, params: Mapping[str, object]) -> dict[str, object]:
        """What of fit's own arguments the estimators' fit gets."""
        handed = {name: value for name, value in params.items() if value is not None}
        if sklearn.get_config()["enable_metadata_routing"]:
            handed = dict(process_routing(self, "fit", **handed).estimator.fit)
        return handed

    def _take_names(self) -> None:
        """What the estimators keep of the rows and their columns, as the first one has it."""
        first = self.estimators_[0]
        for name in ("n_features_in_", "feature_names_in_", "column_names_", "encoder_"):
            self.__dict__.pop(name, None)
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        if hasattr(first, "data_"):
            self.data_ = {name: first.data_[name] for name in ("n_rows", "sum_weight")}

    def get_metadata_routing(self) -> MetadataRouter:
        """What fit hands on to the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags
