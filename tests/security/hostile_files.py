"""Files of a stranger, each opened in a process of its own that is measured.

`python hostile_files.py FOLDER MEGABYTES`, where MEGABYTES is what the bombs unpack to.

Prints, as JSON, what became of each: the outcome, the seconds and the peak of memory in MB.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import signal
import struct
import sys
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heatproof import data, engine, models, registry
from heatproof.data._support.pictures import read_picture
from heatproof.errors import HeatproofError
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.models._support.weights import read_weights
from heatproof.spec.parse import parse
from heatproof.spec.study import load
from heatproof.types import Batch, Model

SECONDS = 10
CANARY = "ran"

Case = Callable[[Path], Any]
CASES: dict[str, Case] = {}


def case(attempt: Case) -> Case:
    CASES[attempt.__name__.strip("_").replace("_", " ")] = attempt
    return attempt


class Touches:
    """A pickle that touches the canary when it is read."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.home / CANARY,)


_started = 0.0
_bomb = 0  # megabytes


def built() -> None:
    """What is measured starts here: making a bomb takes longer than refusing it."""
    global _started
    _started = time.monotonic()
    signal.alarm(2 * SECONDS)  # the default action ends the process


def _zeros(archive: Path, member: str, head: bytes) -> Path:
    """A zip archive with a member that unpacks to as many megabytes of zeros as requested."""
    packed = zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed, packed.open(member, "w", force_zip64=True) as stream:
        stream.write(head)
        for _ in range(_bomb >> 4):
            stream.write(bytes(1 << 24))
    built()
    return archive


def _packed_zeros() -> bytes:
    packed = zlib.compressobj(1)
    found = b"".join(packed.compress(bytes(1 << 24)) for _ in range(_bomb >> 4)) + packed.flush()
    built()
    return found


def _npy_head(shape: tuple[int, ...], text: str = "") -> bytes:
    words = text or f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    body = words.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body


# Weights


@case
def pickled_weights(home: Path) -> Any:
    torch.save({"state_dict": Touches(home)}, home / "w.pt")
    return read_weights(home / "w.pt")


@case
def bare_pickle_as_weights(home: Path) -> Any:
    (home / "w.pth").write_bytes(pickle.dumps(Touches(home), protocol=2))
    return read_weights(home / "w.pth")


@case
def pickle_in_a_safetensors_file(home: Path) -> Any:
    (home / "w.safetensors").write_bytes(pickle.dumps(Touches(home)))
    return read_weights(home / "w.safetensors")


@case
def scripted_network_as_weights(home: Path) -> Any:
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(home / "w.pt"))  # type: ignore[no-untyped-call]
    return read_weights(home / "w.pt")


@case
def weights_that_unpack_to_gigabytes(home: Path) -> Any:
    return read_weights(_zeros(home / "w.pt", "archive/data.pkl", b""))


@case
def weights_with_a_storage_that_unpacks_to_gigabytes(home: Path) -> Any:
    torch.save({"a": torch.zeros(4)}, home / "small.pt")
    with zipfile.ZipFile(home / "small.pt") as small:
        name = next(one for one in small.namelist() if one.endswith("data.pkl"))
        program = small.read(name)
    bomb = _zeros(home / "w.pt", name.replace("data.pkl", "data/0"), b"")
    with zipfile.ZipFile(bomb, "a") as out:
        out.writestr(name, program)
        out.writestr(name.replace("data.pkl", "version"), "3\n")
    return read_weights(bomb)


@case
def weights_of_a_tensor_without_storage(home: Path) -> Any:
    torch.save({"fc.weight": torch.zeros(1).expand(2**20, 2**20)}, home / "w.pt")
    return models.load(f"bcos:resnet18@{home / 'w.pt'}")


@case
def safetensors_with_an_endless_header(home: Path) -> Any:
    (home / "w.safetensors").write_bytes(struct.pack("<Q", 2**40) + b"{")
    return read_weights(home / "w.safetensors")


@case
def safetensors_that_promise_terabytes(home: Path) -> Any:
    head = json.dumps({"a": {"dtype": "F32", "shape": [2**38], "data_offsets": [0, 2**40]}}).encode()
    (home / "w.safetensors").write_bytes(struct.pack("<Q", len(head)) + head)
    return read_weights(home / "w.safetensors")


