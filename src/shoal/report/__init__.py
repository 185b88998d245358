"""What people look at: one cluster card for every model, and a report that opens without a network."""

from shoal.report.cards import ClusterCard, FeatureFact, cluster_cards
from shoal.report.page import write_report

__all__ = ["ClusterCard", "FeatureFact", "cluster_cards", "write_report"]
