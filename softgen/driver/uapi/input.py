"""evdev's events: types, codes and their structure (public header linux/input-event-codes.h), and codes of keys by their place on a
keyboard as browsers name it (KeyboardEvent.code of W3C UI Events)."""

from __future__ import annotations

import struct

INPUT_EVENT = struct.Struct("<qqHHi")  # seconds, microseconds, type, code, value
EV_SYN, EV_KEY, EV_REL, EV_ABS = 0, 1, 2, 3
ABS_X, ABS_Y, REL_WHEEL = 0, 1, 8
BUTTONS = {0: 0x110, 1: 0x112, 2: 0x111}  # of browsers: left, middle, right
RANGE = 65535  # of absolute axes (shim_input.c)

_ROWS = (
    (1, "Escape Digit1 Digit2 Digit3 Digit4 Digit5 Digit6 Digit7 Digit8 Digit9 Digit0 Minus Equal Backspace Tab KeyQ "
        "KeyW KeyE KeyR KeyT KeyY KeyU KeyI KeyO KeyP BracketLeft BracketRight Enter ControlLeft KeyA KeyS KeyD KeyF "
        "KeyG KeyH KeyJ KeyK KeyL Semicolon Quote Backquote ShiftLeft Backslash KeyZ KeyX KeyC KeyV KeyB KeyN KeyM "
        "Comma Period Slash ShiftRight NumpadMultiply AltLeft Space CapsLock F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 NumLock "
        "ScrollLock Numpad7 Numpad8 Numpad9 NumpadSubtract Numpad4 Numpad5 Numpad6 NumpadAdd Numpad1 Numpad2 Numpad3 "
        "Numpad0 NumpadDecimal"),
    (86, "IntlBackslash F11 F12"),
    (96, "NumpadEnter ControlRight NumpadDivide PrintScreen AltRight"),
    (102, "Home ArrowUp PageUp ArrowLeft ArrowRight End ArrowDown PageDown Insert Delete"),
    (119, "Pause"),
    (125, "MetaLeft MetaRight ContextMenu"),
)
KEYS = {name: first + at for first, names in _ROWS for at, name in enumerate(names.split())}
