"""Suggestion: the best features to add to a set, with probabilities that hold and reasons that add up."""

from shoal.records import Reason, Suggestion, Suggestions
from shoal.suggestion.learning import update
from shoal.suggestion.reasons import Explanation
from shoal.suggestion.statistics import SuggestionStats, accumulate, merge
from shoal.suggestion.suggester import Suggester

__all__ = [
    "Explanation",
    "Reason",
    "Suggester",
    "Suggestion",
    "SuggestionStats",
    "Suggestions",
    "accumulate",
    "merge",
    "update",
]
