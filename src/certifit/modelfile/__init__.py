"""Model files: one safetensors file, no code, no rows; read within limits, written whole or not at all."""

from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.files import load, save
from certifit.modelfile.verification import Verification, verify

__all__ = ["ModelFileError", "Verification", "load", "save", "verify"]
