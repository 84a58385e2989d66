"""The tables of the net: real ones, cut, and made ones by a seed. Rows are few, so that every model can have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import datasets
from sklearn.preprocessing import SplineTransformer

import certifit as cf

DATA = Path(__file__).parent / "data"
Rng = np.random.Generator


@dataclass
class Table:
    """Rows and a target. kind: of the target, "quantity", "counts", "positive" or "classes".

    roles: sample_weight, offset, exposure of the rows. models: the group of settings (`models.py`) that it is given to.
    place: what is fitted to, where that is not X and y themselves: a function of the table as a frame and of a folder.
    commands: options of `certifit fit` on the table as a CSV file, a list of words each.
    """

    kind: str
    X: Any
    y: Any
    models: str = "linear"
    roles: dict[str, Any] = field(default_factory=dict)
    place: Callable[[pd.DataFrame, Path], Any] | None = None
    encoder: Any = None
    commands: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.place is not None:
            self.X = named(self.X)

    def frame(self) -> pd.DataFrame:
        """Everything in one frame: features, roles, and the target `y`."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        frame = (
            X.copy() if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        )
        return frame.assign(**self.roles, y=np.asarray(self.y))

    def some_rows(self, n: int = 6) -> Any:
        """Rows to predict, from all over the table."""
        picks = np.linspace(0, len(self.y) - 1, n).astype(int)
        return self.X.iloc[picks] if isinstance(self.X, pd.DataFrame) else self.X[picks]


def named(X: Any) -> pd.DataFrame:
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def kept(name: str, target: str) -> tuple[pd.DataFrame, Any]:
    frame = pd.read_csv(DATA / f"{name}.csv").dropna(subset=[target]).reset_index(drop=True)
    return frame.drop(columns=target), frame[target].to_numpy()


def every(data: Any, step: int) -> tuple[Any, Any]:
    return data.data[::step], data.target[::step]


def line(rng: Rng, X: Any, noise: float = 0.3) -> Any:
    """Rounded: products differ in their last bits between processors, and draws of trees follow from these."""
    return (X @ np.linspace(1, -1, X.shape[1]) + noise * rng.normal(size=len(X))).round(6)


def labels(rng: Rng, X: Any, names: tuple[str, ...] = ("no", "yes"), noise: float = 1.5) -> Any:
    score = line(rng, X, noise)
    return np.array(names)[np.digitize(score, np.quantile(score, np.linspace(0, 1, len(names) + 1)[1:-1]))]


def poisson(rng: Rng, X: Any, shift: float = 0.0, exposure: Any = 1.0) -> Any:
    return rng.poisson((exposure * np.exp(0.4 * line(rng, X, 0) + shift)).round(6)).astype(float)


TABLES: dict[str, Callable[[], Table]] = {}


def table(make: Callable[[Rng], Table]) -> Callable[[Rng], Table]:
    """A function of a generator of its own, whose seed is the function's name, is a table of that name."""
    name, seed = make.__name__, crc32(make.__name__.encode())
    TABLES[name] = lambda: make(np.random.default_rng(seed))
    return make


# Real tables.


@table
def flights(rng: Rng) -> Table:
    X, y = kept("flights", "arr_delay")
    encoder = cf.TableEncoder(unseen="reference", min_count=3)
    return Table("quantity", X, y, encoder=encoder, commands=("--model lasso --cv 3", "--model huber --cv 0"))


@table
def houses(rng: Rng) -> Table:
    X, y = kept("houses", "median_house_value")
    commands = ("--model ridge --degree 2", "--model linear --cv 5", "--model regression-tree --holdout 0.2")
    return Table("quantity", X, y, "quantity", encoder=cf.TableEncoder(), commands=commands)


@table
def higgs(rng: Rng) -> Table:
    commands = ("--model logistic", "--model tree --cv 3", "--model gaussian-nb --costs 0=1,1=3")
    return Table("classes", *kept("higgs", "y"), "classes", commands=commands)


@table
def sentences(rng: Rng) -> Table:
    X, y = kept("sentences", "label")
    encoder = cf.TableEncoder(texts=cf.TextBinarizer(binary=False, min_df=2))
    commands = ("--model bernoulli-nb", "--model logistic --cv 3")
    return Table("classes", X, y, "texts", encoder=encoder, commands=commands)


