"""A small real sample shipped with the package, and generators whose right answer is known.

Every generator takes ``random_state`` and gives a :class:`shoal.Dataset` whose ``labels`` are the truth.
"""

from shoal.datasets.debian import load_debian_packages, sample_path
from shoal.datasets.profiles import make_bernoulli_profiles
from shoal.datasets.streams import make_threads
from shoal.datasets.zipf import make_zipf_ads, make_zipf_topics

__all__ = [
    "load_debian_packages",
    "make_bernoulli_profiles",
    "make_threads",
    "make_zipf_ads",
    "make_zipf_topics",
    "sample_path",
]
