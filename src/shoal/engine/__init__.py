"""Where the work of a model runs: one ``fold`` over blocks of rows, on threads or on a cluster.

A model is learned by three pure functions (``accumulate``, ``merge``, ``update``; see ``statistics.py`` of each
package), and an engine is what folds them over blocks. Models know no engine, and an engine knows no model.
"""

from shoal.engine.checkpoint import checkpointed
from shoal.engine.fold import Engine, Folded, current, engine_of, fold, learning, using
from shoal.engine.partitions import Converted, Partition, Partitions, read_partitions
from shoal.engine.streams import fit_by_key
from shoal.engine.threads import Threads
from shoal.engine.tree import Tree

__all__ = [
    "Converted",
    "Engine",
    "Folded",
    "Partition",
    "Partitions",
    "Threads",
    "Tree",
    "checkpointed",
    "current",
    "engine_of",
    "fit_by_key",
    "fold",
    "learning",
    "read_partitions",
    "using",
]