@table
def digits(rng: Rng) -> Table:
    X, y = kept("digits", "label")
    return Table("classes", X.to_numpy()[y < 4], y[y < 4], "classes", commands=("--model discriminant",))


@table
def longley(rng: Rng) -> Table:
    return Table("quantity", *kept("longley", "y"), commands=("--model linear --cv 4", "--model ridge --alpha 0.1"))


@table
def filip(rng: Rng) -> Table:
    X, y = kept("filip", "y")
    return Table("quantity", np.column_stack([X["x"] ** power for power in range(1, 11)]), y)


@table
def noint1(rng: Rng) -> Table:
    return Table("quantity", *kept("noint1", "y"), commands=("--model linear --no-intercept --cv 0",))


@table
def norris(rng: Rng) -> Table:
    return Table("quantity", *kept("norris", "y"), commands=("--cv 0",))


@table
def pontius(rng: Rng) -> Table:
    X, y = kept("pontius", "y")
    return Table("quantity", np.column_stack([X["x"], X["x"] ** 2]), y)


@table
def wampler4(rng: Rng) -> Table:
    X, y = kept("wampler4", "y")
    return Table("quantity", np.column_stack([X["x"] ** power for power in range(1, 6)]), y)


@table
def diabetes(rng: Rng) -> Table:
    commands = ("--model elastic-net --l1-ratio 0.5", "--model quantile --quantile 0.9", "--model svr --cv 0")
    return Table("quantity", *every(datasets.load_diabetes(as_frame=False), 3), "quantity", commands=commands)


@table
def iris(rng: Rng) -> Table:
    X, y = every(datasets.load_iris(), 1)
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    return Table("classes", X, y, "classes", commands=("", "--model logistic --class-weight balanced"))


@table
def wine(rng: Rng) -> Table:
    return Table("classes", *every(datasets.load_wine(), 1), "sums")


@table
def breast_cancer(rng: Rng) -> Table:
    return Table("classes", *every(datasets.load_breast_cancer(), 3), "sums", commands=("--model linear-svm",))


# Made tables of a quantity.


@table
def plain(rng: Rng) -> Table:
    X = rng.normal(size=(120, 4))
    commands = ("", "--model ridge --rule 1se", "--model lasso --nested --cv 3", "--model kernel-ridge --cv 3")
    return Table("quantity", X, line(rng, X), "quantity", commands=commands)


@table
def dummy_trap(rng: Rng) -> Table:
    X = np.column_stack([np.eye(3)[rng.integers(0, 3, 90)], rng.normal(size=90)])
    return Table("quantity", X, line(rng, X), commands=("--model linear",))


@table
def copies(rng: Rng) -> Table:
    X = rng.normal(size=(80, 3))
    return Table("quantity", np.column_stack([X, X[:, 0], 2 * X[:, 1]]), line(rng, X))


@table
def whole_number_sums(rng: Rng) -> Table:
    X = rng.integers(0, 20, size=(100, 3)).astype(float)
    return Table("quantity", np.column_stack([X, X.sum(axis=1)]), line(rng, X))


@table
def near_copies(rng: Rng) -> Table:
    X = rng.normal(size=(80, 3))
    return Table("quantity", np.column_stack([X, X[:, 0] + 1e-7 * rng.normal(size=80)]), line(rng, X))


@table
def splines(rng: Rng) -> Table:
    x = np.sort(rng.uniform(0, 1, (100, 1)), axis=0)
    return Table("quantity", SplineTransformer(8).fit_transform(x), np.sin(6 * x[:, 0]) + 0.1 * rng.normal(size=100))


@table
def weighted(rng: Rng) -> Table:
    X = rng.normal(size=(100, 3))
    roles = {"sample_weight": rng.integers(0, 4, 100).astype(float)}
    commands = ("--model linear --weight sample_weight",)
    return Table("quantity", X, line(rng, X), "quantity", roles=roles, commands=commands)


@table
def float32(rng: Rng) -> Table:
    X = rng.normal(size=(90, 4)).astype(np.float32)
    return Table("quantity", X, line(rng, X).astype(np.float32))


