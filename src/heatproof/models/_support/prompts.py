"""Prompts of a zero-shot classifier: `a photo of a {}` with names from a file, or `a photo of a {cat|dog}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from heatproof.errors import BadInput
from heatproof.storage import any_path

DEFAULT = "a photo of a {}"
NAMES = "classes.txt"  # in the model's folder, one name per line
_PLACE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Prompts:
    """Templates with a place for the class, and the names of the classes."""

    templates: tuple[str, ...]  # with {} where the name goes
    classes: tuple[str, ...]

    def texts(self) -> list[str]:
        """Class by class, the texts of all templates."""
        return [template.replace("{}", name) for name in self.classes for template in self.templates]


def read_prompts(text: str, folder: str | Path, spec: str) -> Prompts:
    """Templates, separated by semicolons, and class names: those in the braces, in a file named there, or in the
    model's folder.
    """
    templates = [part.strip() for part in _unquoted(text or DEFAULT).split(";") if part.strip()]
    places = [_PLACE.findall(template) for template in templates]
    for template, found in zip(templates, places, strict=True):
        if len(found) != 1:
            raise BadInput(
                f"{spec}: the prompt {template!r} must have one {{}} where the name of the class goes, got "
                f'{len(found) or "none"}: write clip:FOLDER@"a photo of a {{}}", or with the names '
                '"a photo of a {cat|dog}"'
            )
    named = list(dict.fromkeys(found[0].strip() for found in places if found[0].strip()))
    if len(named) > 1:
        raise BadInput(
            f"{spec}: its templates name different classes ({' and '.join(named)}): name them in the first, and write "
            "{} in the others"
        )
    classes = _classes(named[0] if named else "", folder, spec)
    return Prompts(tuple(_PLACE.sub("{}", template) for template in templates), classes)


def _classes(named: str, folder: str | Path, spec: str) -> tuple[str, ...]:
    listed = any_path.expanded(named) if named.endswith(".txt") else any_path.expanded(folder) / NAMES
    if named and not named.endswith(".txt"):
        names = [name.strip() for name in named.split("|")]
    elif any_path.is_file(listed):
        names = [line.strip() for line in listed.read_text(encoding="utf-8").splitlines() if line.strip()]
    else:
        raise BadInput(
            f"{spec} does not say which classes there are, and there is no file {listed}: write the names into the "
            f'prompt, "a photo of a {{cat|dog}}", or one per line into {NAMES} in the model\'s folder or into a file '
            'named in the prompt, "a photo of a {names.txt}"'
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or "" in names or twice:
        raise BadInput(
            f"{spec}: class names must be different and not empty, got {', '.join(map(repr, twice or names)) or 'none'}"
        )
    return tuple(names)


def _unquoted(text: str) -> str:
    """Without the quotes of a shell, which a study file or Python call may still have."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
