"""Barriers, and threads that end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from softgen.bits.generation import generation
from softgen.errors import DecodeError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions import gateway, spawner
from softgen.shared_functions.descriptors import encode
from softgen.shared_functions.unit import DispatchBindings, GroupBindings, MessageHandler, Unit, handlers

NOTHING = np.zeros(0, np.uint8)


@dataclass
class Sender:
    exec_size: int = 8


@dataclass
class Sent:
    sfid: int
    descriptor: int
    payload: np.ndarray = field(default_factory=lambda: np.zeros(32, np.uint8))  # type: ignore[type-arg]
    second: np.ndarray = field(default_factory=lambda: NOTHING)  # type: ignore[type-arg]
    response: np.ndarray = field(default_factory=lambda: NOTHING)  # type: ignore[type-arg]
    mask: int = 0xFF
    instruction: Sender = field(default_factory=Sender)


def connect(unit: Unit, threads: int = 1, notify: object = lambda: None) -> dict[int, MessageHandler]:
    return handlers([unit], GroupBindings(DispatchBindings(generation(9), AddressSpace("none", 48), {}), NOTHING, threads, notify))  # type: ignore[arg-type]


def test_the_last_thread_opens_the_barrier_again_and_again() -> None:
    opened: list[int] = []
    handle = connect(gateway.UNIT, 3, lambda: opened.append(1))[3]
    for number in range(1, 7):
        handle(None, Sent(3, encode("barrier", 9, message_length=1)))
        assert len(opened) == number // 3


def test_other_gateway_messages_are_refused_by_name() -> None:
    handle = connect(gateway.UNIT)[3]
    with pytest.raises(Unsupported, match="gateway: forward_message, mlen 1, rlen 0: not yet simulated"):
        handle(None, Sent(3, encode("forward_message", 9, message_length=1)))
    with pytest.raises(DecodeError, match="names no message"):
        handle(None, Sent(3, 7 | 1 << 25))


@pytest.mark.behaviour("KBL-GPGPU-15", shows="layout")
def test_a_thread_that_ends_is_let_go_and_spawning_is_refused() -> None:
    found = connect(spawner.UNIT)
    assert list(found) == [7]
    found[7](None, Sent(7, encode("dereference_resource", 9, message_length=1, resource_select=1)))
    with pytest.raises(Unsupported, match="thread_spawner: spawn_child_thread"):
        found[7](None, Sent(7, encode("spawn_child_thread", 9, message_length=1)))
