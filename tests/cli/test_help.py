"""What a newcomer asks first: help, examples, the version, completion."""

from __future__ import annotations

import itertools

import pytest
from typer.testing import CliRunner

from heatproof._version import __version__
from heatproof.cli import app
from heatproof.cli._commands import commands
from heatproof.cli._completion import names_of
from heatproof.cli._help import SECTIONS
from heatproof.spec.parse import components, words


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_printed(flag: str) -> None:
    answer = CliRunner().invoke(app, [flag])
    assert (answer.exit_code, answer.output) == (0, f"heatproof {__version__}\n")


def test_every_command_stands_in_one_section_with_its_whole_first_sentence() -> None:
    page = CliRunner().invoke(app, ["-h"]).output
    lines = page.splitlines()
    for name in commands():
        assert sum(line.split()[:1] == [name] and line.startswith("  ") for line in lines) == 1, name
    assert "..." not in page.partition("Judge:")[2]
    assert all(f"{title}:" in lines for title in SECTIONS)
    assert lines.index("Judge:") < lines.index("Read what a run found:")


def _examples(page: str) -> list[str]:
    lines = [line.strip() for line in page.partition("Examples:")[2].splitlines()]
    return [line for line in lines if line.startswith("heatproof ")]


@pytest.mark.parametrize("command", ["", "run", "judge", "explain", "table", "figure"])
def test_examples_have_options_that_exist_and_components_that_are_registered(command: str) -> None:
    shell = CliRunner()
    found = _examples(shell.invoke(app, [*command.split(), "-h"]).output)
    assert len(found) >= 2
    for example in found:
        name, *rest = example.removeprefix("heatproof ").split()
        known = shell.invoke(app, [name, "-h"]).output
        assert all(word in known for word in rest if word.startswith("-"))
        for option, value in itertools.pairwise(rest):
            kind = {"--methods": "method", "--metrics": "metric", "--protocols": "protocol"}.get(option)
            if kind:
                named = ",".join(one for one in words(value.strip('"')) if ".py:" not in one)
                assert components(kind, named)  # type: ignore[arg-type]


def test_the_shell_completes_the_last_name_of_a_list() -> None:
    found = names_of("method")("saliency,integ")
    assert [name for name, _ in found] == ["saliency,integrated_gradients"]
    assert found[0][1].endswith(".")
    assert not names_of("method")("saliency,integ(")
    assert not names_of("nothing")("s")
    assert "--install-completion" in CliRunner().invoke(app, ["-h"]).output
