"""Studies, models and maps of a stranger: nothing in them runs, and each is refused in a sentence."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from heatproof import data, models
from heatproof.cli import app
from heatproof.errors import BadInput, HeatproofError, UntrustedCode
from heatproof.models._support.weights import read_weights
from heatproof.spec import recipe, study_file, user_code
from heatproof.spec.parse import parse
from heatproof.spec.study import Study, load
from heatproof.storage import sealed_json

Stored = dict[str, Any]

EVIL = """
from pathlib import Path

Path({marker!r}).touch()

def factory():
    raise RuntimeError("ran")

class Ours:
    higher_is_better = True
    def __call__(self, *anything):
        raise RuntimeError("ran")

study = None
"""


@pytest.fixture(scope="module")
def harmless() -> Stored:
    """What a run of registered components stores."""
    study = Study(["embedded:object"], ["two_factor"], ["saliency"], ["srg(points=3)"], limit=2)
    stored: Stored = json.loads(json.dumps(study.plain()))
    return stored


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that hostile code would touch; `evil.py` lies in the working directory."""
    place = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(EVIL.format(marker=str(place)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return place


def _touch(marker: Path) -> list[str]:
    return ["sh", "-c", f"touch {marker}"]


def _method(make: Callable[[Path], Any]) -> Callable[[Stored, Path], None]:
    def put(study: Stored, marker: Path) -> None:
        study["methods"] = [make(marker)]

    return put


def _metric_field(name: str, make: Callable[[Path], Any], metric: str = "srg") -> Callable[[Stored, Path], None]:
    def put(study: Stored, marker: Path) -> None:
        study["metrics"] = [{"metric": metric, "fields": {name: make(marker)}}]

    return put


def _dataset(make: Callable[[Path], Any]) -> Callable[[Stored, Path], None]:
    def put(study: Stored, marker: Path) -> None:
        study["datasets"] = [make(marker)]

    return put


def _model(spec: str, **more: str) -> Callable[[Stored, Path], None]:
    def put(study: Stored, marker: Path) -> None:
        study["models"] = [{"spec": spec, **more}]

    return put


def _popen(marker: Path) -> Stored:
    return {"class": "subprocess:Popen", "fields": {"args": _touch(marker)}}


def _occluded(imputer: Any) -> Stored:
    return {"class": "heatproof.occlusion.game:Occlusion", "fields": {"imputer": imputer}}


CODE: dict[str, Callable[[Stored, Path], None]] = {
    "a class that starts a process": _method(_popen),
    "a function": _method(lambda _: {"function": "os:system"}),
    "a function with a source": _method(lambda _: {"function": "evil:factory", "source": ""}),
    "an object": _method(lambda _: {"object": "evil:Ours", "source": "0"}),
    "a class of a file": _method(lambda marker: {"class": f"{marker.parent / 'evil.py'}:Ours", "fields": {}}),
    "a class of a module that lies about": _method(lambda _: {"class": "evil:Ours", "fields": {}}),
    "a partial of eval": _method(
        lambda marker: {
            "partial": {"function": "builtins:eval"},
            "arguments": [f"open({str(marker)!r}, 'w')"],
            "keywords": {},
        }
    ),
    "a partial within a class": _method(
        lambda marker: {
            "class": "heatproof.occlusion.game:Occlusion",
            "fields": {
                "imputer": {"partial": {"function": "os:system"}, "arguments": [f"touch {marker}"], "keywords": {}}
            },
        }
    ),
    "a process in a registered metric's field": _metric_field("points", _popen),
    "a process in a nested field": _metric_field("occlusion", lambda marker: _occluded(_popen(marker))),
    "a process in a list of a field": _metric_field("points", lambda marker: [[_popen(marker)]]),
    "a process in a mapping of a field": _metric_field("points", lambda marker: {"a": {"b": _popen(marker)}}),
    "a process as a data set": _dataset(_popen),
    "a process that a data set is made of": _dataset(
        lambda marker: {"dataset": "mosaic", "fields": {"of": _popen(marker)}}
    ),
    "a module attribute": _method(lambda _: {"class": "heatproof.spec.recipe:sys.modules", "fields": {}}),
    "a walk over dunders": _method(lambda _: {"class": "heatproof.types:View.__init__.__globals__", "fields": {}}),
    "heatproof's own importer": _method(
        lambda marker: {
            "class": "heatproof.spec.user_files:imported",
            "fields": {"where": f"{marker.parent / 'evil.py'}:Ours"},
        }
    ),
    "heatproof's own file reader": _method(
        lambda marker: {
            "class": "heatproof.models.from_file:load_from_file",
            "fields": {"path": str(marker.parent / "evil.py")},
        }
    ),
    "a name that heatproof only imports": _method(lambda _: {"class": "heatproof.spec.recipe:Path", "fields": {}}),
    "a module that looks like heatproof's": _method(lambda _: {"class": "heatproof_evil:Ours", "fields": {}}),
    "the loader of model files": _method(
        lambda marker: {"model": "file", "fields": {"path": str(marker.parent / "evil.py"), "factory": "factory"}}
    ),
    "a loader that may trust pickles": _metric_field(
        "points", lambda _: {"model": "torchvision", "fields": {"weights": "evil.pt", "trust_pickle": True}}
    ),
    "a model factory": _model("evil.py:factory"),
    "a model factory by its whole path": _model("embedded:object", **{"from": "evil.py:factory"}),
    "a model factory in a metric": _metric_field("contrast", lambda _: "evil.py:factory", "mcs"),
    "a data set's text in an imputer": _metric_field(
        "occlusion",
        lambda _: _occluded({"imputer": "train_set", "fields": {"donors": "mosaic(of=evil.py:Ours(k=2))"}}),
    ),
    "a text with an escaped dot": _metric_field("contrast", lambda _: "mosaic(of='evil\\x2epy:Ours')", "mcs"),
    "a text in two halves": _metric_field("contrast", lambda _: "mosaic(of='evil.p' 'y:Ours'(k=2))", "mcs"),
    "a text within a text": _metric_field("contrast", lambda _: "a(b=\"c(d='evil\\\\x2epy:Ours')\")", "mcs"),
}


def _refused(study: Stored, marker: Path) -> str:
    file = marker.parent / "study.json"
    file.write_text(json.dumps({"heatproof_study": 1, "studies": [study]}))
    with pytest.raises(HeatproofError) as caught:
        load(file)
    answer = CliRunner().invoke(app, ["run", str(file), "--out", str(marker.parent / "out"), "--quiet"])
    assert answer.exit_code == 2, answer.output
    assert isinstance(answer.exception, SystemExit)
    assert not marker.exists()
    assert not (marker.parent / "out").exists()
    assert isinstance(caught.value, UntrustedCode) or "--trust-code" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("what", CODE)
def test_code_that_a_study_names_is_listed_and_refused(harmless: Stored, marker: Path, what: str) -> None:
    study = copy.deepcopy(harmless)
    CODE[what](study, marker)
    message = _refused(study, marker)
    assert "names code" in message
    assert "studies[0]." in message
    assert "--trust-code" in message


@pytest.mark.parametrize("what", CODE)
def test_a_recipe_by_itself_runs_no_code(harmless: Stored, marker: Path, what: str) -> None:
    study = copy.deepcopy(harmless)
    CODE[what](study, marker)
    with pytest.raises(HeatproofError):
        Study.from_plain(study)
    for part in user_code.COMPONENTS:
        if study[part] != harmless[part] and "mcs" not in str(study[part]) and "train_set" not in str(study[part]):
            with pytest.raises(HeatproofError):
                recipe.build(study[part])
    assert not marker.exists()


def test_a_seal_is_no_passport(harmless: Stored, marker: Path) -> None:
    file = marker.parent / "study.json"
    study = {**harmless, "methods": [_popen(marker)]}
    file.write_bytes(sealed_json.written({"heatproof_study": 1, "studies": [study]}))
    with pytest.raises(UntrustedCode, match="subprocess:Popen"):
        load(file)
    file.write_bytes(sealed_json.written({"heatproof_study": 1, "studies": [harmless]}))
    assert load(file)[0].limit == 2
    file.write_text(file.read_text().replace('"limit": 2', '"limit": 3'))
    with pytest.raises(BadInput, match="take its line 'seal' out"):
        load(file)
    assert not marker.exists()


def test_the_folder_of_a_study_is_no_place_to_import_from(
    harmless: Stored, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook, where Python looks for modules in the working directory first."""
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    folder = marker.parent / "pictures"
    folder.mkdir()
    (folder / "lazily_imported.py").write_text(f"from pathlib import Path\nPath({str(marker)!r}).touch()\n")

    def build(*_: Any, **__: Any) -> None:
        assert Path.cwd() == folder
        with pytest.raises(ImportError):
            importlib.import_module("lazily_imported")
        raise BadInput("far enough")

    monkeypatch.setattr(recipe, "build", build)
    with pytest.raises(BadInput, match="far enough"):
        Study.from_plain({**harmless, "folder": str(folder)})
    assert sys.path[0] == ""
    assert not marker.exists()


def test_every_place_is_listed(harmless: Stored, marker: Path) -> None:
    study = copy.deepcopy(harmless)
    study["models"] = [{"spec": "evil.py:factory"}]
    study["methods"] += [_popen(marker), {"function": "os:system"}]
    message = _refused(study, marker)
    for line in ("studies[0].models[0]: evil.py:factory", "methods[1]: subprocess:Popen", "methods[2]: os:system"):
        assert line in message


def test_the_python_file_of_a_study_is_not_run_even_to_find_what_is_missing(harmless: Stored, marker: Path) -> None:
    study = {**copy.deepcopy(harmless), "file": str(marker.parent / "evil.py")}
    assert Study.from_plain(study).file  # all is found without it
    study["methods"] = [{"method": "known_to_that_file_only", "fields": {}}]
    assert "evil.py" in _refused(study, marker)
    study["methods"], study["models"] = harmless["methods"], [{"spec": "ours"}]
    message = _refused(study, marker)
    assert "was made in Python" in message
    assert "--trust-code" in message


def test_trusted_code_runs_and_is_listed_first(harmless: Stored, marker: Path) -> None:
    study = {**copy.deepcopy(harmless), "models": [{"spec": "evil.py:factory"}]}
    file = marker.parent / "study.json"
    file.write_text(json.dumps({"studies": [study]}))
    answer = CliRunner().invoke(app, ["run", str(file), "--trust-code", "--quiet"])
    assert "Trusted to run: studies[0].models[0]: evil.py:factory" in answer.output
    assert marker.exists()


def test_a_model_named_on_the_command_line_is_the_callers_own(harmless: Stored, marker: Path) -> None:
    file = marker.parent / "study.json"
    file.write_text(json.dumps({"studies": [harmless]}))
    with pytest.raises(HeatproofError, match="ran"):
        load(file, models=["evil.py:factory"])
    assert marker.exists()


@pytest.mark.parametrize("name", ["saliency", "evil_plugin", "heatproof.methods.saliency"])
def test_only_what_is_registered_is_a_component(name: str) -> None:
    known = name == "saliency"
    found = user_code.named(
        [{"models": [], "datasets": [], "metrics": [], "methods": [{"method": name, "fields": {}}]}]
    )
    assert found == []
    if known:
        assert recipe.build({"method": name, "fields": {}}) == parse("method", name)
    else:
        with pytest.raises(HeatproofError, match="No method is called"):
            recipe.build({"method": name, "fields": {}})


class _Touches:
    """A pickle that touches a file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt", ".pkl", ".safetensors"])
@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_pickles_as_weights_do_not_run(marker: Path, suffix: str, how: str) -> None:
    file = marker.parent / f"weights{suffix}"
    if how == "torch":
        torch.save({"state_dict": _Touches(marker)}, file)
    else:
        file.write_bytes(pickle.dumps(_Touches(marker)))
    with pytest.raises(HeatproofError):
        read_weights(file)
    with pytest.raises(HeatproofError):
        models.load(f"bcos:resnet18@{file}")
    assert not marker.exists()


def test_pickles_as_weights_of_a_stored_study_do_not_run(harmless: Stored, marker: Path) -> None:
    torch.save(_Touches(marker), marker.parent / "weights.pt")
    _refused({**harmless, "models": [{"spec": f"bcos:resnet18@{marker.parent / 'weights.pt'}"}]}, marker)


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_maps_of_objects_do_not_run(marker: Path, suffix: str) -> None:
    array = np.array([_Touches(marker)], dtype=object)
    folder = marker.parent / "maps"
    folder.mkdir()
    batch = data.load("two_factor").batch([0])
    place = folder / f"{batch.ids[0].replace('/', '_')}.npy"
    if suffix == ".npz":
        place = marker.parent / "maps.npz"
        np.savez(place, **{batch.ids[0]: array})
    else:
        np.save(place, array, allow_pickle=True)
    method = parse("method", f"precomputed(path={place if suffix == '.npz' else folder})")
    with pytest.raises(HeatproofError):
        method(models.load("embedded:object"), batch)
    assert not marker.exists()


@pytest.mark.parametrize("weights", ["", "@random"])
def test_code_in_a_hugging_face_folder_does_not_run(
    marker: Path, monkeypatch: pytest.MonkeyPatch, weights: str
) -> None:
    folder = marker.parent / "hub"
    folder.mkdir()
    (folder / "configuration_evil.py").write_text(EVIL.format(marker=str(marker)))
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "evil",
                "auto_map": {
                    "AutoConfig": "configuration_evil.Ours",
                    "AutoModelForImageClassification": "configuration_evil.Ours",
                },
            }
        )
    )
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("prompted on stdin"))
    with pytest.raises(HeatproofError, match="needs Python code of its repository"):
        models.load(f"hf:{folder}{weights}")
    assert not marker.exists()


