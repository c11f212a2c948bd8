"""Batch-norm folding: the same function in fewer passes over memory.

Only what the traced graph proves is folded: a batch norm with fixed statistics whose input is a convolution that
nothing else reads, with plain constant weights. Networks that cannot be traced stay as they are.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize
from torch.nn.utils.fusion import fuse_conv_bn_weights

from heatproof.engine.backends.eager import copied

CONVOLUTIONS: dict[type[nn.Module], Any] = {nn.Conv1d: F.conv1d, nn.Conv2d: F.conv2d, nn.Conv3d: F.conv3d}
NORMS: dict[type[nn.Module], Any] = dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), F.batch_norm)
# Parameters of the functions in order, with defaults; modules have attributes of the same names.
CONVOLVES: dict[str, Any] = {**dict.fromkeys(("input", "weight", "bias")), "stride": 1, "padding": 0}
CONVOLVES |= {"dilation": 1, "groups": 1}
NORMALISES: dict[str, Any] = dict.fromkeys(("input", "running_mean", "running_var", "weight", "bias"))
NORMALISES |= {"training": False, "momentum": 0.1, "eps": 1e-5}
TAKES: dict[Any, dict[str, Any]] = {**dict.fromkeys(CONVOLUTIONS.values(), CONVOLVES), F.batch_norm: NORMALISES}


class Call(NamedTuple):
    """An operation in the graph: its function and arguments, of which only the input is no constant."""

    function: Any
    arguments: dict[str, Any]


def folded(network: nn.Module) -> nn.Module | None:
    """A folded copy of the network in evaluation mode, or None where no fold can be proven correct."""
    try:
        graph = fx.symbolic_trace(copied(network))
    except Exception:  # tracing runs the network's code on proxies: it may raise anything
        return None
    if not sum(_fold(graph, node, number) for number, node in enumerate(list(graph.graph.nodes))):
        return None
    graph.graph.eliminate_dead_code()
    graph.delete_all_unused_submodules()
    graph.recompile()
    return graph.eval()


def _fold(graph: fx.GraphModule, node: fx.Node, number: int) -> bool:
    """Folds the batch norm at this node if possible; whether it did."""
    norm = _call(graph, node)
    if norm is None or norm.function is not F.batch_norm or not _is_fixed(norm.arguments):
        return False
    source = norm.arguments["input"]
    convolution = _call(graph, source) if len(source.users) == 1 else None
    if convolution is None or convolution.function is F.batch_norm:
        return False
    weight, bias, *rest = list(convolution.arguments.values())[1:]
    if len(weight) != len(norm.arguments["running_mean"]):
        return False
    with graph.graph.inserting_before(node):
        constants = []
        for name, value in zip(("weight", "bias"), merged(weight, bias, norm.arguments), strict=True):
            graph.register_buffer(f"folded_{number}_{name}", value)
            constants.append(graph.graph.get_attr(f"folded_{number}_{name}"))
        arguments = (convolution.arguments["input"], *constants, *rest)
        both = graph.graph.call_function(convolution.function, arguments)
    node.replace_all_uses_with(both)
    graph.graph.erase_node(node)
    graph.graph.erase_node(source)
    return True


def merged(weight: Tensor, bias: Tensor | None, norm: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The weight and bias of one convolution equal to a convolution followed by a batch norm."""

    def wide(values: Tensor | None) -> Any:  # on the CPU, since not every device has float64
        return None if values is None else values.detach().cpu().double()

    mean, variance, scale, shift = (wide(norm[name]) for name in ("running_mean", "running_var", "weight", "bias"))
    both = fuse_conv_bn_weights(wide(weight), wide(bias), mean, variance, norm["eps"], scale, shift)
    return both[0].detach().to(weight), both[1].detach().to(weight)


def _is_fixed(norm: dict[str, Any]) -> bool:
    known = norm["running_mean"] is not None and norm["running_var"] is not None and norm["training"] is False
    return known and isinstance(norm["eps"], float)


def _call(graph: fx.GraphModule, node: fx.Node) -> Call | None:
    """The convolution or batch norm at a node; None where it is something else, or not all of it is constant."""
    function: Any = node.target
    if node.op == "call_module":
        module = graph.get_submodule(str(node.target))
        function = {**CONVOLUTIONS, **NORMS}.get(type(module))  # the exact type: a subclass may transform its weights
        hooked = module._forward_hooks or module._forward_pre_hooks or parametrize.is_parametrized(module)
        if function is None or hooked or node.kwargs or getattr(module, "padding_mode", "zeros") != "zeros":
            return None
        found = {name: getattr(module, name) for name in list(TAKES[function])[1:]}
        found = {"input": node.args[0], **found}
    elif node.op == "call_function" and node.target in TAKES and len(node.args) <= len(TAKES[function]):
        found = {**TAKES[function], **dict(zip(TAKES[function], node.args, strict=False)), **node.kwargs}
        found |= {name: _constant(graph, found[name]) for name in list(found)[1:]}
    else:
        return None
    nodes = [isinstance(value, fx.Node) for value in found.values()]
    return Call(function, found) if nodes[0] and not any(nodes[1:]) and set(found) == set(TAKES[function]) else None


def _constant(graph: fx.GraphModule, argument: Any) -> Any:
    """The tensor behind a constant node of the graph; other arguments unchanged."""
    if isinstance(argument, fx.Node) and argument.op == "get_attr":
        return operator.attrgetter(str(argument.target))(graph)
    return argument
