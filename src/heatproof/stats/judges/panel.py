"""A panel: the cards of one audit, and what they were made on."""

from __future__ import annotations

from dataclasses import dataclass

from heatproof.errors import BadInput
from heatproof.stats.judges.judge_card import JudgeCard


@dataclass(frozen=True)
class Panel:
    """The cards of an audit, those that hold first, and what they were made on."""

    model: str
    dataset: str
    pictures: int
    truth: str
    methods: tuple[str, ...]
    cards: tuple[JudgeCard, ...]
    seconds: float  # of processor time in all

    def card(self, metric: str) -> JudgeCard:
        """The card of a metric, by its label."""
        found = [card for card in self.cards if card.metric == metric]
        if not found:
            raise BadInput(f"no card for {metric!r}: there are {', '.join(card.metric for card in self.cards)}")
        return found[0]
