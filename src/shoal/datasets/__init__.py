"""A small real sample shipped with the package, and generators whose right answer is known.

Every generator takes ``random_state`` and gives a :class:`shoal.Dataset` whose ``labels`` are the truth.
"""

from shoal.datasets.debian import debian_packages, sample_path
from shoal.datasets.profiles import bernoulli_profiles
from shoal.datasets.streams import threads
from shoal.datasets.zipf import zipf_ads, zipf_topics

__all__ = ["bernoulli_profiles", "debian_packages", "sample_path", "threads", "zipf_ads", "zipf_topics"]
