"""The judges judged: a card for every metric, from maps of known quality."""

from heatproof.audit.judges.panel import audit
from heatproof.stats.judges.judge_card import JudgeCard
from heatproof.stats.judges.panel import Panel

__all__ = ["JudgeCard", "Panel", "audit"]
