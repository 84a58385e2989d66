"""Which kind of proof a fit has, without the exact certificates themselves."""

from certifit.models.certificate import Certificate
from certifit.models.table import LEARNERS


def kind_of_proof(model_name: str, certificate: Certificate) -> str:
    """Which kind of proof a fit has, in words. A later verification adds nothing to a fit or its file."""
    if getattr(certificate, "is_local", False):
        return "none: an estimate in float64"
    words = "float64, with an allowance for rounding"
    has_exact = any(learner.name == model_name and learner.exact for learner in LEARNERS.values())
    return f"{words}; certifit verify --exact leaves none open" if has_exact else words
