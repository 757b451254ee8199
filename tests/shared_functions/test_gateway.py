"""Barriers, and threads that end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.gateway import Gateway
from softgen.shared_functions.message import encode
from softgen.shared_functions.spawner import Spawner


@dataclass
class Sent:
    sfid: int
    descriptor: int


def test_the_last_thread_opens_the_barrier_again_and_again() -> None:
    opened: list[int] = []
    gateway = Gateway(9, 3, lambda: opened.append(gateway.arrived))
    handle = gateway.handlers()[3]
    for number in range(1, 7):
        handle(None, Sent(3, encode("barrier", 9, message_length=1)))
        assert len(opened) == number // 3


def test_other_gateway_messages_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="gateway: forward_message, mlen 1, rlen 0: not yet simulated"):
        Gateway(9, 1, lambda: None).handle(None, Sent(3, encode("forward_message", 9, message_length=1)))
    with pytest.raises(DecodeError, match="names no message"):
        Gateway(9, 1, lambda: None).handle(None, Sent(3, 7 | 1 << 25))


@pytest.mark.behaviour("KBL-GPGPU-15", shows="layout")
def test_a_thread_that_ends_is_let_go_and_spawning_is_refused() -> None:
    spawner = Spawner(9)
    assert list(spawner.handlers()) == [7]
    spawner.handle(None, Sent(7, encode("dereference_resource", 9, message_length=1, resource_select=1)))
    with pytest.raises(Unsupported, match="thread_spawner: spawn_child_thread"):
        spawner.handle(None, Sent(7, encode("spawn_child_thread", 9, message_length=1)))
