"""Columns of text tables are aligned, in one way for all of them."""

from __future__ import annotations

from dpnb.render.tables import facts_html, facts_text, table_html, table_text


def test_columns_are_as_wide_as_their_longest_cell() -> None:
    rows = [("id", "question", "mu"), ("1", "count", "0.1234"), ("10", "mean of x", "1")]
    assert table_text(rows) == ["id   question      mu", " 1      count  0.1234", "10  mean of x       1"]
    assert table_text(rows, left=(1, 2), indent=" ") == [
        " id  question   mu",
        "  1  count      0.1234",
        " 10  mean of x  1",
    ]


def test_texts_of_facts_begin_in_one_column_unless_a_name_is_longer() -> None:
    facts = [("cost", "one two three"), ("largest that fits", "all"), ("none", "")]
    assert facts_text(facts, 8, 8, " ") == [" cost:  one two", "        three", " largest that fits: all", " none:  "]
    assert facts_text(facts[:1], 8) == ["cost:   one two three"]


def test_html_of_names_and_heads_is_escaped_and_cells_are_html_already() -> None:
    assert ">a&lt;b</th>" in table_html(["a<b"], [["<i>1</i>"]])
    assert "<i>1</i></td><td>picture</td></tr>" in table_html(["a"], [["<i>1</i>"]], ["picture"])
    assert ">x &lt; y<a></td>" in facts_html([("error", "x < y")], {"error": "<a>"})
