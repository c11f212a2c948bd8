"""Coverage of relevance rules: they hook layers, and a network may compute outside of its layers."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heatproof.engine.backends.eager import evaluating
from heatproof.models._support.torchvision_repair import import_torchvision
from heatproof.types import Images, Model

# Operations by name: one name for the function, the method, the operator and the in-place form.
_WEIGHTED = (
    *("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *("matmul", "mm", "bmm", "mv", "addmm", "addbmm", "baddbmm", "einsum", "tensordot", "bilinear"),
)
_QUOTIENTS = ("div", "divide", "true_divide")
_PRODUCTS = ("mul", "multiply", *_QUOTIENTS)
_NO_RULE = (
    *("batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm", "local_response_norm", "normalize"),
    *(
        "norm",
        "vector_norm",
        "matrix_norm",
        "softmax",
        "log_softmax",
        "softmin",
        "glu",
        "pow",
        "rpow",
        "square",
        "sqrt",
    ),
    *("rsqrt", "exp", "log", "abs", "reciprocal", "rdiv", "sin", "cos", "erf", "var", "std", "logsumexp"),
    *("cosine_similarity", "scaled_dot_product_attention"),
)


class Coverage(NamedTuple):
    """What one forward pass shows about a network."""

    fault: str  # why rules would explain it wrongly, and what to do; empty if they cover it
    layers: tuple[str, ...]  # its convolutions and linear layers by name, in the order in which they first ran


_known: weakref.WeakKeyDictionary[nn.Module, dict[tuple[int, ...], Coverage]] = weakref.WeakKeyDictionary()


def coverage(model: Model, images: Images) -> Coverage:
    """How far zennit's rules cover this network: checked with one picture, once per network and shape."""
    known = _known.setdefault(model.network, {})
    shape = tuple(images.shape[1:])
    if shape not in known:
        known[shape] = _look(model, images)
    return known[shape]


def _look(model: Model, images: Images) -> Coverage:
    import_torchvision("lrp (by way of zennit)")
    from zennit import types

    if any(isinstance(module, torch.jit.ScriptModule) for module in model.network.modules()):
        return Coverage("is compiled code, which cannot be inspected (pass the network it was made from)", ())
    names = {module: name for name, module in model.network.named_modules()}
    running: list[nn.Module] = []
    runs: Counter[nn.Module] = Counter()
    found: list[str] = []

    def enter(module: nn.Module, _: Any) -> None:
        running.append(module)
        runs[module] += 1

    def leave(*_: Any) -> None:
        running.pop()

    def check(operation: str, values: list[Any], learned: bool) -> None:
        depend = sum(_depends(value) for value in values)
        if not depend or any(isinstance(m, types.Activation | types.BatchNorm | types.AvgPool) for m in running):
            return  # these are passed as a whole, whatever they compute
        layer = running[-1] if running else None
        where = f"in {names[layer]!r}" if layer is not None and names[layer] else "in its forward"
        if operation in _WEIGHTED:
            own = getattr(layer, "weight", None) if isinstance(layer, types.Linear) else None
            if own is None or not any(value is own for value in values):
                found.append(f"computes {operation} {where} with weights that are no layer's own (make it a layer)")
        elif operation in _NO_RULE:
            found.append(f"computes {operation} {where}")
        elif operation in _PRODUCTS and depend > 1:
            found.append(f"multiplies or divides two branches {where} (a gate, as in squeeze-and-excitation)")
        elif operation in _QUOTIENTS and not _depends(values[0]):
            found.append(f"divides by what depends on the picture {where}")
        elif operation in _PRODUCTS and learned and not isinstance(layer, types.Linear):
            found.append(f"multiplies or divides by a learned factor {where} (make it a convolution)")

    with _watched(model.network, enter, leave), _OperationMonitor(check, model.network.parameters()):
        model(images[:1].detach().clone().to(model.device).requires_grad_())
    # A rule's hook stores one input. Activations and norms need none and may run again.
    for module, count in runs.items():
        if count > 1 and isinstance(module, types.Linear | types.AvgPool):
            found.append(f"runs its layer {names[module]!r} {count} times in one pass (give every run its own)")
    layers = tuple(names[module] for module in runs if isinstance(module, types.Linear))
    if not layers:
        found.append("runs no convolution or linear layer that can be seen")
    return Coverage(next(iter(found), ""), layers)


def _depends(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


@contextmanager
def _watched(network: nn.Module, enter: Callable[..., None], leave: Callable[..., None]) -> Iterator[None]:
    """A context with hooks on every layer, in which only values that depend on the picture require gradients."""
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    handles = [module.register_forward_pre_hook(enter) for module in network.modules()]
    handles += [module.register_forward_hook(leave, always_call=True) for module in network.modules()]
    try:
        for parameter in learning:
            parameter.requires_grad_(False)
        with torch.inference_mode(False), torch.enable_grad(), evaluating(network):
            yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
        for handle in handles:
            handle.remove()


class _OperationMonitor(TorchFunctionMode):  # type: ignore[misc]
    """Calls `check` before every operation, with its name, its arguments and whether one of them is learned."""

    def __init__(self, check: Callable[[str, list[Any], bool], None], parameters: Iterable[Tensor]) -> None:
        super().__init__()
        self.check = check
        # By id, since tensors compare by value; kept alive, so that no id is given twice.
        self.learned = {id(parameter): parameter for parameter in parameters}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        values = list(_flat([*args, *(kwargs or {}).values()]))
        learned = any(id(value) in self.learned for value in values)
        name = getattr(func, "__name__", "").strip("_").removeprefix("linalg_").removeprefix("special_")
        self.check(name, values, learned)
        result = func(*args, **(kwargs or {}))
        if learned and isinstance(result, Tensor) and not result.requires_grad:  # a view of a parameter, its exp, ...
            self.learned[id(result)] = result
        return result


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
