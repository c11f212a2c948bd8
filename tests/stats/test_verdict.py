"""The sentences must say what the tests say, and admit what so few images cannot show."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatproof.stats.decisions import decided, look
from heatproof.stats.groups import Groups
from heatproof.stats.page import Card, compare_means
from heatproof.stats.verdict import _number, reach, verdict


def normal_table(n, seed=0, **centres):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.normal(centre, 1, n) for name, centre in centres.items()})


def without_effects(sentences):
    return [re.sub(r", effects? (≥ )?[\d.]+\)", ")", sentence) for sentence in sentences]


def test_the_least_effect_stands_beside_the_largest_p():
    table = normal_table(60, a=6, b=3, c=0)
    effect = compare_means(table).frame.set_index(["method_a", "method_b"])["effect"]
    first, second = verdict(table, True)[:2]
    assert first.endswith(f"(p < 0.001, effects ≥ {min(effect['a', 'b'], effect['a', 'c']):.2g}).")
    assert second.endswith(f"(p < 0.001, effect {effect['b', 'c']:.2g}).")


def test_ties_and_wins_are_distinguished():
    output = without_effects(verdict(normal_table(40, LRP=2, IG=1.95, saliency=0), True))
    assert output == ["IG and LRP are not separated; both beat saliency (p < 0.001)."]


def test_a_clear_order_has_no_ties():
    output = without_effects(verdict(normal_table(60, a=6, b=3, c=0), True))
    assert output == ["a beats everything else (p < 0.001).", "b beats c (p < 0.001)."]


def test_lower_can_be_better():
    assert without_effects(verdict(normal_table(60, a=6, b=0), False)) == ["b beats a (p < 0.001)."]


def test_too_few_images_are_admitted_with_the_number_needed():
    output = verdict(normal_table(4, a=9, b=0, c=-9), True)
    assert output[0] == "With 4 images no two methods can be separated: at least 6 are needed."
    assert "a, b, c" in output[1]
    assert verdict(normal_table(7, a=90, b=0, c=-90), True)[0].startswith("a beats everything else")


def test_two_methods_on_five_images():
    output = verdict(normal_table(5, a=9, b=0), True)
    assert output[0] == "With 5 images the two methods cannot be separated: at least 6 are needed."


def test_noise_is_called_noise():
    output = verdict(normal_table(30, a=0, b=0, c=0), True)
    assert output[0].startswith("Nothing here separates any two of the 3 methods (30 images, smallest adjusted p = ")


def test_open_pairs_are_named():
    # b sits between a and c, near enough to both; a and c lie apart.
    output = verdict(normal_table(40, a=0.8, b=0.4, c=0.0, seed=3), True)
    tests = compare_means(normal_table(40, a=0.8, b=0.4, c=0.0, seed=3)).frame.set_index(["method_a", "method_b"])
    assert list(tests["significant"]) == [False, True, False]
    assert "a and b are not separated." in output
    assert "a also beats c" in " ".join(output)
    assert "Nothing here separates b from c." in output


def test_a_mean_carried_by_one_image_is_no_win():
    steady, lucky = np.linspace(1, 2, 30), np.linspace(0, 1, 30)
    lucky[-1] = 500
    output = verdict(pd.DataFrame({"steady": steady, "lucky": lucky}), True)
    assert output[0].startswith("Nothing here separates lucky from steady")


def test_differences_without_any_variance_are_named_as_such():
    column = np.random.default_rng(0).random(20)
    output = verdict(pd.DataFrame({"a": column + 0.5, "b": column}), True)
    assert output[0].endswith("they differ by the same amount on every image, without any variance.")
    output = verdict(pd.DataFrame({"a": column + 0.5, "b": column, "c": column[::-1] - 3}), True)
    assert "a and b differ by the same amount on every image: there is no variance to test that by." in output


@pytest.mark.parametrize(
    ("scenes", "for_whom", "beyond"),
    [
        (5, "; whether they hold beyond these 5 scenes is not tested: 6 are needed.", []),
        (10, ".", ["All of it would also hold beyond these 10 scenes."]),
    ],
)
def test_a_verdict_says_for_whom_it_speaks(scenes, for_whom, beyond):
    groups = Groups(pd.DataFrame({"scene": np.arange(80) % scenes}), {"scene": "fixed"})
    table = normal_table(80, a=4, b=0)
    tests = compare_means(table, groups=groups)
    assert reach(tests) == f"They speak for new pictures of the same {scenes} scenes{for_whom}"
    assert verdict(table, True, tests=tests)[1:] == beyond
    assert reach(compare_means(table)) == ""


def test_images_of_one_group_are_worth_fewer_independent_ones():
    groups = Groups(pd.DataFrame({"lesion": np.arange(80) % 10}), {"lesion": "sampled"})
    per_lesion = normal_table(10, a=4, b=0, c=0)
    table = pd.concat([per_lesion] * 8, ignore_index=True)  # every image of a lesion scores the same
    tests = compare_means(table, groups=groups)
    assert reach(tests) == "They speak for new lesions like these 10."
    output = verdict(table, True, tests=tests)
    assert "These 80 images are worth about 9 independent ones." in output  # ten, less one for the mean


def test_methods_shown_to_be_equivalent_are_called_so_once():
    rng = np.random.default_rng(0)
    hard = rng.normal(size=200)
    table = pd.DataFrame({name: hard + rng.normal(level, 0.05, 200) for name, level in (("a", 1), ("b", 1), ("c", 0))})
    page = decided([look({0: Card(table)}, None, 1, alpha=0.05)], alpha=0.05, margin=0.1)
    output = verdict(table, True, tests=page.tests[0])
    assert " differ by less than 0.1; both beat c" in output[0]
    assert "Shown to differ" not in " ".join(output)


def test_few_sampled_groups_leave_everything_open():
    groups = Groups(pd.DataFrame({"site": np.arange(80) % 4}), {"site": "sampled"})
    table = normal_table(80, a=4, b=0)
    output = verdict(table, True, tests=compare_means(table, groups=groups))
    assert output[0].startswith("With 4 sites the two methods cannot be separated: at least 6 are needed")


def test_a_method_with_few_scores_is_named_and_does_not_rank():
    table = normal_table(40, good=6, mid=3, bad=0)
    table["flaky"] = np.nan
    table.loc[0, "flaky"] = 99.0
    output = without_effects(verdict(table, True))
    assert output[:2] == ["good beats everything else (p < 0.001).", "mid beats bad (p < 0.001)."]
    assert output[-1] == "flaky has scores on 1 of 40 images only and is not ranked with the others."


@pytest.mark.parametrize(("p", "message"), [(0.04996, "0.05"), (0.0499996, "0.05"), (0.0301, "0.0301")])
def test_a_p_below_the_limit_is_not_printed_as_the_limit(p, message):
    assert (_number(p) == message) == (p < 0.04)
    assert float(_number(p)) < 0.05


def test_equal_scores_are_not_a_mere_tie():
    column = np.random.default_rng(0).random(20)
    output = verdict(pd.DataFrame({"a": column, "b": column}), True)
    assert output == ["a and b score the same on every image."]
    output = verdict(pd.DataFrame({"a": column, "b": column, "c": 0.9 * column - 1}), True)
    assert without_effects(output)[0] == "a and b score the same on every image; both beat c (p < 0.001)."


def test_holes_are_reported():
    table = normal_table(20, a=3, b=0)
    table["c"] = np.nan
    table.loc[0, "a"] = np.nan
    output = verdict(table, True)
    assert "c has no scores and is not compared." in output
    assert "1 of 20 images lacks a score from some method: each pair uses the images it has." in output


def test_one_method_has_no_rival():
    assert verdict(pd.DataFrame({"a": [1.0, 2.0]}), True) == [
        "a is the only method with scores: there is nothing to compare it with."
    ]


@given(st.integers(2, 5), st.integers(1, 30), st.integers(0, 10**6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_method_and_only_significant_wins_appear(methods, n, seed, higher):
    rng = np.random.default_rng(seed)
    names = [f"method{i}" for i in range(methods)]
    table = pd.DataFrame(rng.normal(rng.normal(size=methods), 1, (n, methods)), columns=names)
    text = " ".join(verdict(table, higher))
    wins = compare_means(table, higher_is_better=higher).frame["significant"].any()
    assert ("beat" in text) == wins
    named = [m for m in names if m in text]
    assert named == names or "everything else" in text or not wins


@pytest.mark.parametrize("n", [3, 30])
def test_sentences_are_sentences(n):
    for sentence in verdict(normal_table(n, a=1, b=0.5, c=0, d=-1), True):
        assert sentence.endswith(".")
        assert sentence[0].isalnum()
