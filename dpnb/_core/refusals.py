"""The exceptions that a request raises before anything is charged."""

from dpnb.errors import BudgetExceeded, ErrorEstimateUnavailable, InvalidValueError, PlanError, RequestError

REFUSALS = (BudgetExceeded, InvalidValueError, PlanError, RequestError, ErrorEstimateUnavailable)
