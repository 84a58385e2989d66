"""Kernels: k(x, z), the rules that make new ones of them, Mercer's condition, and their feature maps.

>>> from certifit import kernels
>>> k = 2 * kernels.Gaussian(1.5) + kernels.Linear() ** 2
>>> k.is_proven
True
>>> bool(kernels.is_mercer(k, [[0.0], [1.0], [3.0]]))
True
"""

from certifit.mathematics.kernels.algebra import Kernel
from certifit.mathematics.kernels.basic import FeatureMap, Function, Gaussian, Linear, Matrix, Polynomial
from certifit.mathematics.kernels.mercer import GramMap, MercerTest, is_mercer, powers, products
from certifit.mathematics.kernels.rules import Constant

__all__ = [
    "Constant",
    "FeatureMap",
    "Function",
    "Gaussian",
    "GramMap",
    "Kernel",
    "Linear",
    "Matrix",
    "MercerTest",
    "Polynomial",
    "is_mercer",
    "powers",
    "products",
]
