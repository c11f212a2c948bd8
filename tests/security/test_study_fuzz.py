"""Mutated study files and component texts: made, or refused in a sentence of heatproof's own."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heatproof import data, models, registry
from heatproof.errors import HeatproofError
from heatproof.spec import user_code, user_files
from heatproof.spec.parse import components, parse
from heatproof.spec.study import Study, load

METHODS = [
    *["saliency", "integrated_gradients(steps=4)", "smoothgrad", "inverted(method=grad_cam)", "expected_gradients"],
    *["lime", "precomputed(path=maps)"],
]
METRICS = ["srg(points=3)", "mif(occlusion=occlusion(imputer=telea))", "mcs", "roar_free"]
DATASETS = ["two_factor", "mosaic(per_class=1)"]


def _first(kind: registry.Kind, texts: list[str]) -> list[Any]:
    """Those of the texts that are known: a renamed component is no reason to fail here."""
    made = []
    for text in texts:
        try:
            made.append(parse(kind, text))
        except HeatproofError:
            continue
    assert len(made) >= 2
    return made


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    study = Study(
        ["embedded:object"], _first("dataset", DATASETS), _first("method", METHODS), _first("metric", METRICS)
    )
    answer: dict[str, Any] = json.loads(json.dumps(study.plain()))
    return answer


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something can be changed, at every depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*at, name)
        yield from _places(item, (*at, name))


def _deep(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = {"fields": [value]}
    return value


VALUES: list[Callable[[random.Random], Any]] = [
    lambda _: None,
    lambda _: True,
    lambda r: r.choice([0, -1, 1, 2, 2**31, 2**63, -(2**63), 10**30]),
    lambda r: r.choice([0.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf")]),
    lambda r: r.choice(
        ["", " ", "a", "none", "\0", "\ud800", "a" * 30_000, "../..", "/", "'", "(", "srg", "x.csv", "hf:"]
    ),
    lambda r: r.choice(
        ["embedded:", "embedded:x", "torchvision:", "bcos:resnet18@/nowhere", "file", "a.py:b", "two_factor("]
    ),
    lambda r: r.choice(
        [
            [],
            {},
            [[]],
            [None],
            {"": None},
            {"fields": None},
            {"fields": {}},
            [{}],
            {"dataset": "folder", "fields": [3], "a": 1},
        ]
    ),
    lambda r: {
        r.choice([*registry.KINDS, "class", "function", "object", "partial"]): r.choice([None, 3, [], {}, "a", "srg"])
    },
    lambda r: {
        "class": r.choice(["heatproof.types:View", "heatproof.types:Model", "heatproof.spec.study:Study"]),
        "fields": {},
    },
    lambda r: {
        "class": "heatproof.occlusion.game:Occlusion",
        "fields": r.choice([[], None, {"imputer": 3}, {"no": 1}]),
    },
    lambda r: {"method": r.choice(registry.names("method")), "fields": {}},
    lambda r: {"metric": r.choice(registry.names("metric")), "fields": {}},
    lambda r: {
        "dataset": r.choice(registry.names("dataset")),
        "fields": {"path": r.choice([3, "", "/nowhere", [], [[3]], {"a": 1}, None])},
    },
    lambda r: _deep(r.choice([3, 30, 100])),
]


def mutated(study: dict[str, Any], r: random.Random) -> dict[str, Any]:
    """The study with one to three things removed, renamed, doubled, moved or put in."""
    study = copy.deepcopy(study)
    for _ in range(r.randint(1, 3)):
        places = list(_places(study))
        if not places:
            break
        *way, last = r.choice(places)
        home: Any = study
        for step in way:
            home = home[step]
        how = r.choice(["remove", "put", "put", "put", "rename", "swap", "double"])
        if how == "remove":
            del home[last]
        elif how == "put":
            home[last] = r.choice(VALUES)(r)
        elif how == "rename" and isinstance(home, dict):
            home[r.choice([f"{last}x", "", "fields", "class", "method"])] = home.pop(last)
        elif how == "swap":
            other: Any = study
            for step in r.choice(places):
                other = other[step]
            home[last] = copy.deepcopy(other)
        elif isinstance(home, list):
            home.append(copy.deepcopy(home[last]))
    return study


def _foreign(trials: Iterator[tuple[Any, Callable[[], Any]]]) -> list[str]:
    """What failed with an error that is not heatproof's."""
    found = []
    for what, attempt in trials:
        try:
            attempt()
        except HeatproofError:
            pass
        except Exception as error:
            found.append(f"{type(error).__name__}: {str(error)[:150]} from {str(what)[:600]}")
    return found


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    real = models.load

    def no_network(spec: str, trust_pickle: bool = False) -> Any:
        """Specs are read as ever; what would be downloaded is refused here."""
        if isinstance(spec, str) and spec.strip().startswith(("torchvision:", "timm:", "hf:", "efficientnet")):
            raise HeatproofError("this test does not download")
        return real(spec, trust_pickle)

    monkeypatch.setattr(models, "load", no_network)
    return tmp_path


def _studies(stored: dict[str, Any], place: Path, count: int, seed: int) -> Iterator[tuple[Any, Callable[[], Any]]]:
    r = random.Random(seed)
    file = place / "study.json"
    for _ in range(count):
        study = mutated(stored, r)
        text = json.dumps({"heatproof_study": 1, "studies": [study]})
        if r.random() < 0.1:  # damage of the text itself
            cut = r.randrange(len(text))
            text = text[:cut] + r.choice(["", "\0", '"', "}", "[", "é"]) + text[cut + r.randint(0, 3) :]
        file.write_text(text)
        yield study, lambda: load(file)