@case
def nested_pickle_as_weights(home: Path) -> Any:
    (home / "w.pt").write_bytes(b"\x80\x02" + b"]" * 500_000 + b"a" * 499_999 + b".")
    return read_weights(home / "w.pt")


# Models


def _hub(home: Path, config: dict[str, Any]) -> Path:
    folder = home / "hub"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    code = f"from pathlib import Path\nPath({str(home / CANARY)!r}).touch()\nclass Ours: pass\n"
    for name in ("configuration_evil.py", "modeling_evil.py", "image_processing_evil.py", "__init__.py"):
        (folder / name).write_text(code)
    torch.save({"a": Touches(home)}, folder / "pytorch_model.bin")
    return folder


def _of_a_known_kind(home: Path, config: dict[str, Any]) -> Any:
    import_torchvision("this test")  # which transformers needs for networks that it knows
    tiny = {"model_type": "resnet", "embedding_size": 4, "hidden_sizes": [4], "depths": [1], "layer_type": "basic"}
    folder = _hub(home, {**tiny, **config})
    built()
    return models.load(f"hf:{folder}")


_CODE = {
    "AutoConfig": "configuration_evil.Ours",
    "AutoModelForImageClassification": "modeling_evil.Ours",
    "AutoImageProcessor": "image_processing_evil.Ours",
}


@case
def hugging_face_folder_with_code(home: Path) -> Any:
    return models.load(f"hf:{_hub(home, {'model_type': 'evil', 'auto_map': _CODE})}")


@case
def hugging_face_folder_with_code_and_random_weights(home: Path) -> Any:
    return models.load(f"hf:{_hub(home, {'model_type': 'evil', 'auto_map': _CODE})}@random")


@case
def hugging_face_folder_of_a_known_kind_with_code(home: Path) -> Any:
    return _of_a_known_kind(home, {"auto_map": _CODE})


@case
def hugging_face_folder_with_pickled_weights(home: Path) -> Any:
    return _of_a_known_kind(home, {})


@case
def hugging_face_folder_of_another_repository(home: Path) -> Any:
    away = {name: f"stranger/repository--{where}" for name, where in _CODE.items()}
    return models.load(f"hf:{_hub(home, {'model_type': 'evil', 'auto_map': away})}")


@case
def timm_folder_with_pickled_weights(home: Path) -> Any:
    config = {"architecture": "resnet10t", "num_classes": 3, "pretrained_cfg": {"input_size": [3, 32, 32]}}
    return models.load(f"timm:local-dir:{_hub(home, config)}")


# Heatmaps and label maps


def _picture() -> tuple[Model, Batch]:
    return models.load("embedded:object"), data.load("two_factor(count=2)").batch([0])


def _explained(path: Path) -> Any:
    return parse("method", f"precomputed(path={str(path)!r})")(*_picture())


def _segmented(path: Path) -> Any:
    return parse("segmenter", f"from_file(path={str(path)!r})").for_batch(_picture()[1])


def _name() -> str:
    return _picture()[1].ids[0]


@case
def map_of_objects(home: Path) -> Any:
    np.save(home / f"{_name()}.npy", np.array([Touches(home)], dtype=object), allow_pickle=True)
    return _explained(home)


@case
def archive_of_objects(home: Path) -> Any:
    np.savez(home / "maps.npz", **{_name(): np.array([Touches(home)], dtype=object)})  # type: ignore[arg-type]
    return _explained(home / "maps.npz")


@case
def archive_of_maps_that_unpacks_to_gigabytes(home: Path) -> Any:
    return _explained(_zeros(home / "maps.npz", f"{_name()}.npy", _npy_head((2**14, 5 * 2**11))))


@case
def archive_whose_list_of_names_unpacks_to_gigabytes(home: Path) -> Any:
    return _explained(_zeros(home / "maps.npz", "ids.npy", _npy_head((5 * 2**25,))))


@case
def map_that_promises_terabytes(home: Path) -> Any:
    (home / f"{_name()}.npy").write_bytes(_npy_head((2**20, 2**20)))
    return _explained(home)


@case
def map_whose_header_is_code(home: Path) -> Any:
    code = f"open({str(home / CANARY)!r}, 'w')"
    (home / f"{_name()}.npy").write_bytes(_npy_head((), code))
    return _explained(home)


