"""The models that have an exact certificate, by name: what can be asked without the certificates themselves."""

from certifit.certificates.certificate import Certificate

EXACT_MODELS = (
    "LinearRegression",
    "Ridge",
    "Lasso",
    "ElasticNet",
    "HuberRegressor",
    "LogisticRegression",
    "PoissonRegressor",
    "GammaRegressor",
    "GLM",
    "GaussianDiscriminant",
    "GaussianNB",
    "BernoulliNB",
    "MultinomialNB",
    "PCA",
)


def kind_of_proof(model_name: str, certificate: Certificate) -> str:
    """Which kind of proof a fit has, in words. A later verification adds nothing to a fit or its file."""
    if getattr(certificate, "is_local", False):
        return "none: an estimate in float64"
    words = "float64, with an allowance for rounding"
    return f"{words}; certifit verify --exact leaves none open" if model_name in EXACT_MODELS else words
