"""What people do on the page of a running program, as events of its input devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from softgen.driver.run.input_devices import Event
from softgen.driver.uapi.input import ABS_X, ABS_Y, BUTTONS, EV_ABS, EV_KEY, EV_REL, KEYS, RANGE, REL_WHEEL

KEYBOARD, POINTER = "event0", "event1"


def events(said: Any) -> Iterator[tuple[str, list[Event]]]:
    """Devices and their events; what is not understood is left out: anybody with the address may send it."""
    for item in said if isinstance(said, list) else ():
        if not isinstance(item, dict):
            continue
        kind, down = item.get("kind"), int(bool(item.get("down")))
        if kind == "key" and (code := KEYS.get(str(item.get("code")))):
            yield KEYBOARD, [(EV_KEY, code, down)]
        elif kind == "move":
            yield from ((POINTER, list(place)) for place in [tuple(position(item))] if place)
        elif kind == "button" and item.get("button") in tuple(BUTTONS):
            yield POINTER, [*position(item), (EV_KEY, BUTTONS[item["button"]], down)]
        elif kind == "wheel" and item.get("y") in (-1, 1):
            yield POINTER, [(EV_REL, REL_WHEEL, -item["y"])]


def position(item: dict[str, Any]) -> Iterable[Event]:
    """Where the pointer is; the page sends shares of the screen."""
    x, y = item.get("x"), item.get("y")
    if isinstance(x, int | float) and isinstance(y, int | float) and 0 <= x <= 1 and 0 <= y <= 1:
        yield EV_ABS, ABS_X, round(x * RANGE)
        yield EV_ABS, ABS_Y, round(y * RANGE)
