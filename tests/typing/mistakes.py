"""What mypy must refuse in an analyst's script: each line marked with the code of its error."""

import pandas as pd

import dpnb
from dpnb._request import Release
from dpnb._target import target_from

table = pd.DataFrame({"x": [1.0]})
schema = {"x": dpnb.Bounded(0, 10)}
budget = dpnb.Budget(epsilon=1.0, delta=1e-6)
session = dpnb.Session(table, name="a", budget=budget, schema=schema)
frame = session.frame
mean = frame["x"].mean()

dpnb.Session(table, nam="a", budget=budget, schema=schema)  # call-arg
dpnb.Session(table, name="a", budget=budget, schema=schema, filter="gpd")  # arg-type
dpnb.Session(table, name="a", budget=budget, schema=schema, accounting="worst case")  # arg-type
dpnb.Session(table, name="a", budget=budget, schema=schema, on_exhausted="stop")  # arg-type
dpnb.Session.rehearse(table, name="a", budget=budget, schema=schema, publicsize=3)  # call-arg
dpnb.Session.rehearse(table, name="a", budget=budget, schema=schema, filter="gpd")  # arg-type
dpnb.Bounded(0, 10, outside="clip")  # arg-type
frame.head()  # operator
frame["x"].meen()  # attr-defined
mean * 2  # operator
mean.head()  # attr-defined
mean.release(mu=0.1).cumsum()  # attr-defined
frame["x"].between(1, 2, inclusive="all")  # arg-type
frame["x"].astype("date")  # arg-type
frame["x"].var(ddof=2)  # arg-type
frame.merge(table, on="x", how="outer")  # arg-type
frame.agg(x=("x", "average"))  # arg-type
frame.agg("average")  # arg-type
frame.fit("x", on="x", family="lasso", mu=0.1, steps=3)  # call-overload
mean.preview(wihtin=0.3)  # call-overload
mean.release(mu=0.1, confidnce=0.9)  # call-arg
mean.release(mu=0.1).refine(withn=0.1)  # call-arg
mean.release(mu=[0.1, 0.2])  # arg-type
mean.release(mu=0.1).refine(mu=[0.2])  # arg-type
mean.preview(mu={"a": 0.1})  # call-overload
frame["x"].find_bounds().release(mu={"a": 0.1})  # arg-type
frame.groupby("x").size().top(1).release(mhu=0.1)  # call-arg
session.plan([mean], mu=[0.1])  # arg-type
session.plan([mean]).release(mu=[0.1])  # arg-type
session.request_budget(mean, why="w", mu={"a": 0.1})  # arg-type
session.delegate(name="b", mu=[0.1])  # call-overload
frame.fit("x", on="x", family="linear", mu=[0.1], steps=3)  # call-overload
Release(mean.plan, mean.view, 0.1)  # arg-type
mean.runner.executor.run(mean)  # arg-type
target_from(mu=[0.1])  # arg-type
session.above_threshold(3, name="t", epsilon=0.1, hits=2)  # call-overload
session.above_threshold(3, name="t", epsilon=0.1).ask("count")  # arg-type
session.delegate(name="b", mu=0.1, filter="gpd")  # call-overload
session.noise_reduction(mean, most=0.2)  # call-arg
session.partition("x", names="x")  # call-arg
session.budget = budget  # misc
