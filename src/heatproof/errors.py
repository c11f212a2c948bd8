"""The exceptions. Every message says what, what was wanted, what it got, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HeatproofError(Exception):
    """Every error heatproof raises deliberately."""


class BadInput(HeatproofError, ValueError):
    """A value, file or table that cannot be used."""


class BadShape(BadInput):
    """A tensor of the wrong shape, type or range."""


class BadModel(HeatproofError):
    """A network that cannot be loaded, or that does not answer with logits."""


class OutOfMemory(HeatproofError, MemoryError):
    """Work that needs more memory than there is; nothing is wrong with the input."""

    @classmethod
    def during(cls, work: str) -> OutOfMemory:
        return cls(
            f"memory ran out {work}: close other programs, use fewer --workers (1 needs least) or smaller pictures; "
            "everything finished is kept, and the same command goes on from there"
        )


class UnknownName(HeatproofError, LookupError):
    """A name that is not registered."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str], most: int = 60) -> UnknownName:
        """`No method is called 'saliancy'. Did you mean 'saliency'?`

        With more than `most` names, only the nearest few are listed.
        """
        known = sorted(set(known))
        many = len(known) > most
        close = difflib.get_close_matches(name, known, n=3 if many else 1, cutoff=0.6)
        if close:
            hint = f"Did you mean {' or '.join(map(repr, close))}?"
        elif many:
            nearest = difflib.get_close_matches(name, known, n=min(most, 12), cutoff=0)
            hint = f"Of {len(known)} names, the nearest are: {', '.join(nearest)}."
        else:
            hint = f"There are: {', '.join(known) or 'none'}."
        return cls(f"No {kind} is called {name!r}. {hint}")


class UntrustedCode(HeatproofError):
    """Code that a data file names; it runs only if the caller trusts it."""


class NotApplicable(HeatproofError):
    """A component that does not apply here (a CAM of a network without convolutions); the run records it."""


class Missing(HeatproofError, ImportError):
    """An optional package that is not installed."""

    @classmethod
    def package(cls, package: str, extra: str, purpose: str) -> Missing:
        return cls(
            f"{purpose} needs the package {package!r}, which is not installed: pip install 'heatproof[{extra}]'."
        )
