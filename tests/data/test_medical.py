"""DICOM and NIfTI files: physical units, windows, inversion, frames and slices, the right way round."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pydicom
import pytest
import torch
from numpy.typing import NDArray
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRLittleEndian,
    SecondaryCaptureImageStorage,
    generate_uid,
)

from heatproof.data._support.dicom import window
from heatproof.data.folder import Folder
from heatproof.errors import BadInput, Missing
from heatproof.types import Batch, View

SIDE = 16


def dicom(path: Path, stored: NDArray[Any], **fields: Any) -> Path:
    """A DICOM file of these stored values, with these fields."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = SecondaryCaptureImageStorage, generate_uid()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    bits = 8 * stored.dtype.itemsize
    usual = {
        "PatientName": "Nobody^Known",
        "Rows": stored.shape[1] if stored.ndim > 2 and "NumberOfFrames" in fields else stored.shape[0],
        "Columns": stored.shape[2] if stored.ndim > 2 and "NumberOfFrames" in fields else stored.shape[1],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "BitsAllocated": bits,
        "BitsStored": bits,
        "HighBit": bits - 1,
        "PixelRepresentation": int(stored.dtype.kind == "i"),
        "PixelData": stored.tobytes(),
    }
    for name, value in (usual | fields).items():
        setattr(data, name, value)
    data.save_as(path, enforce_file_format=True)
    return path


def image(folder: Path, **fields: Any) -> torch.Tensor:
    found = Folder(str(folder), **fields).batch([0])
    assert not found.missing, found.missing
    return found.images[0]


def ramp(low: int, high: int, dtype: str = "int16") -> NDArray[Any]:
    return np.linspace(low, high, SIDE * SIDE).round().astype(dtype).reshape(SIDE, SIDE)


def test_the_standards_windows() -> None:
    units = np.array([-161.0, -160.0, 39.5, 239.0, 240.0])
    np.testing.assert_allclose(window(units, 40, 400), [0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(window(np.array([-160.0, 40.0, 240.0]), 40, 400, "LINEAR_EXACT"), [0, 0.5, 1])
    np.testing.assert_allclose(window(np.array([40.0, 140.0]), 40, 400, "SIGMOID"), [0.5, 1 / (1 + np.exp(-1))])
    np.testing.assert_array_equal(window(np.array([39.0, 40.0]), 40, 1), [0, 1])


def test_rescaled_then_windowed_then_inverted(tmp_path: Path) -> None:
    stored = ramp(0, 2000, "uint16")
    about = {"RescaleSlope": 1, "RescaleIntercept": -1024, "WindowCenter": [40, 500], "WindowWidth": [400, 2000]}
    dicom(tmp_path / "a.dcm", stored, **about)
    wanted = window(stored - 1024.0, 40, 400)
    np.testing.assert_allclose(image(tmp_path, grey=True)[0], wanted, atol=1e-6)
    dicom(tmp_path / "a.dcm", stored, **about, PhotometricInterpretation="MONOCHROME1")
    np.testing.assert_allclose(image(tmp_path, grey=True)[0], 1 - wanted, atol=1e-6)
    assert image(tmp_path).shape == (3, SIDE, SIDE)


def test_levels_are_in_physical_units_and_win_over_the_files_window(tmp_path: Path) -> None:
    stored = ramp(-1024, 1000)
    dicom(tmp_path / "a.dcm", stored, RescaleSlope=2, RescaleIntercept=10, WindowCenter=0, WindowWidth=10)
    wanted = np.clip((2.0 * stored + 10 + 160) / 400, 0, 1)
    np.testing.assert_allclose(image(tmp_path, grey=True, levels=(-160, 240))[0], wanted, atol=1e-6)


def test_without_a_window_the_range_of_the_stored_bits_counts(tmp_path: Path) -> None:
    dicom(tmp_path / "a.dcm", ramp(0, 4095, "uint16"), BitsStored=12, HighBit=11)
    found = image(tmp_path, grey=True)[0]
    np.testing.assert_allclose(found, ramp(0, 4095) / 4095, atol=1e-6)
    assert len(found.unique()) == SIDE * SIDE  # no bit is lost


def test_padding_is_black_however_air_is_shown(tmp_path: Path) -> None:
    stored = ramp(0, 1000)
    stored[0] = -2000
    dicom(tmp_path / "a.dcm", stored, PixelPaddingValue=-2000, PhotometricInterpretation="MONOCHROME1")
    found = image(tmp_path, grey=True, levels=(0, 1000))[0]
    assert found[0].eq(0).all()
    assert float(found[1, 0]) > 0.9


def test_frames_and_colours(tmp_path: Path) -> None:
    frames = np.stack([ramp(0, 100, "uint8"), ramp(100, 200, "uint8")])
    dicom(tmp_path / "a.dcm", frames, NumberOfFrames=2)
    np.testing.assert_allclose(image(tmp_path, grey=True, page=1)[0], frames[1] / 255, atol=1e-6)
    reason = Folder(str(tmp_path), page=2).batch([0]).missing["a.dcm"]
    assert reason == "page must be below 2, the number of its frames, got 2"
    colours = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    kind = {"SamplesPerPixel": 3, "PhotometricInterpretation": "RGB", "PlanarConfiguration": 0}
    dicom(tmp_path / "a.dcm", colours, **kind)
    np.testing.assert_allclose(image(tmp_path), colours.transpose(2, 0, 1) / 255, atol=1e-6)


def test_a_view_cuts_slices_as_it_cuts_pictures(tmp_path: Path) -> None:
    dicom(tmp_path / "a.dcm", np.tile(ramp(0, 1000), (2, 3)))
    found = Folder(str(tmp_path), View(20, 24), grey=True, levels=(0, 1000)).batch([0]).images
    assert found.shape == (1, 1, 20, 20)


def test_what_is_no_dicom_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.dcm").write_bytes(b"nothing")
    dicom(tmp_path / "b.dcm", ramp(0, 9))
    found = Folder(str(tmp_path)).batch([0, 1])
    assert found.ids == ("b.dcm",)
    assert found.missing["a.dcm"].startswith("not a readable picture (InvalidDicomError")


@pytest.mark.parametrize(("package", "name"), [("pydicom", "a.dcm"), ("nibabel", "a.nii.gz")])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str
) -> None:
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Missing, match=rf"'{package}'.*heatproof\[medical\]"):
        Folder(str(tmp_path)).batch([0])