NOT_A_STUDY: dict[str, Any] = {
    "no JSON": "{",
    "no object": "[]",
    "nothing": "",
    "no list": '{"studies": {}}',
    "an empty list": '{"studies": []}',
    "a number for a study": '{"studies": [3]}',
    "another form": '{"heatproof_study": 99, "studies": [{}]}',
    "lists as deep as the file is long": '{"studies": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "objects as deep as the file is long": '{"studies": [' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "]}",
    "a number of many digits": '{"studies": [{"seed": ' + "9" * 100_000 + "}]}",
}


@pytest.mark.parametrize("what", NOT_A_STUDY)
def test_what_is_no_study_is_refused(tmp_path: Path, what: str) -> None:
    file = tmp_path / "study.json"
    file.write_text(NOT_A_STUDY[what])
    with pytest.raises(BadInput, match=r"study\.json"):
        load(file)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_bytes(bytes(range(256)))
    with pytest.raises(BadInput, match="not JSON"):
        load(tmp_path / "study.json")


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "study.json"
    with file.open("wb") as handle:
        handle.truncate(study_file.MOST_BYTES + 1)
    with pytest.raises(BadInput, match="at most 64 MB"):
        load(file)


WRONG: dict[str, Any] = {
    "seed": [-1, 2**63, 1.5, True, "0", None, float("nan")],
    "limit": [0, -1, 2**60, 1.5, True, "3", float("inf")],
    "shard": [0, -1, 2**60, 2.5, True, None, "16", float("nan")],
    "target": [3, None, []],
    "notes": [[], "a", 3, {"a": "x" * 10_000_000}, {"a": float("nan")}],
    "file": [3, {}, "a\0b"],
    "folder": [3, {}, "a\0b"],
    "protocol": [3, {}],
    "pictures": [3, {}],
    "models": [[], {}, "embedded:object", [3], [{}], [{"spec": 3}], [{"spec": "embedded:object", "from": 3}]],
    "methods": [
        [],
        {},
        "saliency",
        ["saliency"],
        [None],
        [{}],
        [{"method": 3}],
        [{"method": "saliency", "fields": []}],
    ],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_value_is_refused_by_its_name(harmless: Stored, name: str, value: Any) -> None:
    with pytest.raises(BadInput, match=name) as caught:
        Study.from_plain({**harmless, name: value})
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("part", ["datasets", "methods", "metrics"])
def test_a_component_of_another_kind_is_refused(harmless: Stored, part: str) -> None:
    view = {"class": "heatproof.types:View", "fields": {"size": 8}}
    another = {"datasets": "methods", "methods": "datasets", "metrics": "methods"}[part]
    for item in (view, harmless[another][0]):
        with pytest.raises(BadInput, match="must"):
            Study.from_plain({**harmless, part: [item], "pictures": ["0" * 16]})