@case
def map_whose_header_is_nested(home: Path) -> Any:
    (home / f"{_name()}.npy").write_bytes(_npy_head((), "[" * 9_000 + "]" * 9_000))
    return _explained(home)


@case
def map_of_negative_size(home: Path) -> Any:
    (home / f"{_name()}.npy").write_bytes(_npy_head((-1, -(2**40))))
    return _explained(home)


@case
def label_map_that_unpacks_to_gigabytes(home: Path) -> Any:
    return _segmented(_zeros(home / "maps.npz", f"{_name()}.npy", _npy_head((2**14, 5 * 2**11))))


@case
def label_picture_that_unpacks_to_gigabytes(home: Path) -> Any:
    _png(home / f"{_name()}.png", 30_000, 30_000)
    return _segmented(home)


@case
def label_map_of_objects(home: Path) -> Any:
    np.save(home / f"{_name()}.npy", np.array([Touches(home)], dtype=object), allow_pickle=True)
    return _segmented(home)


# Pictures


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _png(path: Path, width: int, height: int, *, colours: int = 2, extra: bytes = b"", rows: int = 64) -> Path:
    """A picture of zeros that says it has so many pixels; its data end after a few rows, as nothing may get there."""
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0))
    body = zlib.compress(bytes((width * 4 + 1) * min(rows, height)))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + extra + _chunk(b"IDAT", body) + _chunk(b"IEND", b""))
    return path


@case
def picture_of_900_million_pixels(home: Path) -> Any:
    return read_picture(_png(home / "a.png", 30_000, 30_000))


@case
def picture_just_below_what_pillow_refuses(home: Path) -> Any:
    return read_picture(_png(home / "a.png", 13_000, 13_000))


@case
def picture_that_is_very_long(home: Path) -> Any:
    return read_picture(_png(home / "a.png", 2**31 - 1, 8, rows=0))


@case
def picture_with_a_text_that_unpacks_to_gigabytes(home: Path) -> Any:
    return read_picture(_png(home / "a.png", 64, 64, extra=_chunk(b"zTXt", b"a\0\0" + _packed_zeros())))


@case
def picture_with_a_profile_that_unpacks_to_gigabytes(home: Path) -> Any:
    return read_picture(_png(home / "a.png", 64, 64, extra=_chunk(b"iCCP", b"a\0\0" + _packed_zeros())))


@case
def plain_picture_that_promises_gigabytes(home: Path) -> Any:
    (home / "a.ppm").write_bytes(b"P6 100000 100000 255\n" + bytes(100))
    return read_picture(home / "a.ppm")


@case
def bitmap_that_promises_gigabytes(home: Path) -> Any:
    head = struct.pack("<IiiHHIIiiII", 40, 2**16, 2**16, 1, 24, 0, 0, 0, 0, 0, 0)
    (home / "a.bmp").write_bytes(b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + head)
    return read_picture(home / "a.bmp")


@case
def animation_with_a_large_canvas(home: Path) -> Any:
    (home / "a.gif").write_bytes(b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b"\x2c" + bytes(40))
    return read_picture(home / "a.gif")


@case
def picture_that_is_a_link_to_an_endless_device(home: Path) -> Any:
    (home / "a.png").symlink_to("/dev/zero")
    return read_picture(home / "a.png")


@case
def picture_that_is_a_pipe(home: Path) -> Any:
    os.mkfifo(home / "a.png")
    return read_picture(home / "a.png")


@case
def picture_that_is_a_program(home: Path) -> Any:
    (home / "a.png").write_text(f"%!PS\n({home / CANARY}) (w) file closefile\n")
    return read_picture(home / "a.png")


@case
def table_that_names_endless_devices(home: Path) -> Any:
    (home / "a.csv").write_text("path,label\n/dev/zero,0\n/dev/random,1\n")
    found = data.load(str(home / "a.csv"))
    return found.batch(range(len(found)))


@case
def table_of_one_endless_line(home: Path) -> Any:
    (home / "a.csv").write_text("path,label\n" + '"' * 5_000_001 + ",0\n")
    return len(data.load(str(home / "a.csv")))


# Caches


