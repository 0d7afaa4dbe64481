"""``pipe`` and ``apply``: the function receives the view or column itself, never rows, and is called once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpnb.errors import DpnbError, PlanError, UnsupportedError


class Pipe:
    """The method of frames, groups and columns."""

    __slots__ = ()

    def pipe(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``func(self, *args, **kwargs)``: the function receives the view or column, never rows.

        Parameters
        ----------
        func : callable
            Its first argument is this object.
        *args, **kwargs
            Further arguments of the function.

        Examples
        --------
        >>> df.pipe(lambda view: view[view["age"] > 65])
        <private table: age, cost, plan, admitted, note where age > 65>
        >>> df["age"].pipe(lambda column: column.clip(0, 65)).mean().description
        'mean of age.clip(0, 65)'
        """
        if not callable(func):
            raise PlanError(f"pipe: takes a function of the view or column; got {func!r}")
        return func(self, *args, **kwargs)


def applied(
    func: object, receiver: object, args: tuple[Any, ...], options: dict[str, Any], result: type, refusal: str
) -> Any:
    """The expression or query that a function of the analyst builds, for example ``lambda x: x**2`` or ``np.sqrt``.

    A function that cannot use a column, or returns anything but a `result`, could only be computed from the values of
    rows; it is refused with the text `refusal`.
    """
    if callable(func):
        try:
            built = func(receiver, *args, **options)
        except (TypeError, AttributeError, ValueError) as error:
            if isinstance(error, DpnbError):
                raise
            raise UnsupportedError(f"{refusal}; the function raised {type(error).__name__}: {error}") from error
        if isinstance(built, result):
            return built
    raise UnsupportedError(refusal)
