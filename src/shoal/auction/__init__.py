"""From an auction log to back-tested reserve prices."""

from shoal.auction.cluster import cluster_keywords
from shoal.auction.evaluate import Evaluation, evaluate
from shoal.auction.export import export_plan, write_log
from shoal.auction.landscape import Landscapes, landscapes
from shoal.auction.levels import recommend
from shoal.auction.log import read_log
from shoal.auction.market import Market
from shoal.auction.model import AuctionLog, PageLayout, Policy
from shoal.auction.optimize import Infeasible, Plan, optimize
from shoal.auction.production import production
from shoal.auction.replay import ReplayTable, Settings, replay

__all__ = [
    "read_log",
    "landscapes",
    "cluster_keywords",
    "replay",
    "optimize",
    "recommend",
    "evaluate",
    "Market",
    "production",
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
