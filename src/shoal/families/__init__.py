"""Mixtures of exponential families with thousands of components: documents, sets, counts, measurements."""