# A volume of 12 × 10 × 8 voxels with one bright corner: right, front, top of the patient.
SHAPE = (12, 10, 8)


def corner() -> NDArray[np.int16]:
    volume = np.zeros(SHAPE, dtype=np.int16)
    volume[-3:, -3:, -3:] = 100  # in RAS+
    return volume


def stored_as(axes: str, spacing: tuple[float, float, float] = (1, 1, 1)) -> nibabel.Nifti1Image:
    """The same patient, stored along other axes."""
    ras = nibabel.Nifti1Image(corner(), np.diag([*spacing, 1.0]))
    start = nibabel.orientations.axcodes2ornt("RAS")
    end = nibabel.orientations.axcodes2ornt(tuple(axes))
    return ras.as_reoriented(nibabel.orientations.ornt_transform(start, end))


@pytest.mark.parametrize("axes", ["RAS", "LPS", "SLA", "PIR"])
def test_an_asymmetric_patient_lies_the_right_way_round(tmp_path: Path, axes: str) -> None:
    """The patient's right is on the left of the picture, the front or the head at the top, the face to the left."""
    nibabel.save(stored_as(axes), tmp_path / "a.nii.gz")
    for plane, at, size in (("axial", 7, (10, 12)), ("coronal", 9, (8, 12)), ("sagittal", 11, (8, 10))):
        found = image(tmp_path, grey=True, levels=(0, 100), plane=plane, page=at)[0]
        assert found.shape == size
        assert found[:3, :3].eq(1).all()
        assert float(found.sum()) == 9
    middle = image(tmp_path, grey=True, levels=(0, 100))[0]  # of eight axial slices the fifth
    assert middle.eq(0).all()


def test_pixels_become_square(tmp_path: Path) -> None:
    nibabel.save(stored_as("LPS", (1.0, 2.0, 4.0)), tmp_path / "a.nii")
    assert image(tmp_path, grey=True, levels=(0, 100), page=7).shape == (1, 20, 12)
    assert image(tmp_path, grey=True, levels=(0, 100), plane="coronal").shape == (1, 32, 12)


def test_the_file_may_say_its_range_else_it_must_be_said(tmp_path: Path) -> None:
    volume = stored_as("RAS")
    nibabel.save(volume, tmp_path / "a.nii")
    reason = Folder(str(tmp_path), page=7).batch([0]).missing["a.nii"]
    assert reason.startswith("the slice holds values from 0 to 100 and the file does not say")
    volume.header["cal_min"], volume.header["cal_max"] = 50, 150
    nibabel.save(volume, tmp_path / "a.nii")
    assert image(tmp_path, page=7).unique().tolist() == [0, 0.5]


def test_a_fourth_axis_are_channels(tmp_path: Path) -> None:
    volume = np.stack([corner(), 2 * corner(), 0 * corner(), corner()], -1)
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), tmp_path / "a.nii")
    found = image(tmp_path, levels=(0, 200), page=7)
    assert found.shape == (4, 10, 12)
    assert found[:, 0, 0].tolist() == [0.5, 1, 0, 0.5]


def test_a_slice_that_is_not_there(tmp_path: Path) -> None:
    nibabel.save(stored_as("RAS"), tmp_path / "a.nii")
    reason = Folder(str(tmp_path), page=8, levels=(0, 1)).batch([0]).missing["a.nii"]
    assert reason == "page must be below 8, the number of its axial slices, got 8"
    with pytest.raises(BadInput, match=r"plane of dataset 'folder' must be one of .*got 'oblique'"):
        Folder(str(tmp_path), plane="oblique")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="page must be a number from 0"):
        Folder(str(tmp_path), page=-1)


def test_nothing_of_a_header_reaches_a_batch(tmp_path: Path) -> None:
    dicom(tmp_path / "a.dcm", ramp(0, 9))
    found: Batch = Folder(str(tmp_path)).batch([0])
    assert "Nobody" not in repr(found)


def test_small_files_that_would_unpack_to_gigabytes_are_refused(tmp_path: Path) -> None:
    header = nibabel.Nifti1Header()
    header.set_data_shape((30_000, 30_000, 100))
    header["vox_offset"] = 352
    (tmp_path / "a.nii").write_bytes(header.binaryblock + b"\0" * 64)
    dicom(tmp_path / "b.dcm", ramp(0, 9, "uint16"), Rows=60_000, Columns=60_000)
    found = Folder(str(tmp_path), levels=(0, 1)).batch([0, 1]).missing
    assert found["a.nii"].startswith("30000x30000x100 voxels, more than")
    assert found["b.dcm"].startswith("60000x60000 pixels, more than")


def test_deflated_files_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    data = pydicom.dcmread(dicom(tmp_path / "a.dcm", ramp(0, 9)))
    data.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    data.save_as(tmp_path / "a.dcm", enforce_file_format=True)
    assert Folder(str(tmp_path)).batch([0]).missing["a.dcm"].startswith("its header is deflated")
