"""Recipes: one command of heatproof each, at two scales. Running it again goes on where it was stopped."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Scale = Literal["quick", "full"]
SCALES: tuple[Scale, ...] = ("quick", "full")


@dataclass(frozen=True)
class Folders:
    """Pictures that do not come with heatproof."""

    photos: Path | None = None
    masks: Path | None = None

    def filled(self, words: str) -> str:
        """With the folders in place of their names."""
        return words.replace("{photos}", str(self.photos)).replace("{masks}", str(self.masks))


@dataclass(frozen=True, eq=False)
class Recipe:
    """What `heatproof run` is given, by scale; a recipe without a quick form needs pictures of the user."""

    name: str
    about: str  # what is judged, in a sentence
    words: Mapping[Scale, str]

    @property
    def needs(self) -> tuple[str, ...]:
        """Which folders it takes."""
        return tuple(one for one in ("photos", "masks") if any(f"{{{one}}}" in words for words in self.words.values()))

    def place(self, runs: Path, scale: Scale) -> Path:
        return runs / f"{self.name}-{scale}"

    def shown(self, scale: Scale) -> str:
        """The command as a reader would type it."""
        return f"heatproof run {self.words[scale]}".replace("{", "").replace("}", "/")

    def run(self, runs: Path, scale: Scale, folders: Folders, workers: str) -> int:
        """Run it, or go on with it; the exit status."""
        words = shlex.split(folders.filled(self.words[scale]))
        command = [sys.executable, "-m", "heatproof.cli", "run", *words, "--out", str(self.place(runs, scale))]
        return subprocess.run([*command, "--workers", workers, "--repeats", "0", "--quiet"], check=False).returncode
