"""Runs benchmarks and writes what they print, word for word, into docs/speed.md.

    OMP_NUM_THREADS=1 python benchmarks/record.py engine localisation methods "flipping --parts contest --images 16"

A section of that file is what one command printed, on which machine and when; only the sections of the commands named
here are replaced. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import ast
import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
LEAD = """# Speed

What the benchmarks printed, word for word; `benchmarks/record.py` writes this page. Ratios were measured within one
run, so they carry over to other machines better than seconds do.
"""


def machine() -> str:
    """The processor, as the system calls it."""
    try:
        named = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        named = None
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    return f"{named[1] if named else platform.processor()}, {os.cpu_count()} cores, OMP_NUM_THREADS {threads}"


def printed(words: list[str]) -> str:
    """What the benchmark of that name prints, shown as it comes."""
    command = [sys.executable, str(HERE / f"{words[0]}.py"), *words[1:]]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if running.returncode:
        sys.exit(f"{shlex.join(words)} ended with {running.returncode}: run it alone to see why")
    return "\n".join(lines).strip("\n")


def about(name: str) -> str:
    """The first sentence of the benchmark's own description."""
    message = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or ""
    return message.splitlines()[0]


def section(words: list[str]) -> str:
    body = printed(words)
    when = datetime.now(UTC).date().isoformat()
    return f"{about(words[0])}\n\n{machine()}; {when}.\n\n```\n{body}\n```\n"


def sections(page: str) -> dict[str, str]:
    """Command -> what stands under it."""
    parts = re.split(r"^## `(.*)`\n\n", page, flags=re.M)[1:]
    return {head: body.rstrip("\n") + "\n" for head, body in zip(parts[::2], parts[1::2], strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("benchmarks", nargs="+", help="names without .py, each with its options in one string")
    for requested in parser.parse_args().benchmarks:
        words = shlex.split(requested)
        found = section(words)
        kept = sections(PAGE.read_text()) if PAGE.exists() else {}
        kept[f"python benchmarks/{words[0]}.py {shlex.join(words[1:])}".rstrip()] = found
        PAGE.write_text(LEAD + "".join(f"\n## `{head}`\n\n{body}" for head, body in sorted(kept.items())))


if __name__ == "__main__":
    main()
