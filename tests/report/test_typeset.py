"""Numbers keep the digits they can bear; words are harmless."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatproof.report.typeset import (
    breakable,
    counted,
    duration,
    emphasised,
    escape,
    fixed,
    link_or_text,
    listed,
    number,
    plus_minus,
    probability,
    shortened,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.4123, "0.412"),
        (-1.2, "−1.20"),
        (0.0, "0"),
        (12345.6, "12\u202f346"),
        (3.1e-7, "3.1e−7"),
        (math.nan, "–"),
        (0.05, "0.050"),
        (99.95, "100.0"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_a_number_reads_back_nearly_as_it_was(value: float) -> None:
    text = number(value).replace("−", "-").replace("\u202f", "")
    assert float(text) == pytest.approx(value, rel=0.06, abs=6e-4)


@given(st.text())
def test_nothing_escapes(text: str) -> None:
    for written in (escape(text), breakable(text).replace("<wbr>", ""), emphasised(text, [])):
        assert not set("<>\"'") & set(written)


@given(st.text(), st.lists(st.text(min_size=1), max_size=4))
def test_emphasis_adds_only_strong(text: str, strong: list[str]) -> None:
    written = emphasised(text, strong).replace("<strong>", "").replace("</strong>", "")
    assert written == escape(text)


def test_emphasis_prefers_the_longer_name() -> None:
    message = emphasised("grad_cam beats grad.", ["grad", "grad_cam"])
    assert message == "<strong>grad_cam</strong> beats <strong>grad</strong>."


def test_words() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert counted(1, "image") == "1 image"
    assert counted(10_000, "image") == "10\u202f000 images"
    assert shortened("abcdef", 4) == "abc…"
    assert [duration(s) for s in (0.44, 38, 250, 7500)] == ["0.4 s", "38 s", "4 min 10 s", "2 h 5 min"]


def test_only_plain_addresses_become_links() -> None:
    assert 'href="https://arxiv.org/abs/1703.01365"' in link_or_text("Sundararajan 2017, arXiv:1703.01365")
    assert "href" in link_or_text("https://example.org/a?b=1&c=2")
    for hostile in ("javascript:alert(1)", "https://x\"onclick='1'", "<a href=x>"):
        assert "href=" not in link_or_text(hostile).replace("&lt;a href=x", "")


def test_names_that_are_too_long_lose_their_field_names_first():
    assert shortened("smoothgrad(method=lrp)", 17) == "smoothgrad(lrp)"
    assert shortened("smoothgrad(method=lrp)", 22) == "smoothgrad(method=lrp)"
    two = ("smoothgrad(method=saliency, draws=5)", "smoothgrad(method=integrated_gradients, draws=5)")
    assert shortened(two[0], 17) == "smoothgrad(salie…"
    assert shortened(two[0], 17) != shortened(two[1], 17)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.4626, 3, "0.463"),
        (-12.04, 1, "−12.0"),
        (2.0e-14, 1, "0"),
        (-3e-16, 3, "0"),
        (0.00044, 3, "< 0.001"),
        (-0.00044, 3, "> −0.001"),
        (0.0006, 3, "0.001"),
        (12345.67, 1, "12\u202f345.7"),
        (math.nan, 1, "–"),
        (math.inf, 2, "∞"),
    ],
)
def test_numbers_of_one_column_have_the_same_decimals(value: float, decimals: int, text: str) -> None:
    assert fixed(value, decimals) == text


def test_a_spread_has_the_decimals_of_its_centre() -> None:
    assert plus_minus(0.463, 4.4e-4) == "0.463 ± < 0.001"
    assert plus_minus(0.4632, 0.0207) == "0.463 ± 0.021"
    assert plus_minus(1.0, 0.0) == "1.000 ± 0.000"
    assert plus_minus(123.4, 5.67) == "123 ± 6"
    assert plus_minus(0.5, math.nan) == "0.500 ± –"


def test_no_probability_is_zero() -> None:
    assert [probability(p) for p in (0.031, 4.2e-9, 0.0, 5e-324, 1.0)] == [
        "0.031",
        "4.2e−9",
        "< 1e−300",
        "< 1e−300",
        "1.00",
    ]
