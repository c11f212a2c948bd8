"""What every transformer method promises: planted tokens, hidden registers, any way of computing attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from networks import MEAN, STD, SmallViT, batch, small_vit
from torch import Tensor, nn

from heatproof.attribute import attribute
from heatproof.methods.attention_gradient_cam import AttentionGradientCam
from heatproof.methods.attention_rollout import AttentionRollout
from heatproof.methods.attn_lrp import AttnLRP
from heatproof.methods.generic_attention import GenericAttention
from heatproof.methods.input_x_gradient import InputXGradient
from heatproof.methods.legrad import LeGrad
from heatproof.methods.libra_grad import LibraGrad
from heatproof.methods.transformer_lrp import TransformerLRP
from heatproof.types import Model
from tests.methods.test_transformers import with_attention

GAMMALESS = {"gamma_conv": 0.0, "gamma_linear": 0.0}
RELEVANCE = [AttnLRP(), AttnLRP("cp_lrp", **GAMMALESS), LibraGrad(InputXGradient())]
EVERY = [
    AttentionRollout(),
    GenericAttention(),
    AttentionGradientCam(),
    TransformerLRP(),
    LeGrad(pool="own"),  # the published pool averages registers, too
    *RELEVANCE,
]


def named(method: Any) -> str:
    return f"{type(method).__name__}{getattr(method, 'composite', '')}"


@pytest.mark.parametrize("kind", ["written_out", "torch"])
@pytest.mark.parametrize("method", RELEVANCE, ids=named)
def test_relevance_does_not_depend_on_how_attention_is_computed(method: Any, kind: str) -> None:
    pictures = batch(2)
    maps, wanted = (attribute(model, pictures, method).maps for model in (with_attention(kind), small_vit()))
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))


class Coloured(nn.Module):
    """One layer without residual: red alone gives values, which the head counts positively; green gives queries and
    keys.
    """

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Conv2d(3, 12, 8, 8, bias=False)
        self.qk, self.v, self.head = nn.Linear(6, 24, bias=False), nn.Linear(6, 12, bias=False), nn.Linear(12, 10)
        with torch.no_grad():
            self.embed.weight.abs_()
            self.embed.weight[:6, 1:] = 0.0
            self.embed.weight[6:, 0] = 0.0
            self.v.weight.abs_()
            self.head.weight.abs_()
            self.head.bias.zero_()

    def mixed(self, tokens: Tensor) -> Tensor:
        red, rest = tokens.split(6, -1)
        q, k = self.qk(rest).chunk(2, -1)
        return F.scaled_dot_product_attention(q[:, None], k[:, None], self.v(red)[:, None])[:, 0]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.mixed(self.embed(x).flatten(2).mT).mean(1))


@pytest.mark.parametrize("method", [AttnLRP("cp_lrp", **GAMMALESS), LibraGrad(InputXGradient())], ids=named)
def test_only_the_patch_whose_value_is_read_is_marked(method: Any) -> None:
    """The other patches are not empty: they attend, and are attended to."""
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    images[:, 0] = 0.0
    images[:, :, 8:16, 16:24] = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
    network = Coloured()
    maps = attribute(Model("coloured", network), batch(2).showing(images), method).maps
    inside = torch.zeros(32, 32, dtype=torch.bool)
    inside[8:16, 16:24] = True
    assert float(maps[:, inside].min()) > 0
    assert float(maps[:, ~inside].abs().max()) < 1e-6 * float(maps.max())


class Hiding(SmallViT):
    """A register after the class token, which no token attends to; without it, the plain network."""

    def __init__(self, register: bool) -> None:
        super().__init__()
        self.register = nn.Parameter(3 * torch.ones(1, 1, 24)) if register else None

    def attended(self, block: nn.Module, x: Tensor) -> Tensor:
        count, tokens, width = x.shape
        q, k, v = block.attn.qkv(x).reshape(count, tokens, 3, block.attn.heads, -1).permute(2, 0, 3, 1, 4)
        hidden = torch.zeros(tokens, tokens)
        hidden[:, 1] = -torch.inf if self.register is not None else 0.0
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)
        return block.attn.proj(seen.transpose(1, 2).reshape(count, tokens, width))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patch_embed(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), patches], 1) + self.pos_embed
        if self.register is not None:
            tokens = torch.cat([tokens[:, :1], self.register.expand(len(x), -1, -1), tokens[:, 1:]], 1)
        for block in self.blocks:
            tokens = block(tokens, lambda rows, block=block: self.attended(block, rows))
        return self.head(self.norm(tokens)[:, 0])


class Step(nn.Module):
    """A block whose attention is given."""

    def __init__(self, like: nn.Module) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2, self.mlp = like.norm1, like.attn, like.norm2, like.mlp

    def forward(self, tokens: Tensor, attend: Any) -> Tensor:
        tokens = tokens + attend(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))


def hiding(register: bool) -> Model:
    torch.manual_seed(0)
    network = Hiding(register)
    network.blocks = nn.ModuleList(Step(block) for block in network.blocks)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name != "register":
                parameter.add_(0.1 * torch.randn_like(parameter))
    return Model("hiding", network.eval(), MEAN, STD, fixed_size=True)


@pytest.mark.parametrize("method", EVERY, ids=named)
def test_a_register_that_no_token_attends_to_changes_no_map(method: Any) -> None:
    pictures = batch(2)
    maps, wanted = (attribute(hiding(register), pictures, method).maps for register in (True, False))
    assert float(wanted.abs().max()) > 0 or isinstance(method, AttentionGradientCam)
    if isinstance(method, LeGrad):  # a mean over the rows of all tokens, of which there is one more
        maps = maps * 18 / 17
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))
