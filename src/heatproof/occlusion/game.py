"""One game under everything: what does the model say when only these segments of this image are visible?

Methods and metrics only say which coalitions of segments they want. The game removes duplicates within a call and
across calls, imputes and evaluates the rest in micro-batches, and remembers the answers for as long as the batch lives:
both ends of every curve, the random baseline and whatever two methods agree on are evaluated once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heatproof import engine
from heatproof.errors import BadInput, BadShape, NotApplicable
from heatproof.occlusion import pipeline
from heatproof.occlusion.occlusion import Answerer, Occlusion, bound, impute, named
from heatproof.occlusion.segments import pixels_of, segments_of, totals
from heatproof.questions import NO_PROBABILITY
from heatproof.spec import recipe
from heatproof.traits import imputer_traits, parts_of
from heatproof.types import (
    Batch,
    Images,
    Keep,
    Logits,
    Model,
    Readout,
    Segments,
    keyed_seed,
)

__all__ = ["Game", "Occluding", "Occlusion", "flat_rows", "game_of"]

Bits = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Columns kept of every answer: enough for every readout and for the model's confidence in any class.
_COLUMNS = {"probability": 0, "logit": 1, "log_probability": 2, "max_probability": 3}

FLAT = 1e-6  # a change of a value below this share of it is float noise
NOTHING_CHANGES = "the model's value does not change when the whole picture is hidden"


class _Memory:
    """Every answer so far: per image its packed coalitions, and one growing table of answers for all."""

    def __init__(self, images: int) -> None:
        self.rows: list[dict[bytes, int]] = [{} for _ in range(images)]
        self.table: Floats = np.empty((0, len(_COLUMNS)))
        self.evaluated = 0  # images sent to the network so far


_memories: WeakKeyDictionary[Batch, WeakKeyDictionary[Model, dict[str, _Memory]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Game:
    """The value of every coalition of segments: the model's answer when only they are visible.

    Values are float64 on the CPU. They depend neither on earlier calls nor on the batch mates.
    """

    model: Model
    batch: Batch
    occlusion: Occlusion = field(default_factory=Occlusion)
    readout: Readout = "probability"
    _memory: _Memory = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_memory", _Memory(len(self.batch)))

    @cached_property
    def segments(self) -> Segments:
        return segments_of(self.batch, self.occlusion.segmenter)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of segments of each image."""
        return tuple((self.segments.flatten(1).amax(1) + 1).tolist()) if len(self.batch) else ()

    @cached_property
    def sizes(self) -> Tensor:
        """(B, n) pixels per segment; zero where an image has fewer than n segments."""
        return totals(self.segments, torch.ones_like(self.segments), max(self.counts, default=0))

    @cached_property
    def _labels(self) -> Index:
        """(B, H * W): the segments on the CPU, where masks are made before they are moved as bits."""
        return np.asarray(self.segments.flatten(1).cpu().numpy())

    @property
    def evaluated(self) -> int:
        """The number of occluded images evaluated so far for this batch, model and occlusion."""
        return self._memory.evaluated

    def value(self, coalitions: Tensor, /) -> Tensor:
        """(B, M, n) bool, True = visible -> (B, M); columns beyond an image's own segments are ignored."""
        if self.model.question == "value" and self.readout != "logit":
            if self.readout == "log_probability":
                raise NotApplicable(NO_PROBABILITY)
            return self._scaled(self._read(coalitions, "logit"))
        return self._read(coalitions, self.readout)

    def confidence(self, coalitions: Tensor, /) -> Tensor:
        """Like `value`, but the probability of the class that is then the most likely."""
        if self.model.question == "value":
            raise NotApplicable(NO_PROBABILITY)
        return self._read(coalitions, "max_probability")

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """(B,) each: the model's value where nothing is visible, and of the whole picture."""
        widest = max(self.counts, default=0)
        both = torch.tensor([False, True])[None, :, None].expand(len(self.batch), 2, widest)
        empty, whole = self._read(both, "logit").unbind(1)
        return empty, whole

    @cached_property
    def flat(self) -> Tensor:
        """(B,) bool: pictures whose value does not change when everything is hidden, so that it cannot be scaled."""
        if self.model.question != "value" or self.readout != "probability":
            return torch.zeros(len(self.batch), dtype=torch.bool)
        empty, whole = self.ends
        return (whole - empty).abs() <= FLAT * torch.maximum(whole.abs(), empty.abs())

    def _scaled(self, values: Tensor) -> Tensor:
        """(B, M): values from that of the empty picture on, in units of what all of the picture changes; NaN if flat.

        The unit is a magnitude: more evidence for a large value is more also where the picture lowers it.
        """
        empty, whole = self.ends
        unit = (whole - empty).abs().masked_fill(self.flat, torch.nan)
        return (values - empty[:, None]) / unit[:, None]

    def value_each(self, coalitions: Sequence[Tensor], /) -> list[Tensor]:
        """Like `value` for different numbers of coalitions per image: each (M_i, n_i) bool -> (M_i,)."""
        wanted = [rows.cpu().numpy() for rows in coalitions]
        if self.model.question == "value" and self.readout != "logit":
            raise NotApplicable(NO_PROBABILITY)
        return [torch.from_numpy(a[:, _COLUMNS[self.readout]].copy()) for a in self._answers(wanted)]

    def _read(self, coalitions: Tensor, column: str) -> Tensor:
        widest = max(self.counts, default=0)
        if coalitions.ndim != 3 or len(coalitions) != len(self.batch) or coalitions.shape[2] < widest:
            shape = f"({len(self.batch)}, M, {widest})"
            raise BadShape(f"coalitions must have shape {shape} and dtype bool, got {tuple(coalitions.shape)}")
        if coalitions.dtype != torch.bool:
            raise BadShape(f"coalitions must be bool, True = visible, got {coalitions.dtype}")
        wanted = [rows[:, :count] for rows, count in zip(coalitions.cpu().numpy(), self.counts, strict=True)]
        answers = [a[:, _COLUMNS[column]] for a in self._answers(wanted)]
        return torch.from_numpy(np.stack(answers) if answers else np.empty((0, coalitions.shape[1])))

    def _answers(self, wanted: Sequence[Bits]) -> list[Floats]:
        """Looks up known answers, evaluates the rest once, and remembers them."""
        memory = self._memory
        keys = [_packed(bits) for bits in wanted]
        fresh = [
            [key for key in dict.fromkeys(k) if key not in known] for k, known in zip(keys, memory.rows, strict=True)
        ]
        if any(fresh):
            start = len(memory.table)
            memory.table = np.concatenate([memory.table, self._evaluate(fresh)])
            # Registered only now, so that an interrupted call leaves no holes.
            for known, new in zip(memory.rows, fresh, strict=True):
                known.update(zip(new, range(start, start + len(new)), strict=True))
                start += len(new)
        return [memory.table[[known[key] for key in k]] for k, known in zip(keys, memory.rows, strict=True)]

    def _evaluate(self, fresh: Sequence[Sequence[bytes]]) -> Floats:
        """The answers to these coalitions, image after image, averaged over the draws."""
        visible = [_unpacked(keys, n) for keys, n in zip(fresh, self.counts, strict=True)]
        owners = np.repeat(np.arange(len(visible)), [len(rows) for rows in visible])
        places = np.concatenate([np.arange(len(rows)) for rows in visible])
        whole = np.concatenate([rows.all(1) for rows in visible])  # nothing is hidden, so one draw is enough
        total = np.zeros((len(owners), len(_COLUMNS)))
        paints = not isinstance(self.occlusion.imputer, Answerer)  # answerers change the network, other imputers do not
        # Padded, so that an answer does not depend on which others were known already: a resumed run has the same bits.
        # Blocks are whole micro-batches, so that only the last one is padded.
        way = replace(engine.settled(self.model, self.batch.images, "forward"), fill=True) if paints else None
        size = engine.at_once(self.batch.images, way.choice.size if way else 1)
        parts: list[Part] = []
        for draw in range(self.occlusion.draws if self.occlusion.random else 1):
            rows = np.arange(len(owners)) if draw == 0 else np.flatnonzero(~whole)
            seeds = self._seeds(draw) if self.occlusion.random else []
            for start in range(0, len(rows), size):
                place = rows[start : start + size]
                pictures = [(image, places[place][owners[place] == image]) for image in _distinct(owners[place])]
                parts.append(Part(place, pictures, seeds))
        if way is None:
            answers = self._inside(visible, parts)
        else:
            answers = self._painted(visible, parts, way, min(size, len(owners)))
        with closing(answers):
            for part, logits in zip(parts, answers, strict=True):
                total[part.rows] += self._summary(logits, owners[part.rows])
        if self.occlusion.random:
            total[~whole] /= self.occlusion.draws
        return total

    def _inside(self, visible: Sequence[Bits], parts: Sequence[Part]) -> Generator[Logits, None, None]:
        """Yields the answers of a network in which evidence is hidden by the imputer."""
        imputer = self.occlusion.imputer
        assert isinstance(imputer, Answerer)
        for block in parts:
            masked = [self._masked(image, visible[image][places]) for image, places in block.pictures]
            yield torch.cat([imputer.answer(self.model, *both) for both in masked])

    def _painted(
        self, visible: Sequence[Bits], parts: Sequence[Part], way: engine.Plan, size: int
    ) -> Generator[Logits, None, None]:
        """Yields the answers to painted pictures: one block is painted while the network works on the previous one."""
        threads = pipeline.painters() if imputer_traits(self.occlusion.imputer).concurrent else 1
        rooms = [self.batch.images.new_empty(size, *self.batch.images.shape[1:]) for _ in range(min(threads, 2))]
        blocks = (  # a generator, since each block holds its masks
            self._paints(visible, part, rooms[number % len(rooms)], 1 if threads > 1 else size)
            for number, part in enumerate(parts)
        )
        with closing(pipeline.painted(blocks, threads)) as painted:
            for number in painted:
                yield engine.forward(self.model, rooms[number % len(rooms)][: len(parts[number].rows)], way)

    def _paints(self, visible: Sequence[Bits], part: Part, room: Images, most: int) -> list[pipeline.Paint]:
        """Tasks that paint the part's pictures into the room, at most `most` pictures each."""
        paints: list[pipeline.Paint] = []
        start = 0
        for image, places in part.pictures:
            for first in range(0, len(places), most):
                few = visible[image][places[first : first + most]]
                seeds = [part.seeds[image]] * len(few) if part.seeds else None
                paints.append(partial(self._paint, image, few, seeds, room[start : start + len(few)]))
                start += len(few)
        return paints

    def _paint(self, image: int, rows: Bits, seeds: list[int] | None, room: Images) -> None:
        painter = bound(self.occlusion.imputer, self.batch, [image] * len(rows))
        impute(painter, *self._masked(image, rows), seeds, room)

    def _masked(self, image: int, rows: Bits) -> tuple[Images, Keep]:
        """One picture repeated for each coalition (as a view), and the keep-masks."""
        images = self.batch.images
        pixels = pixels_of(rows, self._labels[image])
        keep = torch.from_numpy(pixels).to(images.device).view(-1, *images.shape[2:])
        return images[image].expand(len(rows), -1, -1, -1), keep

    def _summary(self, logits: Logits, owners: Index) -> Floats:
        self._memory.evaluated += len(owners)
        targets = self.batch.targets.cpu()[torch.from_numpy(owners)]
        return _summary(logits.cpu().double(), targets, self.model)

    def _seeds(self, draw: int) -> list[int]:
        """Seeds, one per image, shared by all its coalitions, so that differences between them are never luck."""
        name = named(self.occlusion.imputer)
        return [keyed_seed(self.batch.seed, identity, name, draw) for identity in self.batch.ids]


