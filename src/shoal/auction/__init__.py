"""From an auction log to back-tested reserve prices."""

from shoal.auction.auction_log import AuctionLog, PageLayout, Policy
from shoal.auction.baseline_policy import baseline_policy
from shoal.auction.cluster import cluster_keywords
from shoal.auction.evaluate import Evaluation, evaluate
from shoal.auction.export import export_plan, write_log
from shoal.auction.landscape import Landscapes, landscapes
from shoal.auction.log_reader import read_log
from shoal.auction.market import Market
from shoal.auction.optimize import Infeasible, Plan, optimize
from shoal.auction.recommend import recommend
from shoal.auction.replay import ReplayTable, Settings, replay
from shoal.auction.statistics import replay_blocks

__all__ = [
    "read_log",
    "landscapes",
    "cluster_keywords",
    "replay",
    "replay_blocks",
    "optimize",
    "recommend",
    "evaluate",
    "Market",
    "baseline_policy",
    "export_plan",
    "write_log",
    "AuctionLog",
    "Evaluation",
    "Infeasible",
    "Landscapes",
    "PageLayout",
    "Plan",
    "Policy",
    "ReplayTable",
    "Settings",
]
