"""Multiple-choice knapsack problems with a few constraints; independent of auctions."""

from shoal.auction.solver.problem import Problem, Row, is_feasible
from shoal.auction.solver.solve import Solution, solve

__all__ = ["Problem", "Row", "Solution", "is_feasible", "solve"]
