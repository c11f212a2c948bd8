"""Reconstructions of many pictures under many keep-masks in one flat batch, from the cache or drawn now.

A guided reconstruction is drawn in two parts. The first, nearly all of the work, depends on neither the classifier
nor the scale; the state where guidance sets in is cached, so that another scale, the control without guidance, or
another classifier costs only the second.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from heatproof.errors import BadInput
from heatproof.occlusion.diffusion import reconstruction_cache
from heatproof.occlusion.diffusion.denoiser import Denoiser, check, drawn_at
from heatproof.occlusion.diffusion.guidance import AntiClass, Guidance
from heatproof.occlusion.diffusion.inpaint import Drawing
from heatproof.occlusion.diffusion.other_size import Frame, laid_on, shrunk
from heatproof.occlusion.diffusion.sampler import Sampler
from heatproof.spec import recipe
from heatproof.types import Images, Keep, Model

Begin = Literal["noise", "original"]  # `original`: nothing is removed, at most the guidance acts (a control)
_BEGUN: dict[Begin, str] = {"noise": "noise", "original": "original, held"}  # in a kept picture's key
_PIXELS = 64 * 64 * 64  # drawn together, as many rows as make these


def reconstruct(
    denoiser: Denoiser,
    images: Images,
    keep: Keep,
    seeds: Sequence[int],
    sampler: Sampler,
    against: tuple[Guidance, Model, Tensor] | None = None,
    begin: Begin = "noise",
) -> Images:
    """The images with what is not kept drawn again; `against` (guidance, model, targets) guides away from a class."""
    if len(seeds) != len(images):
        raise BadInput(f"diffusion draws at random and needs one seed per image ({len(images)}), got {len(seeds)}")
    check(denoiser, images)
    side = drawn_at(denoiser, images)[0]
    if side == images.shape[2] == images.shape[3]:
        return _at_own_size(denoiser, images, keep, seeds, sampler, against, begin)
    small, cells = shrunk(images, keep, side)
    if begin == "original":  # nothing is removed
        small, _ = shrunk(images, torch.ones_like(keep), side)
    drawn = _at_own_size(denoiser, small, cells, seeds, sampler, against, begin, Frame(images, keep))
    return laid_on(drawn, images, keep)


def _at_own_size(
    denoiser: Denoiser,
    images: Images,
    keep: Keep,
    seeds: Sequence[int],
    sampler: Sampler,
    against: tuple[Guidance, Model, Tensor] | None,
    begin: Begin,
    frame: Frame | None = None,
) -> Images:
    """Pictures of the size that the prior draws; `frame` are the larger ones that the classifier looks at."""
    settings = [recipe.plain(sampler), denoiser.revision, _BEGUN[begin]]
    parts = row_parts(images, keep, seeds)
    if against is None:
        names = [_key(part, settings, "picture") for part in parts]
    else:
        guidance, model, targets = against
        aims = targets.tolist()
        guided_settings = [*settings, recipe.plain(guidance), model.revision]
        seen = parts if frame is None else row_parts(frame.images, frame.keep, seeds)
        names = [_key(part, guided_settings, f"against {aim}") for part, aim in zip(seen, aims, strict=True)]
    packed = reconstruction_cache.find(dict.fromkeys(names))
    fresh = [row for row, name in enumerate(names) if name not in packed]
    painted = torch.empty_like(images)
    _unpack(painted, names, packed)
    for rows in _chunks(fresh, images):
        drawing = Drawing(denoiser, images[rows], keep[rows], [seeds[row] for row in rows], sampler)
        if against is None:
            shown = drawing.done(drawing.steps(drawing.begun(), 0, sampler.steps))
        else:
            before = None if frame is None else Frame(frame.images[rows], frame.keep[rows])
            aimed = AntiClass(guidance, model, targets[rows], before)
            shown = _guided(drawing, aimed, begin, [parts[row] for row in rows])
        reconstruction_cache.keep({names[row]: _pack(picture) for row, picture in zip(rows, shown, strict=True)})
        painted[rows] = shown
    # Pixels come back from the cache in 256 levels; kept pixels are the image's own.
    stays = keep if sampler.mask == "hard" else keep.flatten(1).all(1)[:, None, None]
    return torch.where(stays[:, None], images, painted)


def row_parts(images: Images, keep: Keep, seeds: Sequence[int]) -> list[bytes]:
    """The part of each row's key for what its noise and pixels depend on: picture, keep-mask, seed."""
    pictures = [hashlib.sha256(image.cpu().numpy().tobytes()).digest() for image in images]
    bits = np.packbits(keep.flatten(1).cpu().numpy(), axis=1)
    return [p + b.tobytes() + str(seed).encode() for p, b, seed in zip(pictures, bits, seeds, strict=True)]


def _guided(drawing: Drawing, against: AntiClass, begin: Begin, parts: Sequence[bytes]) -> Images:
    """Guided reconstructions, from the cached state at the switch; where there is none, it is drawn first."""
    total = len(drawing.denoiser.alphas_cumprod)
    switch = against.guidance.switch(drawing.times, total)
    acting = against if against.guidance.scale else None
    if begin == "original":
        return drawing.done(drawing.alone(switch, acting))
    state = _at_switch(drawing, switch, parts)
    return drawing.done(drawing.steps(state, switch, drawing.sampler.steps, acting))


def _at_switch(drawing: Drawing, switch: int, parts: Sequence[bytes]) -> Tensor:
    settings = [recipe.plain(drawing.sampler), drawing.denoiser.revision]
    names = [_key(part, settings, f"state {switch}") for part in parts]
    packed = reconstruction_cache.find(dict.fromkeys(names))
    state = torch.empty_like(drawing.images)
    _each(state, names, packed, np.float16, lambda values: values)
    fresh = [row for row, name in enumerate(names) if name not in packed]
    if fresh:
        some = Drawing(
            drawing.denoiser,
            drawing.images[fresh],
            drawing.keep[fresh],
            [drawing.seeds[row] for row in fresh],
            drawing.sampler,
        )
        drawn = some.steps(some.begun(), 0, switch).half()  # as it is stored
        state[fresh] = drawn.to(state)
        reconstruction_cache.keep(
            {names[row]: zlib.compress(s.cpu().numpy().tobytes(), 1) for row, s in zip(fresh, drawn, strict=True)}
        )
    return state


def _chunks(rows: Sequence[int], images: Images) -> list[list[int]]:
    size = max(1, _PIXELS // (images.shape[-1] * images.shape[-2]))
    return [list(rows[start : start + size]) for start in range(0, len(rows), size)]


def _key(part: bytes, settings: Sequence[object], what: str) -> bytes:
    return hashlib.sha256(part + repr((settings, what)).encode()).digest()


def _pack(picture: Tensor) -> bytes:
    return zlib.compress((picture * 255).round().byte().cpu().numpy().tobytes(), 1)


def _unpack(into: Tensor, names: Sequence[bytes], packed: dict[bytes, bytes]) -> None:
    _each(into, names, packed, np.uint8, lambda values: values / 255)


def _each(
    into: Tensor,
    names: Sequence[bytes],
    packed: dict[bytes, bytes],
    kind: type[np.generic],
    read: Callable[[Tensor], Tensor],
) -> None:
    for row, name in enumerate(names):
        if name in packed:
            values = np.frombuffer(zlib.decompress(packed[name]), kind).reshape(into.shape[1:]).copy()
            into[row] = read(torch.from_numpy(values).to(into.device, into.dtype))
