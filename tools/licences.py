"""Licences of everything heatproof needs, from the metadata of the installed packages; writes docs/licences.md.

    python tools/licences.py            # prints the page
    python tools/licences.py --write    # writes it

What a user gets with `pip install heatproof` must be usable in closed and Apache-licensed work: `refused` names every
package, at whatever depth, whose licence is not on the list.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
UNKNOWN = "not known here (not installed)"
# Beginnings of the names of licences that a dependency may have. LGPL: imported as it is, and replaceable by the user.
ALLOWED = re.compile(
    r"(Apache|BSD|[23]-Clause BSD|0BSD|MIT|ISC|PSF|Python Software Foundation|MPL|Mozilla Public|Zlib|CC0|BSL-1\.0"
    r"|CNRI-Python|Unlicense|HPND|LGPL|GNU Lesser General Public)",
    re.IGNORECASE,
)
# The CUDA builds of PyTorch bring these, under NVIDIA's own terms; the CPU builds do not.
VENDOR = re.compile(r"(nvidia|cuda)-")


def permitted(licence: str) -> bool:
    """Whether one alternative of the expression has all its parts on the list."""
    alternatives = re.split(r"\s+OR\s+", licence.strip("() "), flags=re.IGNORECASE)
    parts = (re.split(r"\s+AND\s+|;\s*", one.strip("() "), flags=re.IGNORECASE) for one in alternatives)
    return any(all(ALLOWED.match(part.strip("() ")) for part in one) for one in parts)


def licence_of(name: str) -> str:
    """The licence expression, else the classifiers, else the first line of the licence field."""
    try:
        about: Any = distribution(name).metadata
    except PackageNotFoundError:
        return UNKNOWN
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    classifiers = [str(line) for line in about.get_all("Classifier") or [] if str(line).startswith("License ::")]
    named = [line.rsplit(" :: ", 1)[-1] for line in classifiers]
    if named:
        return "; ".join(named)
    text = str(about.get("License") or "").strip()
    return "not stated" if text in ("", "UNKNOWN") else text.splitlines()[0][:60]


def closure(requirements: Iterable[str]) -> set[str]:
    """Names of all packages that these requirements bring on this system, themselves included."""
    found: set[str] = set()
    waiting = [(Requirement(line), "") for line in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (requirement.marker and not requirement.marker.evaluate({"extra": extra})) or VENDOR.match(name):
            continue
        wanted = requirement.extras or {""}
        if name in found and not requirement.extras:
            continue
        found.add(name)
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        waiting += [(Requirement(line), one) for line in lines for one in wanted]
    return found


def project() -> dict[str, Any]:
    """The [project] table: what this tree asks for, whatever an older install recorded."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


def refused(requirements: Iterable[str]) -> dict[str, str]:
    """Packages that these requirements bring and whose licence is not on the list."""
    licences = {name: licence_of(name) for name in closure(requirements)}
    return {name: licence for name, licence in sorted(licences.items()) if not permitted(licence)}


def _table(names: Iterable[str]) -> str:
    rows = "\n".join(f"| {name} | {licence_of(name).replace('|', '/')} |" for name in sorted(names))
    return f"| package | licence |\n|---|---|\n{rows}\n"


def page(about: Mapping[str, Any]) -> str:
    """The page: what every user installs, then what each extra adds."""
    runtime = closure(about["dependencies"])
    parts = [
        "# Licences\n\nheatproof is under the Apache License 2.0. These are the licences of the packages it needs, as "
        "their own metadata state them, on Linux with the CPU build of PyTorch (its CUDA builds add NVIDIA's libraries "
        "under NVIDIA's terms). Made by `python tools/licences.py --write`; a test fails if the page is out of date "
        "or if `pip install heatproof` would bring a package under a licence that is not permissive, MPL or LGPL.\n\n"
        "zennit is under the LGPL: heatproof imports it unchanged, and you may put another version in its place.\n",
        f"## Always\n\n{_table(runtime)}",
    ]
    for extra, lines in about["optional-dependencies"].items():
        if extra in ("test", "bench"):
            continue
        more = closure(lines) - runtime
        parts.append(f"## `heatproof[{extra}]` adds\n\n{_table(more)}")
    direct = {canonicalize_name(Requirement(line).name) for line in about["optional-dependencies"]["test"]}
    parts.append(
        "## For tests only\n\nReference implementations that the tests compare with, and tools; nothing in `src/` "
        f"imports them. krippendorff (GPL-3) is one of them.\n\n{_table(direct - runtime - {'heatproof'})}"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    text = page(project())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)
