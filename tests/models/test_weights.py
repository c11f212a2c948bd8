import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from heatproof.errors import BadModel
from heatproof.models._support.weights import class_count, put_weights, read_weights


class Sneaky:
    """Would run code when unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (str(self.marker), "w"))


def same(weights, network):
    own = network.state_dict()
    return set(weights) == set(own) and all(torch.equal(weights[name], own[name]) for name in own)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": {"module." + name: value for name, value in state.items()}},
    ],
)
def test_weights_come_back_from_every_usual_wrapping(tmp_path, wrap):
    network = nn.Linear(3, 2)
    torch.save(wrap(network.state_dict()), tmp_path / "w.pth")
    assert same(read_weights(tmp_path / "w.pth"), network)


def test_safetensors(tmp_path):
    network = nn.Linear(3, 2)
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    assert same(read_weights(tmp_path / "w.safetensors"), network)


def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path):
    torch.save({"state_dict": {"weight": Sneaky(tmp_path / "ran")}}, tmp_path / "w.pth")
    with pytest.raises(BadModel, match=r"more than weights.*open.*--trust-pickle"):
        read_weights(tmp_path / "w.pth")
    assert not (tmp_path / "ran").exists()


def test_a_pickle_without_torch_is_refused_too(tmp_path):
    (tmp_path / "w.pkl").write_bytes(pickle.dumps(Sneaky(tmp_path / "ran"), protocol=2))
    with pytest.raises(BadModel):
        read_weights(tmp_path / "w.pkl")
    assert not (tmp_path / "ran").exists()


def test_a_whole_network_is_read_only_when_trusted(tmp_path):
    network = nn.Linear(3, 2)
    torch.save(network, tmp_path / "w.pth")
    with pytest.raises(BadModel, match="trust_pickle=True"):
        read_weights(tmp_path / "w.pth")
    assert same(read_weights(tmp_path / "w.pth", trust_pickle=True), network)


def test_no_such_file(tmp_path):
    with pytest.raises(BadModel, match="there is no weights file"):
        read_weights(tmp_path / "w.pth")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["w.pth", "w.safetensors"]))
def test_any_bytes_are_refused_with_a_reason(tmp_path_factory, content, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    with pytest.raises(BadModel):
        read_weights(path)


def test_a_file_without_tensors(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "w.pth")
    with pytest.raises(BadModel, match="must hold a state dict"):
        read_weights(tmp_path / "w.pth")


def test_weights_that_do_not_fit_are_named():
    network = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    weights = dict(network.state_dict())
    weights["other.weight"] = weights.pop("0.weight")
    weights["1.weight"] = torch.zeros(5, 5)
    with pytest.raises(BadModel, match=r"1 missing \(0\.weight\); 1 unexpected \(other\.weight\); 1 of another shape"):
        put_weights(network, weights, "w.pth")


def test_the_number_of_classes_is_read_off_the_last_layer():
    def make(classes):
        return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, classes))

    assert class_count(make(10), make(7).state_dict()) == 7
    assert class_count(make(10), make(10).state_dict()) is None
    assert class_count(make(10), nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 7)).state_dict()) is None