@table
def rare_levels(rng: Rng) -> Table:
    group = np.array(list("aaaaaabbbbccd"))[rng.integers(0, 13, 120)]
    group[:2] = ["once", "never again"]
    x = rng.normal(size=120)
    X = pd.DataFrame({"group": group, "x": x})
    y = x + np.array([len(name) for name in group]) + (group == "b") + 0.2 * rng.normal(size=120)
    return Table("quantity", X, y, encoder=cf.TableEncoder(reference={"group": "b"}), commands=("--model linear",))


@table
def gaps(rng: Rng) -> Table:
    X = rng.normal(size=(120, 4))
    y = line(rng, X)
    X[rng.random(X.shape) < 0.1] = np.nan
    X = pd.DataFrame(X, columns=list("abcd"))
    return Table("quantity", X, y, "quantity", encoder=cf.TableEncoder(), commands=("--model ridge",))


@table
def sparse(rng: Rng) -> Table:
    X = sp.random(150, 30, 0.1, "csr", random_state=np.random.RandomState(7))
    return Table("quantity", X, line(rng, X.toarray(), 0.05))


@table
def parquet(rng: Rng) -> Table:
    X = rng.normal(size=(130, 4))

    def place(frame: pd.DataFrame, folder: Path) -> Any:
        frame.to_parquet(folder / "rows.parquet", row_group_size=40)
        return cf.scan_parquet(folder / "rows.parquet", target="y")

    return Table("quantity", X, line(rng, X), place=place)


@table
def dask(rng: Rng) -> Table:
    X = rng.normal(size=(130, 4))

    def place(frame: pd.DataFrame, folder: Path) -> Any:
        import dask.dataframe as dd

        return cf.from_dask(dd.from_pandas(frame, npartitions=3), "y")

    return Table("quantity", X, line(rng, X), place=place)


@table
def csv_classes(rng: Rng) -> Table:
    X = rng.normal(size=(130, 4))

    def place(frame: pd.DataFrame, folder: Path) -> Any:
        frame.to_csv(folder / "rows.csv", index=False)
        return cf.scan_csv(folder / "rows.csv", target="y")

    return Table("classes", X, labels(rng, X), "sums", place=place)


@table
def celsius_and_fahrenheit(rng: Rng) -> Table:
    celsius = rng.uniform(-10, 35, 100).round(1)
    X = pd.DataFrame({"celsius": celsius, "fahrenheit": celsius * 1.8 + 32, "wind": rng.gamma(2, 5, 100).round(1)})
    return Table("quantity", X, 3 * celsius - X["wind"] + rng.normal(size=100), commands=("--model linear",))


@table
def unix_days(rng: Rng) -> Table:
    day = 19_000 + np.arange(100.0)
    X = np.column_stack([day * 86_400, day % 7, rng.normal(size=100)])
    return Table("quantity", X, 0.01 * (day - 19_000) + X[:, 1] + 0.1 * rng.normal(size=100))


@table
def cents(rng: Rng) -> Table:
    price = rng.integers(100, 500_000, 100).astype(float)
    X = np.column_stack([price, (0.19 * price).round(), price + (0.19 * price).round(), rng.integers(1, 9, 100)])
    return Table("quantity", X, (price * X[:, 3]).round())


@table
def shares(rng: Rng) -> Table:
    X = rng.dirichlet(np.ones(4), 100).round(3)
    X[:, 3] = (1 - X[:, :3].sum(axis=1)).round(3)
    return Table("quantity", X, 10 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=100))


@table
def constant_column(rng: Rng) -> Table:
    X = rng.normal(size=(70, 3))
    X[:, 1] = 2.5
    return Table("quantity", X, line(rng, X), "quantity", commands=("--model linear", "--model ridge"))


@table
def one_column(rng: Rng) -> Table:
    X = rng.uniform(0, 10, (60, 1))
    y = (np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)).round(6)
    return Table("quantity", X, y, "quantity", commands=("--model linear --degree 5", "--model local --cv 3"))


@table
def wide(rng: Rng) -> Table:
    X = rng.normal(size=(40, 70))
    return Table("quantity", X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=40), commands=("--model lasso --cv 5",))


@table
def exact_fit(rng: Rng) -> Table:
    X = rng.integers(-5, 6, (50, 3)).astype(float)
    return Table("quantity", X, X @ [1.0, 2.0, -3.0] + 4, commands=("--model linear --cv 0",))


