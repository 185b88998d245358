"""Multiple-choice knapsacks: one item per class, the most value within a few totals. Knows nothing of auctions."""

from shoal.auction.solver.problem import Problem, Row, is_feasible
from shoal.auction.solver.solve import Solution, solve

__all__ = ["Problem", "Row", "Solution", "is_feasible", "solve"]
