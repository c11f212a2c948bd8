"""Licences of what users install: on the list, at every depth, and listed in the docs."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("licences", ROOT / "tools" / "licences.py")
licences = importlib.util.module_from_spec(spec)
spec.loader.exec_module(licences)


def test_nothing_under_the_gpl_reaches_users():
    assert licences.refused(licences.project()["dependencies"]) == {}


def test_a_gpl_package_would_be_refused():
    assert licences.refused(["krippendorff"]) == {"krippendorff": "GPL-3.0-or-later"}


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-or-later", "AGPL-3.0", "MIT AND GPL-2.0", "proprietary", "not stated", ""]
)
def test_refuses(licence):
    assert not licences.permitted(licence)


@pytest.mark.parametrize(
    "licence", ["MIT", "GPL-2.0 OR MIT", "(Apache-2.0 OR BSD-2-Clause) AND MIT", "LGPL-3.0-or-later"]
)
def test_permits(licence):
    assert licences.permitted(licence)


def test_the_page_is_up_to_date():
    """Licences may be reworded from release to release: in another environment only the packages must agree."""
    page = (ROOT / "docs" / "licences.md").read_text()
    about = licences.project()
    listed = set(re.findall(r"^\| ([a-z0-9-]+) \| ", page, re.MULTILINE))
    needed = {licences.Requirement(line).name for line in about["dependencies"]}
    assert {licences.canonicalize_name(name) for name in needed} <= listed
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    versions = {name: licences.distribution(name).version.split("+")[0] for name in needed}
    if all(pins.get(name, version) == version for name, version in versions.items()):
        assert page == licences.page(about), "run: python tools/licences.py --write"


def test_no_module_imports_a_test_dependency():
    about = licences.project()
    tests = {
        licences.canonicalize_name(licences.Requirement(line).name) for line in about["optional-dependencies"]["test"]
    }
    alone = tests - licences.closure(about["dependencies"])
    for extra in ("onnx", "imagenet", "vision", "huggingface", "clip", "diffusion", "medical"):
        alone -= licences.closure(about["optional-dependencies"][extra])
    modules = "|".join(sorted(name.replace("-", "_") for name in alone - {"heatproof"}))
    assert re.search(r"\bcaptum\b", modules)
    assert re.search(r"\bkrippendorff\b", modules)
    for file in (ROOT / "src").rglob("*.py"):
        found = re.search(rf"^\s*(?:import|from) ({modules})\b", file.read_text(), re.MULTILINE)
        assert not found, f"{file}: {found}"
