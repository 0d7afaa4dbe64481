"""A partition costs the sum of its p largest parts, whatever the order in which they grow."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.partition_cost import NO_PARTS, PartRef, PartSums
from rationals import fractions

losses = st.tuples(*[fractions(0, 3, max_denominator=50)] * 2)
charges = st.lists(st.tuples(st.sampled_from("abcd"), losses), max_size=12)


def grown(most: int, charged: list[tuple[str, tuple[Fraction, ...]]]) -> tuple[PartSums, list[Fraction]]:
    sums, paid = NO_PARTS, [Fraction(0)] * 2
    for part, loss in charged:
        sums, cost = sums.after((PartRef(1, part, most),), loss)
        assert all(0 <= grown <= own for grown, own in zip(cost, loss, strict=True))
        paid = [a + b for a, b in zip(paid, cost, strict=True)]
    return sums, paid


@given(most=st.integers(1, 5), charged=charges)
def test_growths_add_up_to_the_p_largest_sums_component_by_component(
    most: int, charged: list[tuple[str, tuple[Fraction, ...]]]
) -> None:
    sums, paid = grown(most, charged)
    for component in range(2):
        each = [sum((loss[component] for part, loss in charged if part == name), Fraction(0)) for name in "abcd"]
        assert paid[component] == sum(sorted(each, reverse=True)[:most])
    assert tuple(paid) == sums.cost(1, most, 2)


@given(most=st.integers(1, 5), charged=charges, part=st.sampled_from("abcde"), more=fractions(0, 2))
def test_what_is_free_costs_nothing_and_everything_beyond_is_paid(
    most: int, charged: list[tuple[str, tuple[Fraction, ...]]], part: str, more: Fraction
) -> None:
    sums, _ = grown(most, charged)
    place = PartRef(1, part, most)
    free = sums.free_loss(place, 2)
    _, cost = sums.after((place,), tuple(one + more for one in free))
    assert cost == (more, more)


def test_a_unit_in_p_parts_pays_at_most_what_is_counted() -> None:
    """The claim itself: whichever p parts a unit is in, the sum of these is within the cost."""
    charged = [(part, (Fraction(cost), Fraction(0))) for part, cost in (("a", 3), ("b", 5), ("c", 4), ("b", 1))]
    for most in (1, 2, 3):
        sums, paid = grown(most, charged)
        parts = [loss[0] for loss in sums.of(1).values()]
        assert (
            max(sum(parts[i] for i in range(3) if chosen >> i & 1) for chosen in range(8) if chosen.bit_count() == most)
            == paid[0]
        )


def test_a_partition_in_a_part_grows_the_part_by_what_it_grew_itself() -> None:
    inner = lambda part: (PartRef(2, part, 1), PartRef(1, "a", 1))  # noqa: E731
    one = (Fraction(1),)
    sums, cost = NO_PARTS.after(inner("x"), one)
    assert cost == one
    sums, cost = sums.after(inner("y"), one)  # as large as its sibling
    assert cost == (0,)
    sums, cost = sums.after((PartRef(1, "b", 1),), (Fraction(2),))
    assert cost == (1,)  # beyond the 1 of part a
    sums, cost = sums.after(inner("x"), (Fraction(3, 2),))
    assert cost == (Fraction(1, 2),)  # part a is at 5/2, beyond the 2 of part b
    assert sums.cost(1, 1, 1) == (Fraction(5, 2),)
    assert sums.cost(2, 1, 1) == (Fraction(5, 2),)
