"""The tools in four tiers of detail, each page within a budget of tokens."""

from broker.tiers.pages import Tier, TierPage
from broker.tiers.scores import TierScores, ToolScore
from broker.tiers.statistics import CallStatistics, ToolStatistics
from broker.tiers.tiers import HeldStubs, Tiers
from broker.tiers.tokens import TokenCounter, token_counter

__all__ = [
    "CallStatistics",
    "HeldStubs",
    "Tier",
    "TierPage",
    "TierScores",
    "Tiers",
    "TokenCounter",
    "ToolScore",
    "ToolStatistics",
    "token_counter",
]
