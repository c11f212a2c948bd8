"""What lies in a folder of pictures and is none: a sentence, never a hang, never a picture counted twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import typer
from networks import batch, small_cnn
from PIL import Image

from heatproof.cli import _terminal
from heatproof.data._support import pictures
from heatproof.data._support.listing import pictures_under
from heatproof.data._support.masks import undecided
from heatproof.data.folder import Folder
from heatproof.data.table import Table, list_table
from heatproof.errors import BadInput, OutOfMemory
from heatproof.methods.precomputed import Precomputed
from heatproof.occlusion.segmenters.from_file import FromFile
from heatproof.run.unit import message
from heatproof.storage import arrays
from heatproof.types import View

VIEW = View(16)


def picture(path: Path, colour: str = "red") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.linear_gradient("L").resize((20, 20)).convert("RGB").save(path)


# In another process, with a limit: a reader that waits for a pipe cannot be interrupted by a failing assertion.
def test_pipes_devices_and_dangling_links_are_named_and_do_not_hang(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "endless.png").symlink_to("/dev/zero")
    (tmp_path / "nowhere.png").symlink_to(tmp_path / "gone.png")
    (tmp_path / "round.png").symlink_to(tmp_path / "round.png")
    code = (
        "import sys; from heatproof.data.folder import Folder; from heatproof.types import View\n"
        "pictures = Folder(sys.argv[1], View(16)); places = range(len(pictures))\n"
        "print(pictures.digest(places)); batch = pictures.batch(places); print(batch.ids)\n"
        "print(*batch.missing.values(), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    _, ids, *reasons = done.stdout.splitlines()
    assert ids == "('a.png',)"
    endless, nowhere, pipe, circle = reasons
    assert "endless.png is a pipe, a device or a socket, not a file" in endless
    assert "pipe.png is a pipe" in pipe
    assert "nowhere.png is a link that leads nowhere" in nowhere
    assert "round.png is a link that leads nowhere" in circle


def test_headers_of_what_is_no_file_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    assert pictures.header(tmp_path / "pipe.png") == ((0, 0), 1)
    assert not undecided(tmp_path / "pipe.png", tmp_path / "pipe.png")


def test_linked_folders_are_counted_once(tmp_path: Path) -> None:
    for name in ("cat/a.png", "cat/b.png", "dog/c.png"):
        picture(tmp_path / name)
    (tmp_path / "all").symlink_to(tmp_path / "cat")
    (tmp_path / "dog" / "up").symlink_to(tmp_path)
    with pytest.warns(UserWarning, match=r"all \(and 1 more\) links to .*cat, whose pictures are listed already"):
        found = pictures_under(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["cat/a.png", "cat/b.png", "dog/c.png"]


def test_a_folder_elsewhere_that_two_links_lead_to_is_counted_once(tmp_path: Path) -> None:
    picture(tmp_path / "elsewhere" / "deep" / "a.png")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "one").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "two").symlink_to(tmp_path / "elsewhere" / "deep")
    with pytest.warns(UserWarning, match="two links to .*one/deep, whose pictures are listed already"):
        assert pictures_under(tmp_path / "root") == [tmp_path / "root" / "one" / "deep" / "a.png"]


def test_a_table_that_lists_a_picture_twice(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    table = tmp_path / "t.csv"
    table.write_text("path,label\na.png,1\nb.png,1\na.png,1\n")
    with pytest.raises(BadInput, match=r"lines 2 and 4 list a\.png with the same label.*remove one"):
        list_table(table)
    table.write_text("path,label\na.png,1\na.png,2\n")  # two questions about one picture
    assert [file.label for file in list_table(table)] == [1, 2]


def test_a_table_of_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("path,label\nx/a.png,1\n~nobody-here/b.png,2\n")
    with pytest.raises(BadInput, match=r"none of its 2 pictures is there, the first being .*x/a\.png"):
        list_table(tmp_path / "t.csv")
    picture(tmp_path / "x" / "a.png")
    some = Table(str(tmp_path / "t.csv"), VIEW).batch([0, 1])
    assert some.ids == ("x/a.png",)
    assert list(some.missing) == ["~nobody-here/b.png"]


def bomb(path: Path, **shapes: tuple[int, ...]) -> Path:
    """An archive of zeros, written without holding them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, shape in shapes.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                about = {"descr": "<f8", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, about)
                left, block = int(np.prod(shape)) * 8, bytes(2**20)
                while left > 0:
                    stream.write(block[:left])
                    left -= len(block)
    return path


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LARGEST", 2**22)
    path = bomb(tmp_path / "bomb.npz", picture0=(64, 1024, 1024 // 64))
    assert path.stat().st_size < 2**16
    for reader in (
        lambda: Precomputed(str(path))(small_cnn(), batch(1)),
        lambda: FromFile(str(path)).for_batch(batch(1)),
    ):
        with pytest.raises(BadInput, match=r"picture0 in .*bomb\.npz unpacks to 8 MB, shape .* at most 4 MB are read"):
            reader()


@pytest.mark.slow
def test_two_megabytes_do_not_become_two_gigabytes(tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.npz", picture0=(256, 1024, 1024))
    code = (
        "import resource, sys; from pathlib import Path; from zipfile import ZipFile\n"
        "from heatproof.storage.arrays import of_archive\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: of_archive(ZipFile(sys.argv[1]), 'picture0')\n"
        "except ValueError as error: print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    sentence, megabytes = done.stdout.splitlines()
    assert "unpacks to 2,048 MB" in sentence
    assert int(megabytes) < 50


def test_one_row_of_many_maps_is_read_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = np.arange(5 * 6 * 7, dtype=np.float32).reshape(5, 6, 7)
    np.savez_compressed(tmp_path / "c.npz", maps=maps, columns=np.asfortranarray(maps))
    monkeypatch.setattr(arrays, "LARGEST", maps.nbytes)
    with zipfile.ZipFile(tmp_path / "c.npz") as archive:
        for row in range(5):
            np.testing.assert_array_equal(arrays.of_archive(archive, "columns", row), maps[row])
        np.testing.assert_array_equal(arrays.of_archive(archive, "columns"), maps)
        monkeypatch.setattr(arrays, "LARGEST", maps[0].nbytes)  # room for one of them
        for row in range(5):
            np.testing.assert_array_equal(arrays.of_archive(archive, "maps", row), maps[row])
        with pytest.raises(BadInput, match="unpacks to"):
            arrays.of_archive(archive, "maps")


def test_a_header_that_promises_more_than_there_is(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole.replace(b"(4, 4), ", b"(9, 4), "))
    with pytest.raises(ValueError, match="ends after 128 of 288 bytes"):
        arrays.of_file(tmp_path / "a.npy")


def test_a_line_break_in_a_name_breaks_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\nheatproof: all is well\x1b[1A.png"
    (tmp_path / name).write_text("no picture")
    (tmp_path / "t.csv").write_text(f'path,label\n"{name}",3;4\n')
    with pytest.raises(typer.Exit), _terminal.readable_errors():
        raise BadInput(next(iter(Folder(str(tmp_path), VIEW).batch([0]).missing)))
    _terminal.show_warning(UserWarning(f"{name} is odd"), UserWarning, "file.py", 1)
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 2
    assert shown.count(r"a\nheatproof: all is well\x1b[1A.png") == 2


def test_warnings_of_the_command_line_are_single_lines(tmp_path: Path) -> None:
    name = "b\nheatproof: all is well"
    picture(tmp_path / "photos" / "a" / "x.png")
    (tmp_path / "photos" / name).symlink_to(tmp_path / "photos" / "a")
    code = (
        "import sys; from pathlib import Path; from heatproof import cli; from heatproof.data._support import listing\n"
        "cli.app = lambda: listing.pictures_under(Path(sys.argv[1])); cli.main()"
    )
    place = [sys.executable, "-c", code, str(tmp_path / "photos")]
    shown = subprocess.run(place, capture_output=True, text=True, check=True).stderr
    assert re.fullmatch(r"heatproof: warning: b\\nheatproof: all is well links to [^\n]*\n", shown)


def test_want_of_memory_is_not_blamed_on_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture(tmp_path / "a.png")

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(pictures, "_upright", full)
    with pytest.raises(OutOfMemory, match=r"memory ran out while .*a\.png was read: .* fewer --workers"):
        Folder(str(tmp_path), VIEW).batch([0])
    torch_says = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes.")
    assert message(torch_says).startswith("memory ran out (RuntimeError): close other programs")
    for error in (torch_says, MemoryError()):
        with pytest.raises(typer.Exit), _terminal.readable_errors():
            raise error
        assert "memory ran out" in capsys.readouterr().err
