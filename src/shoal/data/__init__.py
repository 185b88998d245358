"""Files and tables into a sparse matrix, a vocabulary, and ids, times, owners and labels beside them."""

from shoal.data.batches import read_batches
from shoal.data.dataset import Dataset
from shoal.data.reading import read
from shoal.data.recipe import Recipe
from shoal.data.vocabulary import Vocabulary

__all__ = ["read", "read_batches", "Dataset", "Vocabulary", "Recipe"]