def game_of(model: Model, batch: Batch, occlusion: Occlusion, readout: Readout = "probability") -> Game:
    """The game shared by all methods and metrics for this batch, model and occlusion, whatever the readout."""
    known = _memories.setdefault(batch, WeakKeyDictionary()).setdefault(model, {})
    game = Game(model, batch, occlusion, readout)
    # Only the memory is stored: a stored game would keep its batch alive, and thus itself.
    object.__setattr__(game, "_memory", known.setdefault(recipe.key(occlusion), game._memory))
    return game


@runtime_checkable
class Occluding(Protocol):
    """A method or metric that asks a game: its occlusion, and what it reads of the model's answer."""

    occlusion: Occlusion
    readout: Readout


def flat_rows(model: Model, batch: Batch, component: object) -> Tensor:
    """(B,) bool: pictures that a component cannot scale, since hiding all of them changes nothing of the value."""
    found = torch.zeros(len(batch), dtype=torch.bool)
    for one in parts_of(component):
        if isinstance(one, Occluding) and isinstance(one.occlusion, Occlusion) and one.readout == "probability":
            found |= game_of(model, batch, one.occlusion).flat
    return found


@dataclass(frozen=True, eq=False)
class Part:
    """Rows that are evaluated together: the coalitions of each picture, in the order of the rows."""

    rows: Index
    pictures: list[tuple[int, Index]]
    seeds: list[int]  # one per picture of the batch; none where nothing is drawn


def _distinct(owners: Index) -> list[int]:
    """The pictures that own the rows, in the order of the rows."""
    return sorted(set(owners.tolist()))


def _packed(bits: Bits) -> list[bytes]:
    """One key per row."""
    packed = np.ascontiguousarray(np.packbits(bits, axis=1))
    return packed.view(f"V{packed.shape[1]}").ravel().tolist()  # type: ignore[no-any-return]


def _unpacked(keys: Sequence[bytes], count: int) -> Bits:
    packed = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), -(-count // 8))
    return np.unpackbits(packed, axis=1, count=count).astype(bool)


def _summary(logits: Tensor, targets: Tensor, model: Model) -> Floats:
    """(R, 4): the columns that every readout needs of these logits."""
    if len(targets) and int(targets.max()) >= logits.shape[1]:
        last = logits.shape[1] - 1
        raise BadInput(f"targets must be classes of model {model.name!r} (0 to {last}), got {int(targets.max())}")
    logs = logits.log_softmax(1)
    at = targets[:, None]
    log = logs.gather(1, at)
    return torch.cat(
        [log.exp(), model.read(logits, targets, "logit")[:, None], log, logs.amax(1, keepdim=True).exp()], 1
    ).numpy()
