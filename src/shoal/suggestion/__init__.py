"""Suggestion: the best features to add to a set, with probabilities that hold and reasons that add up."""

from shoal.suggestion.learning import update
from shoal.suggestion.reasons import Explanation
from shoal.suggestion.statistics import SuggestionStats, accumulate, merge
from shoal.suggestion.suggester import Suggester
from shoal.suggestion_records import Reason, Suggestion, Suggestions

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
