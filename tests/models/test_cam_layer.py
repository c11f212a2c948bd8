import pytest
import torch
from torch import nn

from heatproof.errors import BadModel
from heatproof.models._support.cam_layer import find_cam_layer, takes_one_size
from heatproof.models._support.torchvision_repair import import_torchvision


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("resnet18", "layer4"),
        ("squeezenet1_1", "classifier.2"),
        ("mobilenet_v3_small", "features"),
        ("swin_t", None),
    ],
)
def test_the_last_block_that_is_still_a_picture(name, layer):
    network = import_torchvision("a test").models.get_model(name, weights=None)
    assert find_cam_layer(network, 64) == layer


def test_pooling_at_the_end_is_not_a_layer_although_it_is_spatial():
    network = nn.Sequential()
    network.add_module("features", nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)))
    network.add_module("avgpool", nn.AdaptiveAvgPool2d(7))  # as in VGG
    network.add_module("classifier", nn.Sequential(nn.Flatten(), nn.Linear(4 * 49, 2)))
    assert find_cam_layer(network, 32) == "features"


class Head(nn.Module):
    """Convolution, batch norm, a rectifier in one form or another, pooling."""

    def __init__(self, form):
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(6, 2)
        self.act = nn.ReLU6(inplace=form == "in place")
        self.form = form

    def forward(self, x):
        x = self.conv(x)
        if self.form == "shared":
            x = self.act(x)
        x = self.norm(x)
        if self.form != "none":
            x = torch.relu(x) if self.form == "function" else self.act(x)
        return self.fc(self.pool(x).flatten(1))


@pytest.mark.parametrize(
    ("form", "layer"),
    [
        ("module", "act"),
        ("in place", "act"),
        ("shared", "pool:input"),
        ("function", "pool:input"),
        ("none", "norm"),
    ],
)
def test_what_the_last_rectifier_gives_is_wanted_where_it_can_be_had(form, layer):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = Head(form)
        nn.init.normal_(network.norm.bias)
    assert find_cam_layer(network, 16) == layer


def test_a_vit_has_no_such_layer_and_takes_one_size_only():
    vit = import_torchvision("a test").models.VisionTransformer(32, 8, 1, 2, 16, 32)
    assert find_cam_layer(vit, 32) is None
    assert takes_one_size(vit, 32)


def test_a_convolutional_network_takes_other_sizes():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    assert find_cam_layer(network, 16) == "0"
    assert not takes_one_size(network, 16)


class Twice(nn.Module):
    """A convolution, and then one that runs twice, put together in one way or another."""

    def __init__(self, way):
        super().__init__()
        self.first, self.shared, self.act = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()
        self.norm, self.pool = nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1)
        self.way = way

    def forward(self, x):
        x = self.first(x)
        match self.way:
            case "one after the other":
                x = self.shared(self.shared(x))
            case "each rectified":
                x = self.act(self.shared(self.act(self.shared(x))))
            case "rectified by a function":
                return self.pool(self.shared(self.shared(x)).relu()).flatten(1)
            case "a layer after them":
                x = self.norm(self.shared(self.shared(x)))
            case "each normed":
                x = self.norm(self.shared(self.norm(self.shared(x))))
            case "side by side":
                x = self.shared(x) + self.shared(x.flip(-1))
            case "with a skip":
                x = x + self.shared(x)
                x = x + self.shared(x)
            case "then on a vector":
                x = self.shared(self.shared(x))
                return self.shared(self.pool(x)).flatten(1)
        return x.mean((2, 3))


@pytest.mark.parametrize(
    ("way", "layer"),
    [
        ("one after the other", "shared:last"),
        ("each rectified", "act:last"),
        ("rectified by a function", "pool:input"),
        ("a layer after them", "norm"),
        ("each normed", "norm:last"),
        ("side by side", "shared"),  # not one thing: whoever reads it refuses
        ("with a skip", "shared"),
        ("then on a vector", "shared"),
    ],
)
def test_of_a_last_convolution_used_twice_the_last_time_is_meant(way, layer):
    torch.manual_seed(0)
    network = Twice(way)
    assert find_cam_layer(network, 16) == layer
    assert all(not module._forward_hooks for module in network.modules())


def test_looking_leaves_nothing_behind():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten()).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    find_cam_layer(network, 16)
    assert network.training
    assert all(module.training for module in network.modules())
    assert all(not module._forward_hooks for module in network.modules())
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_a_network_that_refuses_the_size_says_so():
    with pytest.raises(BadModel, match=r"\(batch, 3, 16, 16\)"):
        find_cam_layer(nn.Sequential(nn.Flatten(), nn.Linear(5, 2)), 16)
