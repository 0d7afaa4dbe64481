"""Row evaluation is total, and which rows of a unit count hangs on nothing but the unit's own rows."""

from __future__ import annotations

import datetime
import decimal
import logging
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._backends.contribution import label_hash, ranks, row_hash
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

X = {"x": Bounded(0, 10)}
G = {"g": Categories(["a", 1, False])}


class Trap:
    """Every use raises."""

    def __float__(self) -> float:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "counts_as"),
    [
        (3, 3.0),
        (3.5, 3.5),
        (True, 1.0),
        (np.float32(2.5), 2.5),
        (decimal.Decimal("2.5"), 2.5),
        ("4", 4.0),
        (" 4.5 ", 4.5),
        (11, 10.0),
        (-1, 0.0),
        (10**400, None),
        ("four", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        (None, None),
        (np.nan, None),
        (np.inf, None),
        (-np.inf, None),
        (pd.NA, None),
        (pd.NaT, None),
        (1 + 2j, None),
        (b"\xff", None),
        ([1], None),
        ({}, None),
        (datetime.datetime(2020, 1, 1), None),
        (pd.Timestamp(0), None),
        (pd.Timedelta(1), None),
        (Trap(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_a_number_does_not_count(
    value: Any, counts_as: float | None, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    column = np.empty(2, object)
    column[:] = [value, 7]
    prepared = prepare(pd.DataFrame({"x": pd.Series(column, dtype=object)}), X, PrivacyUnit())
    first, second = prepared.numbers["x"].tolist()
    assert second == 7
    assert first == counts_as if counts_as is not None else np.isnan(first)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, 2], dtype="Int64"),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1.5, None], dtype="Float64"),
        pd.Series(["1", "b"], dtype="str"),
        pd.Series([1, 2], dtype="category"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series([1 + 1j, 2]),
        pd.Series([None, None]),
        pd.Series([], dtype="int64"),
        pd.Series([1, 2], dtype="uint64"),
        pd.Series([1, 2], dtype="float16"),
        pd.Series([1, 2], index=[0, 0]),
    ],
    ids=lambda values: str(values.dtype),
)
def test_every_type_of_column_is_read(values: pd.Series) -> None:
    prepared = prepare(pd.DataFrame({"x": values, "g": values}), {**X, **G}, PrivacyUnit())
    assert prepared.numbers["x"].dtype == np.float64
    assert prepared.codes["g"].dtype == np.int8
    assert prepared.rows == len(values)


def test_texts_of_truth_values_count_like_these_in_a_column_of_numbers() -> None:
    columns: list[list[object]] = [["True", "False", "no"], [True, False, None]]
    texts, truths = (prepare(pd.DataFrame({"x": column}), X, PrivacyUnit()).numbers["x"] for column in columns)
    np.testing.assert_array_equal(texts, [1, 0, np.nan])
    np.testing.assert_array_equal(texts, truths)