@pytest.mark.parametrize("count", [400, pytest.param(8000, marks=pytest.mark.slow)])
def test_mutated_studies_load_or_are_refused_in_a_sentence(stored: dict[str, Any], offline: Path, count: int) -> None:
    assert _foreign(_studies(stored, offline, count, seed=count)) == []


PIECES = [
    *["saliency", "srg", "telea", "two_factor", "mosaic", "inverted", "integrated_gradients", "occlusion", "zzz"],
    *[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "=",
        ":",
        "@",
        ".",
        "..",
        "'",
        '"',
        "\\",
        "\n",
        "\0",
        " ",
        "#",
        ";",
        "*",
        "**",
    ],
    *[
        "steps",
        "method",
        "imputer",
        "of",
        "layer",
        "path",
        "per_class",
        "points",
        "fields",
        "_",
        "__class__",
        "lambda: 0",
    ],
    *["1", "-1", "1e999", "nan", "0x", "1_", "10" * 3000, "None", "true", "b'x'", "f'{x}'", "...", "1j", "{[]: 1}"],
    *[
        "é",
        "\ud800",
        "\u202e",
        "ﬁ",
        "a.py:B",
        "./b.py:C(",
        "hf:",
        "embedded:",
        "x.csv",
        "~",
        "~nobody/x",
        "/",
        "if",
        "yield",
    ],
    *["(" * 300, "-" * 5000, "[" * 5000, "not " * 3000, "a" * 30_000, "(" * 100_000, "x=" * 2000],
]
WHOLE = [
    "integrated_gradients(steps=32)",
    "inverted(method=grad_cam(layer=features.0))",
    "srg(points=3,occlusion=occlusion(imputer=telea))",
    "mosaic(of=folder(path='/a b'),per_class=2)",
    "embedded:object",
    "saliency,random,lrp",
    "smoothgrad(draws=2)",
]


def text_of(r: random.Random) -> str:
    """A text that a person might have typed, damaged, or one of pieces."""
    if r.random() < 0.5:
        return "".join(r.choice(PIECES) for _ in range(r.randint(1, 8)))
    text = r.choice(WHOLE)
    for _ in range(r.randint(1, 4)):
        cut = r.randint(0, len(text))
        text = text[:cut] + (r.choice(PIECES) if r.random() < 0.7 else "") + text[cut + r.randint(0, 4) :]
    return text


def _texts(count: int, seed: int) -> Iterator[tuple[Any, Callable[[], Any]]]:
    r = random.Random(seed)
    readers: list[Callable[[str], Any]] = [
        *[lambda text, kind=kind: parse(kind, text) for kind in registry.KINDS if kind != "model"],
        lambda text: components("method", text),
        lambda text: components("metric", text),
        models.load,
        data.load,
        user_code.names_file,
    ]  # type: ignore[list-item]
    for _ in range(count):
        text, reader = text_of(r), r.choice(readers)
        yield text, lambda text=text, reader=reader: reader(text)  # type: ignore[misc]


@pytest.mark.parametrize("count", [600, pytest.param(12_000, marks=pytest.mark.slow)])
def test_damaged_texts_are_read_or_refused_in_a_sentence(offline: Path, count: int) -> None:
    assert _foreign(_texts(count, seed=count)) == []


EVIL = ["evil.py:Ours", "evil.py", ":Ours", "'evil.p' 'y:Ours'", "'evil\\x2epy:Ours'", "./evil.py:Ours(k=2)", "py:Ours"]


@pytest.mark.parametrize("count", [300, pytest.param(6000, marks=pytest.mark.slow)])
def test_no_text_runs_a_file_that_it_was_not_found_to_name(
    offline: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """What a stored study holds is let through by `names_file` alone: it must see all that the readers see."""
    canary = offline / "ran"
    (offline / "evil.py").write_text(f"from pathlib import Path\nPath({str(canary)!r}).touch()\nclass Ours: pass\n")
    r = random.Random(count)
    monkeypatch.setattr(f"{__name__}.PIECES", [*PIECES[:60], *EVIL * 8])
    seen = 0
    for _ in range(count):
        text = text_of(r)
        for read in (lambda text: parse("dataset", text), data.load, models.load):
            with contextlib.suppress(HeatproofError):
                read(text)
        if canary.exists():
            seen += 1
            assert user_code.names_file(text), text
            canary.unlink()
            user_files._read.cache_clear()
    assert seen  # else nothing was tried


@pytest.mark.parametrize("hidden", ["evil.py:X", "a(b=evil.py:X)", "a(b='evil.p' 'y:X')", "a(b='evil\\x2epy:X')"])
def test_a_file_in_a_text_is_found_however_it_is_spelt(hidden: str) -> None:
    assert user_code.names_file(hidden)
    for _ in range(3):  # a text within a text within …
        hidden = f"outer(of={hidden!r})"
        assert user_code.names_file(hidden)


def test_what_names_no_file_is_not_taken_for_code() -> None:
    for text in (
        "/home/a/photos (2)",
        "it's.py",
        "C:\\pictures\\x",
        "features.0",
        "embedded:object",
        "a.python:b",
        "don't",
    ):
        assert not user_code.names_file(text)
