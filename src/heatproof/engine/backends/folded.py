"""Batch norms folded into the convolutions before them: the same function in fewer passes over memory.

Only what the traced graph proves is folded: a batch norm with fixed statistics whose input is a convolution
that nobody else reads, with plain constant weights. Networks that cannot be traced stay as they are.
"""

from __future__ import annotations

import copy
import operator
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize

CONVOLUTIONS: dict[type[nn.Module], Any] = {nn.Conv1d: F.conv1d, nn.Conv2d: F.conv2d, nn.Conv3d: F.conv3d}
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Convolution(NamedTuple):
    """A convolution in the graph: its function, input node, weight, bias, and what comes after them."""

    function: Any
    source: fx.Node
    weight: Tensor
    bias: Tensor | None
    rest: tuple[Any, ...]  # stride, padding, dilation, groups


class Scaling(NamedTuple):
    """A batch norm with fixed statistics: x · factor + shift, per channel."""

    source: fx.Node
    factor: Tensor
    shift: Tensor


def folded(network: nn.Module) -> nn.Module | None:
    """A folded copy of the network in evaluation, or None where nothing can be proven to fold."""
    try:
        graph = fx.symbolic_trace(copy.deepcopy(network).eval().requires_grad_(False))
    except Exception:  # tracing runs a stranger's code on stand-ins: anything may be raised
        return None
    count = sum(_fold(graph, node, number) for number, node in enumerate(list(graph.graph.nodes)))
    if count == 0:
        return None
    graph.graph.eliminate_dead_code()
    graph.delete_all_unused_submodules()
    graph.recompile()
    return graph.eval()


def _fold(graph: fx.GraphModule, node: fx.Node, number: int) -> bool:
    """Fold the batch norm at this node, if it is one that can be."""
    scaling = _scaling(graph, node)
    if scaling is None or len(scaling.source.users) != 1:
        return False
    convolution = _convolution(graph, scaling.source)
    if convolution is None or len(convolution.weight) != len(scaling.factor):
        return False
    weight, bias = merge(convolution.weight, convolution.bias, scaling.factor, scaling.shift)
    names = (f"folded_{number}_weight", f"folded_{number}_bias")
    for name, value in zip(names, (weight, bias), strict=True):
        graph.register_buffer(name, value)
    with graph.graph.inserting_before(node):
        constants = tuple(graph.graph.get_attr(name) for name in names)
        both = graph.graph.call_function(convolution.function, (convolution.source, *constants, *convolution.rest))
    node.replace_all_uses_with(both)
    graph.graph.erase_node(node)
    graph.graph.erase_node(scaling.source)
    return True


def merge(weight: Tensor, bias: Tensor | None, factor: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """The weight and bias of one convolution that does what a convolution and a scaling did."""
    wide = _double(weight) * factor.view(-1, *[1] * (weight.ndim - 1))
    moved = shift if bias is None else _double(bias) * factor + shift
    return wide.to(weight), moved.to(weight)


def _double(values: Tensor) -> Tensor:
    """On the CPU, since not every device has float64."""
    return values.detach().cpu().double()


def _constant(graph: fx.GraphModule, argument: Any) -> Tensor | None:
    """The tensor an argument always is, or None."""
    if isinstance(argument, fx.Node) and argument.op == "get_attr":
        found = operator.attrgetter(str(argument.target))(graph)
        return found.detach() if isinstance(found, Tensor) else None
    return None


def _plain(module: nn.Module) -> bool:
    """Whether a module does only what its class says: no hooks, no weights computed on the way."""
    return not (module._forward_hooks or module._forward_pre_hooks or parametrize.is_parametrized(module))


def _arguments(node: fx.Node, names: tuple[str, ...], defaults: dict[str, Any]) -> dict[str, Any] | None:
    """The node's arguments by name, or None where it has others."""
    found = {**defaults, **dict(zip(names, node.args, strict=False)), **node.kwargs}
    return found if len(node.args) <= len(names) and set(found) == set(names) else None


def _convolution(graph: fx.GraphModule, node: fx.Node) -> Convolution | None:
    if node.op == "call_module":
        module = graph.get_submodule(str(node.target))
        function = CONVOLUTIONS.get(type(module))  # exactly: a subclass may do something to its weights
        if function is None or not _plain(module) or module.padding_mode != "zeros" or node.kwargs:
            return None
        assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
        bias = None if module.bias is None else module.bias.detach()
        rest = (module.stride, module.padding, module.dilation, module.groups)
        source = node.args[0]
        assert isinstance(source, fx.Node)
        return Convolution(function, source, module.weight.detach(), bias, rest)
    if node.op == "call_function" and node.target in CONVOLUTIONS.values():
        names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
        defaults = {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        found = _arguments(node, names, defaults)
        if found is None or not isinstance(found["input"], fx.Node):
            return None
        weight = _constant(graph, found["weight"])
        if weight is None:
            return None
        bias = _constant(graph, found["bias"])
        if bias is None and found["bias"] is not None:
            return None
        rest = tuple(found[name] for name in names[3:])
        return Convolution(node.target, found["input"], weight, bias, rest)
    return None


def _scaling(graph: fx.GraphModule, node: fx.Node) -> Scaling | None:
    if node.op == "call_module":
        module = graph.get_submodule(str(node.target))
        if type(module) not in NORMS or not _plain(module) or node.kwargs:
            return None
        assert isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)
        source = node.args[0]
        if module.running_mean is None or module.running_var is None or not isinstance(source, fx.Node):
            return None
        return _scaled(source, module.running_mean, module.running_var, module.weight, module.bias, module.eps)
    if node.op == "call_function" and node.target is F.batch_norm:
        names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
        defaults = {"weight": None, "bias": None, "training": False, "momentum": 0.1, "eps": 1e-5}
        found = _arguments(node, names, defaults)
        if found is None or found["training"] is not False or not isinstance(found["input"], fx.Node):
            return None
        mean, variance, weight, bias = (_constant(graph, found[name]) for name in names[1:5])
        unknown = (weight is None and found["weight"] is not None) or (bias is None and found["bias"] is not None)
        if mean is None or variance is None or unknown or not isinstance(found["eps"], float):
            return None
        return _scaled(found["input"], mean, variance, weight, bias, found["eps"])
    return None


def _scaled(
    source: fx.Node, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Scaling:
    factor = (_double(variance) + eps).rsqrt()
    if weight is not None:
        factor = factor * _double(weight)
    shift = -_double(mean) * factor
    return Scaling(source, factor, shift if bias is None else shift + _double(bias))
