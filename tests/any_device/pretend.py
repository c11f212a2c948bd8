"""A pretend device: its tensors hold their numbers on the CPU and refuse to mix with the CPU's, as a GPU's do.

Importing this module changes torch for the whole process, so it belongs in a process of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("pretend")  # the guards and hooks that C++ asks for
torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(…, device=…) is made on the CPU and then copied, which shows

DEVICE = torch.device("pretend:0")
CPU = torch.device("cpu")
aten = torch.ops.aten

COPIES = {aten.copy_.default, aten._to_copy.default, aten.set_.source_Tensor}
INDEXING = {
    aten.index.Tensor,
    aten._unsafe_index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}
NO_NUMPY = "a tensor of the pretend device has no numpy form: use Tensor.cpu() first"


class Mixed(RuntimeError):
    """An operation on tensors of two devices, or a generator of another device than its tensor."""


class There(Tensor):
    """A tensor of the pretend device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor, requires_grad: bool = False) -> There:
        if isinstance(held, There):
            raise TypeError("a tensor of the pretend device holds one of the CPU")
        made: There = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=CPU,
            requires_grad=requires_grad,
            dispatch_device=True,
        )
        made.held = held.detach()
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"There({self.held!r})"

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(NO_NUMPY)

    __array__ = numpy

    def tolist(self) -> Any:
        return self.held.tolist()

    def new_tensor(self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        made = torch.tensor(data, dtype=dtype or self.dtype)
        here = device is not None and torch.device(device).type == "cpu"
        return (made if here else There(made)).requires_grad_(requires_grad)

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        return There(self.held)

    @data.setter
    def data(self, value: There) -> None:
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self.held = value.held

    def __reduce_ex__(self, protocol: Any) -> Any:
        return There, (self.held, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied: Tensor = There(self.held.clone()).requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            copied._is_param = True  # type: ignore[attr-defined]
        memo[id(self)] = copied
        return copied


class Everywhere(TorchDispatchMode):
    """Sees operations without a tensor of the device too, such as `torch.zeros(…, device=…)`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})


def dispatched(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operation, by the CPU, if no GPU would refuse it; the answer is where a GPU would leave it."""
    if func is torch.ops.prim.device.default:
        return DEVICE
    leaves, _ = tree_flatten((args, kwargs))
    there = [leaf for leaf in leaves if isinstance(leaf, There)]
    here = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, There)]
    aimed = kwargs.get("device")
    _check_generator(kwargs.get("generator"), aimed, bool(there))
    if there and here and func not in COPIES:
        _check_mates(func, args, here)
    bare_args, bare = tree_map(lambda leaf: leaf.held if isinstance(leaf, There) else leaf, (args, kwargs))
    if aimed is not None:
        bare["device"] = CPU
        stays = torch.device(aimed).type == DEVICE.type
    elif func in COPIES:
        stays = isinstance(args[0], There)
    else:
        stays = bool(there)
    answer = func(*bare_args, **bare)
    if not stays and func is aten._to_copy.default and any(answer is leaf.held for leaf in there):
        answer = answer.clone()
    known = {id(leaf.held): leaf for leaf in there}  # what is changed in place is returned as itself
    return tree_map(_placed_by(known, stays), answer)


def _placed_by(known: dict[int, There], stays: bool) -> Callable[[Any], Any]:
    def placed(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or isinstance(leaf, There):
            return leaf
        return known[id(leaf)] if id(leaf) in known else There(leaf) if stays else leaf

    return placed


def _check_generator(generator: torch.Generator | None, aimed: Any, there: bool) -> None:
    if generator is None:
        return
    wanted = torch.device(aimed).type if aimed is not None else DEVICE.type if there else "cpu"
    if generator.device.type != wanted:
        raise Mixed(f"expected a {wanted!r} generator, got one of {generator.device.type!r}")


def _check_mates(func: Any, args: Any, here: list[Tensor]) -> None:
    """Single numbers and indices of the CPU may go with tensors of a GPU, and nothing else."""
    strangers = [mate for mate in here if mate.ndim]
    if func in INDEXING and isinstance(args[0], There):
        values = args[2] if len(args) > 2 else None
        strangers = [values] if isinstance(values, Tensor) and not isinstance(values, There) and values.ndim else []
    elif func in INDEXING:
        strangers = [args[0]]  # indices of a GPU do not go with a tensor of the CPU
    if not isinstance(args[0], There) and isinstance(args[0], Tensor) and func._schema.name.endswith("_"):
        strangers = strangers or [args[0]]  # written in place
    if strangers:
        raise Mixed(f"expected all tensors on one device, found some of {DEVICE} and some of the CPU ({func})")


class NoGrad(torch.no_grad):
    """Stands in for `torch.inference_mode`: tensors made in it cannot be held by another one."""

    def __new__(cls, mode: bool = True) -> Any:
        return super().__new__(cls) if mode else nullcontext()

    def __init__(self, mode: bool = True) -> None:
        super().__init__()


def _in_threads(run: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def everywhere(thread: threading.Thread) -> None:
        with Everywhere():  # a mode is of one thread
            run(thread)

    return everywhere


torch.__future__.set_overwrite_module_params_on_conversion(True)  # `.data` of a tensor cannot change its device
torch.inference_mode = NoGrad  # type: ignore[assignment,misc]
threading.Thread.run = _in_threads(threading.Thread.run)  # type: ignore[method-assign]
