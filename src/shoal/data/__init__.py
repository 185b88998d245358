"""Files and tables into a sparse matrix, a vocabulary, and the ids, times, owners and labels of the rows."""

from shoal.data.as_dataset import as_dataset
from shoal.data.batches import read_batches
from shoal.data.dataset import Dataset
from shoal.data.read_options import ReadOptions
from shoal.data.reading import read
from shoal.data.recipe import Recipe
from shoal.data.vocabulary import Vocabulary

__all__ = ["read", "read_batches", "as_dataset", "Dataset", "ReadOptions", "Vocabulary", "Recipe"]
