"""What mkdocs adds to the written pages: catalogues, figures, the command line, the notebooks, the changelog."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from docs_site import catalogue, command_line, maps, protocol_figures  # noqa: E402

OUTSIDE = re.compile(r"\]\((?:\.\./)+((?:src|tests|benchmarks|tools|CONTRIBUTING|README|LICENSE|CITATION)[^)\s]*)\)")


def on_config(config: Any) -> Any:
    """Puts every page of docs/decisions/ into the navigation, by its title."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    decisions = [{page.read_text("utf-8").splitlines()[0].lstrip("# "): f"decisions/{page.name}"} for page in pages]
    for section in config["nav"]:
        for entries in section.values():
            for entry in entries:
                if isinstance(entry, dict) and "Decisions" in entry:
                    entry["Decisions"] = decisions
    return config


@event_priority(100)  # before the plug-in that draws notebooks looks for them
def on_files(files: Files, config: Any) -> Files:
    """Adds what is made, not written, and the notebooks, which lie beside the documentation."""
    pictures = dict(maps.maps())
    made: dict[str, str | bytes] = {f"images/methods/{name}.png": png for name, png in pictures.items()}
    made |= {f"images/protocols/{name}.svg": svg for name, svg in protocol_figures.figures().items()}
    addresses = {name: f"../images/methods/{name}.png" for name in pictures}
    for kind in catalogue.KINDS:
        made[catalogue.page_name(kind)] = catalogue.page(kind, addresses if kind == "method" else None)
    made["reference/command_line.md"] = command_line.page()
    made["changelog.md"] = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        files.append(File(f"examples/{notebook.name}", str(ROOT), config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Links to files outside the site lead to the repository; links into `docs/` stay."""
    repository = f"{config['extra']['repository']}/blob/main/"
    inside = re.sub(r"\]\(docs/([\w/-]+\.md(?:#[\w-]*)?)\)", r"](\1)", markdown)
    return OUTSIDE.sub(lambda found: f"]({repository}{found[1]})", inside)
