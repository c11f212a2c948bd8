"""The ZPlus rule without the half that is zero behind a rectifier."""

from __future__ import annotations

from typing import Any

from heatproof.models._support.torchvision_repair import import_torchvision


def plus_rule(zero_params: list[str] | None) -> Any:
    """zennit's ZPlus, which runs the layer once for positive and once for negative inputs, without the second run where
    no input is negative: the same bits, in half the time.
    """
    import_torchvision("lrp (by way of zennit)")
    from zennit.core import BasicHook
    from zennit.rules import ZPlus

    class Plus(ZPlus):  # type: ignore[misc]
        def backward(self, module: Any, grad_input: Any, grad_output: Any) -> Any:
            if float(self.stored_tensors["input"][0].amin()) < 0:
                return super().backward(module, grad_input, grad_output)
            positive = BasicHook(self.input_modifiers[:1], self.param_modifiers[:1], self.output_modifiers[:1])
            positive.stored_tensors = self.stored_tensors
            return positive.backward(module, grad_input, grad_output)

    return Plus(zero_params=zero_params)
