"""The judges judged: a card for every metric, from maps of known quality."""

from heatproof.audit.judges.judge_card import JudgeCard
from heatproof.audit.judges.panel import Panel, audit

__all__ = ["JudgeCard", "Panel", "audit"]
