"""Libra gradients: any gradient method, with a backward pass that conserves what flows through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import Tensor

from heatproof.methods._support.channel_pooling import Pooling, pool
from heatproof.methods._support.gradient_rules import Rules, replacements
from heatproof.methods._support.layer_activations import frozen
from heatproof.methods._support.op_override import forward_only
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.smoothgrad import ChannelWise
from heatproof.registry import method
from heatproof.traits import Rule, cost_of, method_traits
from heatproof.types import Batch, Cost, Maps, Method, Model


@method("libra_grad")
@dataclass(frozen=True)
class LibraGrad:
    """A gradient method (`of`) whose backward pass is mended: attention, norms and gates are held constant.

    The answer does not change, only what flows back. Input times this gradient and bias times this gradient then add
    up to the logit exactly, in networks whose own gradients lose it to norms and attention. `of` may be any method that
    uses gradients: input_x_gradient (the default), integrated_gradients, full_grad, generic_attention, grad_cam. The
    paper reads the probability; here `of` says what is read. `unit_norm` also holds the norm of normalised features
    (CLIP) constant, without which input times gradient at or before them adds up to zero.

    Paper: Mehri et al. 2025, "LibraGrad: Balancing Gradient Flow for Universally Better Vision Transformer
    Attributions"
    """

    of: Method = field(default_factory=lambda: InputXGradient(readout="probability"))
    unit_norm: bool = False

    @property
    def signed(self) -> bool:
        return method_traits(self.of).signed

    @property
    def normalisation(self) -> Rule:
        return method_traits(self.of).normalisation

    @property
    def pooling(self) -> Pooling:
        return self.of.pooling if isinstance(self.of, ChannelWise) else "sum"

    @contextmanager
    def _mended(self, model: Model) -> Iterator[None]:
        rules = Rules(attention=True, lengths=self.unit_norm)
        with frozen(model.network), forward_only(model.network, replacements(rules)):
            yield

    def channels(self, model: Model, batch: Batch, /) -> Tensor:
        with self._mended(model):
            if isinstance(self.of, ChannelWise):
                return self.of.channels(model, batch)
            return self.of(model, batch)[:, None]

    def __call__(self, model: Model, batch: Batch, /) -> Maps:
        return pool(self.channels(model, batch), self.pooling)

    def cost(self) -> Cost:
        return cost_of(self.of) or Cost(1, 1)
