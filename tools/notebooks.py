"""Runs the notebooks in examples/ from top to bottom.

python tools/notebooks.py            # runs them; exits with 1 where one fails
python tools/notebooks.py --write    # and keeps what they print and draw
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "examples"
MOST = 300_000  # bytes of a notebook with its outputs: small enough to be read in a change


def executed(path: Path, where: Path) -> Any:
    """The notebook with fresh outputs, run in the directory `where`."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(where)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which would differ at every run
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    return notebook


def main() -> int:
    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as where:
            notebook = executed(path, Path(where))
        text = nbformat.writes(notebook) + "\n"
        if len(text) > MOST:
            sys.stderr.write(f"{path.name} takes {len(text)} bytes with its outputs, more than {MOST}\n")
            return 1
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
