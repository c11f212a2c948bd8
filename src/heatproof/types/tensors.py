"""The tensors that components take and return, by name."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

Images: TypeAlias = Tensor  # (B, C, H, W) float32 in [0, 1]; the model normalises
Maps: TypeAlias = Tensor  # (B, H, W) float32; larger = more evidence for the target; signed unless the method is not
Keep: TypeAlias = Tensor  # (B, H, W) bool; True = the pixel stays visible. One polarity in the whole package
Segments: TypeAlias = Tensor  # (B, H, W) int64; labels 0 … n-1 per image
Scores: TypeAlias = Tensor  # (B,) one number per image
Logits: TypeAlias = Tensor  # (B, columns that can be explained): `heatproof.outputs`