@pytest.mark.parametrize(
    ("value", "code"),
    [("a", 0), (1, 1), (1.0, 1), (True, 1), (0, 2), ("1", 1), ("A", -1), (None, -1), ([1], -1), (Trap(), -1)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_declared_does_not_count(value: Any, code: int) -> None:
    column = np.empty(1, object)
    column[0] = value
    prepared = prepare(pd.DataFrame({"g": pd.Series(column, dtype=object)}), G, PrivacyUnit())
    assert prepared.codes["g"].tolist() == [code]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        ("", ""),
        (7, "7"),
        (7.0, "7"),
        (2.5, "2.5"),
        (True, "True"),
        (None, None),
        (np.nan, None),
        (np.inf, None),
        (pd.NaT, None),
        (b"a", None),
        (["a"], None),
        ("\ud800", None),
        (Trap(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_text_does_not_count(value: Any, text: str | None) -> None:
    column = np.empty(2, object)
    column[:] = [value, "other"]
    prepared = prepare(pd.DataFrame({"t": pd.Series(column, dtype=object)}), {"t": Text()}, PrivacyUnit())
    assert prepared.codes["t"][0] == (-1 if text is None else prepared.texts["t"][text])
    assert prepared.codes["t"][1] == prepared.texts["t"]["other"]


@pytest.mark.parametrize(
    ("value", "counts_as"),
    [
        ("2020-03-01", "2020-03-01"),
        ("2020-03-01T12:00:00+02:00", "2020-03-01T10:00:00"),
        (datetime.date(2020, 3, 1), "2020-03-01"),
        (datetime.datetime(2020, 3, 1, 5), "2020-03-01T05:00:00"),
        (pd.Timestamp("2020-03-01", tz="Asia/Tokyo"), "2020-02-29T15:00:00"),
        (np.datetime64("2020-03-01"), "2020-03-01"),
        ("1999-01-01", "2020-01-01"),
        (datetime.date(9999, 1, 1), "2021-01-01"),
        (pd.NaT, None),
        (None, None),
        ("yesterday", None),
        (20200301, None),
        (np.datetime64("NaT"), None),
        (Trap(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_date_does_not_count(value: Any, counts_as: str | None) -> None:
    column = np.empty(2, object)
    column[:] = [value, "2020-06-01"]
    schema: Schema = {"d": Dates("2020-01-01", "2021-01-01T00:00:00")}
    first, second = prepare(pd.DataFrame({"d": pd.Series(column, dtype=object)}), schema, PrivacyUnit()).numbers["d"]
    assert second == pd.Timestamp("2020-06-01").timestamp()
    assert np.isnan(first) if counts_as is None else first == pd.Timestamp(counts_as).timestamp()


@pytest.mark.parametrize("nobody", [None, np.nan, pd.NA, pd.NaT, [1], Trap()], ids=lambda value: type(value).__name__)
def test_a_row_without_a_unit_does_not_count(nobody: Any) -> None:
    column = np.empty(3, object)
    column[:] = ["u", nobody, "u"]
    prepared = prepare(pd.DataFrame({"x": [1, 2, 3], "u": pd.Series(column, dtype=object)}), X, PrivacyUnit("u", 5))
    assert prepared.numbers["x"].tolist() == [1, 3]


def test_later_changes_of_the_table_change_nothing() -> None:
    values = np.array([1.0, 2.0])
    frame = pd.DataFrame({"x": values}, copy=False)
    prepared = prepare(frame, X, PrivacyUnit())
    values[:] = 9
    frame.loc[:, "x"] = 8
    assert prepared.numbers["x"].tolist() == [1, 2]


def test_prepared_rows_have_no_face() -> None:
    assert "87131" not in repr(prepare(pd.DataFrame({"x": [87131]}), {"x": Bounded(0, 1e6)}, PrivacyUnit()))


def people(rows: int = 300, seed: int = 3) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "u": chance.integers(0, 40, rows),
            "x": chance.integers(0, 4, rows).astype(float),
            "g": chance.choice(["a", "b"], rows),
        }
    )


def kept(frame: pd.DataFrame, most: int = 2) -> pd.DataFrame:
    """What counts of each unit, as sorted contents; units are known by a column that tells them apart."""
    schema = {"x": Bounded(0, 10), "g": Categories(["a", "b"]), "who": Bounded(0, 100)}
    prepared = prepare(frame.assign(who=frame["u"]), schema, PrivacyUnit("u", most))
    content = pd.DataFrame({**prepared.numbers, **prepared.codes})
    return content.sort_values(["who", "x", "g"], ignore_index=True)


def test_at_most_k_rows_of_a_unit_count_and_all_of_one_that_has_fewer() -> None:
    frame = people()
    sizes = kept(frame).groupby("who").size()
    assert sizes.tolist() == frame.groupby("u").size().clip(upper=2).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    frame = people()
    pd.testing.assert_frame_equal(kept(frame.sample(frac=1, random_state=seed)), kept(frame))


@pytest.mark.parametrize("gone", [0, 7, 39])
def test_who_else_is_in_the_table_does_not_matter(gone: int) -> None:
    frame = people()
    everybody = kept(frame)
    pd.testing.assert_frame_equal(
        kept(frame[frame["u"] != gone]), everybody[everybody["who"] != gone].reset_index(drop=True)
    )


def test_a_name_is_the_same_whole_number_as_int_and_as_float() -> None:
    assert label_hash(17) == label_hash(17.0) == label_hash(np.int64(17)) == 17
    frame = people()
    pd.testing.assert_frame_equal(kept(frame.astype({"u": float})), kept(frame))


def test_the_hash_never_changes() -> None:
    """A ledger that is reopened must find the same rows: these figures may not be adapted to the code."""
    columns = [np.array([0, 1, 2**32, 125024]), np.array([5, 5, 0, 2**33 - 1])]
    assert row_hash(columns).tolist() == [1075109952, 913954059, 2115154760, 1672660778]
    assert label_hash("p1") == 1064801295775836163


@pytest.mark.statistical
def test_each_row_of_a_unit_is_as_likely_to_count_as_any_other() -> None:
    """A thousand units of four rows, two of them equal, one row counts: chi-squared with 2 degrees of freedom.

    A fair choice exceeds 27.6 with probability 1e-6.  A hash of the content alone takes the same row every time.
    """
    units = np.repeat(np.arange(1000), 4)
    content = np.tile([3, 3, 7, 9], 1000)
    chosen = content[ranks(units, units, [content]) < 1]
    counts = np.array([(chosen == value).sum() for value in (3, 7, 9)])
    fair = np.array([500, 250, 250])
    assert ((counts - fair) ** 2 / fair).sum() < 27.6
    nameless = content[ranks(units, np.zeros_like(units), [content]) < 1]
    assert len(set(nameless.tolist())) == 1


def test_names_are_told_apart_by_python_whatever_else_names_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library may end a text at a NUL, or take NaN in tuples for equal, until another kind of name is beside it."""

    def careless(values: Any) -> tuple[Any, Any]:
        return real(np.array([str(value).partition("\0")[0] for value in values], object))

    real = pd.factorize
    monkeypatch.setattr(pd, "factorize", careless)
    names = [*(f"id\0{number}" for number in range(20)), *((float("nan"), 1) for _ in range(4))]
    for odd in ([], [5], [[7]], [None]):
        column = np.empty(len(names) + len(odd), object)
        for place, name in enumerate([*names, *odd]):
            column[place] = name
        frame = pd.DataFrame({"u": pd.Series(column, dtype=object), "x": 1.0})
        prepared = prepare(frame, {"x": Bounded(0, 1)}, PrivacyUnit("u", 1))
        assert prepared.rows == len(names) + (odd == [5])


def test_a_complex_number_counts_by_its_real_part_alone_in_any_type_of_column() -> None:
    for values in ([np.complex128(3), np.complex128(4 + 1j)], [np.complex128(3), "odd"]):
        table = pd.DataFrame({"x": pd.Series(values)})
        assert repr(prepare(table, {"x": Bounded(0, 10)}, PrivacyUnit()).numbers["x"].tolist()) == "[3.0, nan]"
