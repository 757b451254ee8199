"""Results that are made once for each key, on whichever host thread asks first, and kept for good.

functools.cache does not do that: two threads that ask at the same time both make the result, and the one that loses is freed, while its
user may already call it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Keep the results of a function by its positional arguments."""
    results: dict[tuple[object, ...], T] = {}
    making = threading.RLock()

    @wraps(function)
    def kept(*args: P.args, **more: P.kwargs) -> T:
        assert not more, "arguments are positional"
        if args not in results:
            with making:
                if args not in results:
                    results[args] = function(*args, **more)
        return results[args]

    return kept