def _cached(home: Path, content: Callable[[bytes], bytes]) -> str:
    """What the model answers with a cache full of such files; it must be what it answers without one."""
    os.environ["HEATPROOF_CACHE"] = str(home / "cache")
    model, batch = _picture()
    with engine.use(engine.Engine()):
        expected = engine.forward(model, batch.images)
    (home / "cache" / "engine").mkdir(parents=True, exist_ok=True)
    files = [file for file in (home / "cache").rglob("*") if file.is_file()]
    for file in files:
        file.write_bytes(content(file.read_bytes()))
    with engine.use(engine.Engine()):
        answer = engine.forward(model, batch.images)
    if not torch.allclose(answer, expected, atol=1e-4):
        return "WRONG: the cache changed the answer"
    return f"same answer with {len(files)} hostile files"


@case
def cache_of_pickles(home: Path) -> Any:
    return _cached(home, lambda _: pickle.dumps(Touches(home)))


@case
def cache_of_nested_lists(home: Path) -> Any:
    return _cached(home, lambda _: b"[" * 500_000 + b"]" * 500_000)


@case
def cache_with_an_absurd_batch_size(home: Path) -> Any:
    from heatproof.engine import choice

    def absurd(before: bytes) -> bytes:
        try:
            kept = json.loads(before)
            numbers = {name: 10**9 for name, value in kept["choice"].items() if type(value) is int}
            kept["choice"] |= numbers
            kept["seal"] = choice._seal(kept["question"], kept["choice"])
            return json.dumps(kept).encode()
        except (ValueError, LookupError, TypeError):
            return before

    return _cached(home, absurd)


@case
def cache_of_programs_for_another_library(home: Path) -> Any:
    return _cached(home, lambda before: bytes(reversed(before)))


# Studies, as files


def _study(home: Path, text: str) -> Any:
    (home / "study.json").write_text(text)
    return load(home / "study.json")


@case
def study_of_nested_lists(home: Path) -> Any:
    return _study(home, '{"studies": ' + "[" * 1_000_000 + "]" * 1_000_000 + "}")


@case
def study_of_a_number_with_many_digits(home: Path) -> Any:
    return _study(home, '{"studies": [{"seed": ' + "9" * 10_000_000 + "}]}")


@case
def study_that_is_a_pipe(home: Path) -> Any:
    os.mkfifo(home / "study.json")
    return load(home / "study.json")


@case
def study_that_is_an_endless_device(home: Path) -> Any:
    (home / "study.json").symlink_to("/dev/zero")
    return load(home / "study.json")


@case
def study_of_absurd_numbers(home: Path) -> Any:
    study = {
        "models": [{"spec": "embedded:object"}],
        "datasets": [{"dataset": "two_factor", "fields": {"count": 2**62}}],
        "methods": [{"method": "integrated_gradients", "fields": {"steps": 2**62}}],
        "metrics": [{"metric": "srg", "fields": {"points": 2**62}}],
    }
    loaded = _study(home, json.dumps({"studies": [study]}))
    return loaded[0].plain()


def _in_a_process(name: str, home: Path) -> dict[str, Any]:
    """The outcome of a case in a fork that ends after a while, whatever it does."""
    home.mkdir(parents=True)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        sys.stdin = io.StringIO("yes\n" * 100)
        os.chdir(home)
        with os.fdopen(writer, "w") as out:
            built()
            outcome = _outcome(name, home)
            out.write(json.dumps({"outcome": outcome, "seconds": time.monotonic() - _started}))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answer = stream.read()
    _, status, used = os.wait4(child, 0)
    return {
        "outcome": f"ended by signal {os.WTERMSIG(status)}",
        "seconds": 2 * SECONDS,
        **json.loads(answer or "{}"),
        "megabytes": used.ru_maxrss / 1024,
        "ran": (home / CANARY).exists(),
    }


def _outcome(name: str, home: Path) -> str:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f"read: {str(CASES[name](home))[:100]}"
    except HeatproofError as error:
        return f"refused: {type(error).__name__}: {error}"
    except BaseException as error:
        return f"FOREIGN {type(error).__name__}: {str(error)[:500]}"


def main(folder: Path, bomb: int, names: list[str]) -> None:
    global _bomb
    _bomb = bomb
    torch.set_num_threads(1)
    registry.names("method")  # imported once, for all
    found = {name: _in_a_process(name, folder / name.replace(" ", "_")) for name in names or CASES}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
