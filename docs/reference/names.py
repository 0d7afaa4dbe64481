"""The names that the examples in docstrings of methods use."""

import dpnb

session = dpnb.Session.rehearse(
    name="clinic",
    privacy_unit="person",
    max_rows_per_unit=2,
    public_size=5000,
    budget=dpnb.Budget(epsilon=2, delta=1e-6, discovery_delta=1e-7),
    schema={
        "age": dpnb.Bounded(0, 100, integer=True),
        "cost": dpnb.Bounded(0, 2000),
        "plan": dpnb.Categories(["free", "paid"]),
        "admitted": dpnb.Dates("2024-01-01", "2024-12-31"),
        "note": dpnb.Text(max_length=100),
    },
)
df = session.frame
persons = df.drop_duplicates("person")

people = dpnb.Session.rehearse(
    name="years",
    privacy_unit="person",
    max_rows_per_unit=5,
    budget=dpnb.Budget(epsilon=2, delta=1e-6),
    schema={
        "year": dpnb.Bounded(2020, 2024, integer=True),
        "cost": dpnb.Bounded(0, 2000),
        "weight": dpnb.Bounded(40, 160),
        "site": dpnb.Categories(["north", "south"]),
    },
).frame
