"""The report's sections. Each is a function of a `Reading` that returns HTML, or None where it does not apply.

The section of a protocol is declared by name, and stands after the curves of runs of that protocol:

    @section_of("pixel_flipping")
    def pixel_flipping(reading: Reading) -> str | None: ...

A plug-in adds a section by an entry point in the group `heatproof.sections` that names the module to import.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points

from heatproof.report.run_numbers import Reading

Section = Callable[[Reading], str | None]

_sections: dict[str, Section] = {}


def section_of(protocol: str) -> Callable[[Section], Section]:
    """Declare a function to be the section of a protocol."""

    def declared(section: Section) -> Section:
        _sections[protocol] = section
        return section

    return declared


def protocol_sections() -> Mapping[str, Section]:
    """The sections by protocol, those of plug-ins included."""
    _load_all()
    return _sections


@cache
def _load_all() -> None:
    for found in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(found.name)
    for point in entry_points(group="heatproof.sections"):
        try:
            point.load()
        except Exception as error:
            warnings.warn(f"section {point.name!r} could not be loaded and is left out: {error}", stacklevel=2)
