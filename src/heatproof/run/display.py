"""What a run reports to while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heatproof.run.pace import Pace, Progress

Watch = Callable[[int, int, str], None]  # (units done, units in all, label of the last unit)


@dataclass(frozen=True)
class Display:
    """A plain counter, a pace that knows the time left, both or none."""

    watch: Watch | None = None
    pace: Pace | None = None

    def phase(self, name: str, done: int, total: int) -> None:
        if self.pace:
            self.pace.show(Progress(name, done, total))

    def unit(self, done: int, total: int, label: str) -> None:
        if self.watch:
            self.watch(done, total, label)
        if self.pace:
            self.pace.tick(label)

    def of_round(self, before: int, most: int, standing: Callable[[], str]) -> Display:
        """That of one round: `before` units are done in earlier ones, `most` there would be without a rule to stop."""

        def in_all(done: int, _: int, label: str) -> None:
            if self.watch:
                self.watch(before + done, most, f"{standing()} · {label}")

        return Display(in_all, self.pace)
