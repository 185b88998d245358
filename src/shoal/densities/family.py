"""What a family of distributions provides: its natural and its mean parameters, and the way back from each.

Every family here is exponential: ``p(x) = exp(<theta, T(x)> - F(theta))`` with mean parameters ``eta = E T(x)``. Then

    KL(p || q) = <eta_p, theta_p> - F(p)  -  ( <eta_p, theta_q> - F(q) ),

so a whole table of divergences is one matrix product, and the best center of some rows is the plain average of their
natural parameters (for center || row) or of their mean parameters (for row || center).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from shoal.errors import BadInput


class Family(ABC):
    """Rows of parameters of one kind of distribution, as :class:`~shoal.densities.DensityKMeans` sees them."""

    name: str
    layout: str  # the columns of a row, in words
    positive: bool = True  # every parameter is 0 or more
    normalized: bool = False  # F is 0 for every row, because the natural parameters carry it already

    @abstractmethod
    def check(self, X: np.ndarray) -> None:
        """Raise :class:`~shoal.errors.BadInput` unless every row is the parameters of a distribution."""

    @abstractmethod
    def natural(self, X: np.ndarray) -> np.ndarray:
        """theta, one row each."""

    @abstractmethod
    def expectation(self, X: np.ndarray) -> np.ndarray:
        """eta = E T, one row each."""

    @abstractmethod
    def log_normalizer(self, X: np.ndarray) -> np.ndarray:
        """F(theta), one number each."""

    @abstractmethod
    def from_natural(self, theta: np.ndarray) -> np.ndarray:
        """Parameters of the distributions whose natural parameters are these."""

    @abstractmethod
    def from_expectation(self, eta: np.ndarray) -> np.ndarray:
        """Parameters of the distributions whose mean parameters are these."""

    def origin(self, X: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """What :meth:`shift` takes off each row, so that sums of large numbers do not swallow small divergences."""
        return np.zeros(X.shape[1])

    def smoother(self, X: np.ndarray, weights: np.ndarray, amount: float) -> Smoother:
        """How rows are kept away from the edge where a divergence would be infinite."""
        return Smoother(np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(X.shape[1]))

    def negative_entropy(self, X: np.ndarray) -> np.ndarray:
        """``<eta, theta> - F``, one number each."""
        return np.asarray((self.expectation(X) * self.natural(X)).sum(1) - self.log_normalizer(X))

    def kl(self, P: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """KL(P || Q) in nats, for every row of P (down) and of Q (across)."""
        cross = self.expectation(P) @ self.natural(Q).T - self.log_normalizer(Q)[None, :]
        return np.maximum(self.negative_entropy(P)[:, None] - cross, 0.0)


class Smoother:
    """Rows become ``(1 - share) * row + share * typical + added``, column by column."""

    def __init__(self, share: np.ndarray, typical: np.ndarray, added: np.ndarray) -> None:
        self.share, self.typical, self.added = share, typical, added

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.asarray((1 - self.share) * X + self.share * self.typical + self.added)


def safe_log(x: np.ndarray) -> np.ndarray:
    """log(x), with a very large negative number in place of log(0): products with 0 stay 0."""
    return np.log(np.maximum(x, 1e-300))


def weighted_mean(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean of the rows."""
    return np.asarray(weights @ X / weights.sum())


def require_positive(X: np.ndarray, columns: slice, what: str, name: str, *, least: float = 0.0) -> None:
    """Every entry of these columns must be above 0, and at least ``least``."""
    require(X, columns, X[:, columns] > 0, f"{what} must be above 0", name)
    require(X, columns, X[:, columns] >= least, f"{what} must be at least {least:g}", name)


def require_nonnegative(X: np.ndarray, columns: slice, what: str, name: str) -> None:
    """Every entry of these columns must be 0 or more."""
    require(X, columns, X[:, columns] >= 0, f"{what} must be 0 or more", name)


def require(X: np.ndarray, columns: slice, good: np.ndarray, rule: str, name: str) -> None:
    """Name the first row that breaks the rule, and count the rest."""
    if good.all():
        return
    row, column = np.argwhere(~good)[0]
    column += columns.start or 0
    rows = int((~good).any(1).sum())
    # "Negative values in data passed to" is what scikit-learn's own checks look for.
    negative = f"Negative values in data passed to DensityKMeans(family={name!r}): " if X[row, column] < 0 else ""
    raise BadInput(
        f"{negative}row {row}, column {column} of X is {X[row, column]:g}, but {rule} ({rows} of {X.shape[0]} "
        f"rows break "
        f"this). The columns of family {name!r} are described in the documentation of DensityKMeans."
    )


def require_columns(X: np.ndarray, multiple: int, at_least: int, layout: str, name: str) -> None:
    """The number of columns must fit the layout."""
    if X.shape[1] < at_least or X.shape[1] % multiple:
        rule = f"a multiple of {multiple}, " if multiple > 1 else ""
        raise BadInput(
            f"X has {X.shape[1]} feature(s) (columns), but family {name!r} needs {rule}{at_least} or more: {layout}."
        )


def as_distributions(family: Family, X: np.ndarray) -> np.ndarray:
    """Counts of a categorical family become shares."""
    return X / X.sum(1, keepdims=True) if family.name == "categorical" else X