@table
def outliers(rng: Rng) -> Table:
    X = rng.normal(size=(100, 3))
    y = line(rng, X)
    y[::17] += 1000
    return Table("quantity", X, y, commands=("--model huber",))


@table
def constant_target(rng: Rng) -> Table:
    return Table("quantity", rng.normal(size=(40, 3)), np.full(40, 7.0), commands=("",))


# Counts and positive amounts.


@table
def counts(rng: Rng) -> Table:
    X = rng.normal(size=(150, 4))
    commands = ("--model poisson", "--model poisson-ridge --cv 5", "--model poisson-boosting --rounds 5 --cv 0")
    return Table("counts", X, poisson(rng, X), "counts", commands=commands)


@table
def mostly_zero(rng: Rng) -> Table:
    X = rng.normal(size=(200, 3))
    return Table("counts", X, poisson(rng, X, -3.0), "counts")


@table
def exposed(rng: Rng) -> Table:
    X, exposure = rng.normal(size=(150, 3)), rng.uniform(0.1, 2, 150).round(2)
    roles = {"exposure": exposure, "offset": 0.1 * rng.normal(size=150).round(2)}
    commands = ("--model poisson --exposure exposure --offset offset",)
    return Table("counts", X, poisson(rng, X, 0.5, exposure), "counts", roles, commands=commands)


@table
def amounts(rng: Rng) -> Table:
    X = rng.normal(size=(120, 3))
    y = (np.exp(0.5 * line(rng, X)) * rng.gamma(4, 0.25, 120)).round(6)
    return Table("positive", X, y, "positive", commands=("--model gamma", "--model gamma-ridge --alpha 0.01"))


# Classes.


@table
def two_classes(rng: Rng) -> Table:
    X = rng.normal(size=(120, 3))
    commands = ("", "--model adaboost --rounds 5 --cv 3", "--model svm --cv 3", "--model quadratic --shrinkage 0.1")
    return Table("classes", X, labels(rng, X), "classes", commands=commands)


@table
def separable(rng: Rng) -> Table:
    X = rng.normal(size=(80, 3))
    X += 0.5 * np.sign(X[:, :1]) * [1, 0, 0]
    return Table("classes", X, X[:, 0] > 0, "classes", commands=("--model logistic --alpha 0", "--model logistic"))


@table
def nearly_separable(rng: Rng) -> Table:
    X = rng.normal(size=(80, 2)).round(1)
    return Table("classes", X, (X[:, 0] > 0) | (X[:, 0] == 0) & (rng.random(80) < 0.5), "sums")


@table
def rare_class(rng: Rng) -> Table:
    X = rng.normal(size=(150, 3))
    return Table("classes", X, np.where(line(rng, X, 0.5) > 2.6, "rare", "common"), "classes")


@table
def weighted_classes(rng: Rng) -> Table:
    X = rng.normal(size=(120, 3))
    roles = {"sample_weight": rng.integers(1, 4, 120).astype(float), "offset": rng.normal(size=120).round(2)}
    return Table("classes", X, labels(rng, X), "sums", roles, commands=("--model logistic --offset offset",))


@table
def four_classes(rng: Rng) -> Table:
    X = rng.normal(size=(160, 3))
    return Table(
        "classes", X, labels(rng, X, ("a", "b", "c", "d"), 0.8), "classes", commands=("--model forest --cv 3",)
    )


@table
def sparse_words(rng: Rng) -> Table:
    X = sp.csr_matrix(rng.poisson(0.2, (120, 25)).astype(float))
    return Table("classes", X, labels(rng, X.toarray(), noise=0.2), "sums")


@table
def categories_of_classes(rng: Rng) -> Table:
    X = pd.DataFrame({"colour": rng.choice(["red", "blue", "green"], 140), "size": rng.normal(size=140)})
    y = labels(rng, np.column_stack([X["colour"] == "red", X["size"]]))
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 140), unit="D")
    X = X.assign(day=day.strftime("%Y-%m-%d"), flag=rng.random(140) < 0.4)
    return Table("classes", X.drop(columns="day"), y, "sums", encoder=cf.TableEncoder(), commands=("--model logistic",))
