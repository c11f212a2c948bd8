"""The help page: commands in groups, and examples."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

SECTIONS = {
    "Judge": ("demo", "judge", "run", "gather", "audit"),
    "Read what a run found": ("report", "view", "table", "figure", "compare", "consistency", "verify"),
    "Look at heatmaps": ("explain", "tcav"),
    "Components and data": ("list", "check", "data", "train"),
}
OTHERS = "More"
LONGEST = 200  # letters of a command's summary: its first sentence, whole
EXAMPLES = """\b
Examples:
  heatproof demo --quick
  heatproof judge efficientnet-lite0 photos/ --masks masks/ --limit 24
  heatproof run --model torchvision:resnet50 --images photos/ --methods lrp,grad_cam --metrics srg
  heatproof explain --model efficientnet-lite0 dog.jpg --out dog.pdf
  heatproof table runs/latest --format latex

\b
Models: embedded:NAME, efficientnet-lite0, torchvision:NAME, timm:NAME, hf:REPO, clip:FOLDER@PROMPTS,
mine.py:factory.
Components: `heatproof list methods` (metrics, protocols, datasets, imputers, segmenters).
Exit status: 0 complete, 1 a score is missing, 2 bad usage."""


def examples(*lines: str) -> str:
    """The end of a command's help page."""
    return "\n".join(["\b", "Examples:", *(f"  heatproof {line}" for line in lines)])


def ordered(names: list[str]) -> list[str]:
    """Commands in the order of the help page."""
    places = [name for section in SECTIONS.values() for name in section]
    return sorted(names, key=lambda name: (places.index(name) if name in places else len(places), name))


class Grouped(TyperGroup):
    """A group of commands whose help lists them by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        known = {name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))}
        sections = {title: [name for name in names if name in known] for title, names in SECTIONS.items()}
        placed = {name for names in sections.values() for name in names}
        sections[OTHERS] = [name for name in known if name not in placed]
        for title, names in sections.items():
            if names:
                with formatter.section(title):
                    formatter.write_dl([(name, known[name].get_short_help_str(LONGEST)) for name in names])
