"""The flip-book: the answer to what it shows is the answer of the curve, at every step that can be shown."""

from __future__ import annotations

import pytest
import torch
from networks import batch, small_cnn

from heatproof.errors import NotApplicable
from heatproof.metrics.pixel_flipping import LIF, MIF, Flipping
from heatproof.occlusion.flip_book import FRAMES, FlipBook
from heatproof.occlusion.game import Occlusion
from heatproof.occlusion.imputers.blur import Blur
from heatproof.occlusion.imputers.constant import Constant
from heatproof.occlusion.imputers.internal import Internal
from heatproof.occlusion.imputers.mean import Mean
from heatproof.occlusion.imputers.telea import Telea
from heatproof.occlusion.imputers.uniform import Uniform
from heatproof.occlusion.segmenters.grid import Grid
from heatproof.occlusion.segmenters.slic import Slic
from heatproof.types import Attribution, Imputer


def attribution(count: int = 3) -> Attribution:
    shown = batch(count)
    maps = torch.randn(count, *shown.images.shape[2:], generator=torch.Generator().manual_seed(5))
    return Attribution(small_cnn(), shown, None, maps)


def composed(book: FlipBook, images: torch.Tensor, step: int) -> torch.Tensor:
    """As the page does it."""
    assert book.hidden is not None
    gone = book.gone.long()
    return torch.where(((gone > 0) & (gone <= step))[:, None], book.hidden, images)


@pytest.mark.parametrize("metric", [MIF, LIF])
@pytest.mark.parametrize("imputer", [Mean(), Constant()], ids=["mean", "constant"])
@pytest.mark.parametrize("segmenter", [Grid(), Slic(12)], ids=["grid", "slic"])
def test_the_model_answers_what_is_shown_as_the_curve_says(
    metric: type[Flipping], imputer: Imputer, segmenter: Grid | Slic
) -> None:
    explained = attribution()
    judge = metric(Occlusion(imputer, segmenter, 1))
    book, curve = judge.flip_book(explained), judge(explained).curve
    assert curve is not None
    for step in range(curve.y.shape[1]):
        pictures = composed(book, explained.batch.images, step)
        answers = explained.model(pictures).softmax(1).gather(1, explained.batch.targets[:, None])[:, 0]
        torch.testing.assert_close(answers.double(), curve.y[:, step], atol=1e-5, rtol=1e-4)


def test_what_goes_first_under_one_goes_last_under_the_other() -> None:
    explained = attribution()
    most, least = (metric(Occlusion(Mean(), Grid(), 1)).flip_book(explained).gone for metric in (MIF, LIF))
    both = torch.stack([most.flatten(1).double(), least.flatten(1).double()])
    assert torch.stack([torch.corrcoef(both[:, row])[0, 1] for row in range(3)]).max() < -0.9


def test_an_inpainter_gets_frames_of_what_it_painted() -> None:
    explained = attribution()
    book = MIF(Occlusion(Telea(), Grid(), 1)).flip_book(explained)
    assert book.hidden is None
    assert book.frames is not None
    assert book.at is not None
    assert book.frames.shape[:2] == (3, FRAMES)
    torch.testing.assert_close(book.frames[:, 0], explained.batch.images, atol=1e-4, rtol=0)
    steps = [float((book.frames[:, k] - book.frames[:, 0]).abs().mean()) for k in range(FRAMES)]
    assert steps[-1] > steps[1] > steps[0]


@pytest.mark.parametrize("imputer", [Blur(), Uniform()], ids=["blur", "uniform"])
def test_whether_a_filling_depends_on_the_rest_is_found_out_and_not_assumed(imputer: Imputer) -> None:
    explained = attribution(2)
    book = MIF(Occlusion(imputer, Grid(), 1)).flip_book(explained)
    assert (book.hidden is None) != (book.frames is None)


def test_evidence_hidden_inside_the_network_has_no_pictures() -> None:
    explained = attribution(1)
    with pytest.raises(NotApplicable, match="no pictures to look at"):
        MIF(Occlusion(Internal(), Grid(), 1)).flip_book(explained)
