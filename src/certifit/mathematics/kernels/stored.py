"""Kernels as plain data, and back: what a model file has of them. Functions are code, and code is never stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from certifit.mathematics.kernels.algebra import Kernel
from certifit.mathematics.kernels.basic import Gaussian, Linear, Matrix, Polynomial
from certifit.mathematics.kernels.rules import (
    Constant,
    Exponential,
    OnColumns,
    PolynomialOf,
    Power,
    Product,
    Sum,
)

MOST_PARTS = 1000
Values = Mapping[str, object]


def kernel_from(tree: object) -> Kernel:
    """The kernel of plain data; anything else is a ValueError."""
    kind = tree.get("kind") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"a kernel is one of {', '.join(_KINDS)}")
    keys, make = _KINDS[kind]
    if set(tree) != {"kind", *keys}:
        raise ValueError(f"a {kind} kernel has {', '.join(keys) or 'nothing more'}")
    try:
        return make(tree)
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from None


def is_stored_kernel(value: object) -> bool:
    """Whether plain data is a kernel."""
    try:
        kernel_from(value)
    except ValueError:
        return False
    return True


def _number(value: object) -> float:
    if type(value) is not float:
        raise ValueError("a number of a kernel is a float")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise ValueError("a power of a kernel is a whole number")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_PARTS:
        raise ValueError(f"a list of a kernel has 1 to {MOST_PARTS} entries")
    return value


def _parts(tree: Values) -> tuple[Kernel, ...]:
    return tuple(kernel_from(part) for part in _list(tree["kernels"]))


def _width(value: object) -> float | str:
    return value if isinstance(value, str) else _number(value)


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Values], Kernel]]] = {
    "constant": (("c",), lambda tree: Constant(_number(tree["c"]))),
    "linear": ((), lambda tree: Linear()),
    "polynomial": (("degree", "c"), lambda tree: Polynomial(_whole(tree["degree"]), _number(tree["c"]))),
    "gaussian": (("sigma",), lambda tree: Gaussian(_width(tree["sigma"]))),
    "matrix": (("A",), lambda tree: Matrix([[_number(a) for a in _list(row)] for row in _list(tree["A"])])),
    "sum": (("kernels",), lambda tree: Sum(_parts(tree))),
    "product": (("kernels",), lambda tree: Product(_parts(tree))),
    "scaled": (("factor", "kernel"), lambda tree: kernel_from(tree["kernel"]) * _number(tree["factor"])),
    "power": (("power", "kernel"), lambda tree: Power(kernel_from(tree["kernel"]), _whole(tree["power"]))),
    "polynomial_of": (
        ("coefficients", "kernel"),
        lambda tree: PolynomialOf(kernel_from(tree["kernel"]), tuple(_number(a) for a in _list(tree["coefficients"]))),
    ),
    "exp": (("kernel",), lambda tree: Exponential(kernel_from(tree["kernel"]))),
    "on": (
        ("columns", "kernel"),
        lambda tree: OnColumns(kernel_from(tree["kernel"]), tuple(_whole(j) for j in _list(tree["columns"]))),
    ),
}
