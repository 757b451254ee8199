"""Names of opened nodes: what proves that a program has a descriptor of one, and what does not."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from softgen.bits.units import QWORD_MASK
from softgen.driver.run import server
from softgen.driver.run.node_name import ended, leads_to, padded, picked
from softgen.driver.run.protocol import MESSAGE
from tests.driver.program import Gpu


@pytest.mark.parametrize("name, found", [
    (b"\0abcde", b"\0abcde\0\0"), (b"", bytes(8)), (b"12345678", b"12345678"), (b"123456789", b"12345678"), ("text", b""), (None, b""),
])  # fmt: skip
def test_names_of_sockets_have_8_bytes(name: object, found: bytes) -> None:
    assert padded(name) == found


@pytest.mark.parametrize("name, found", [
    (b"\0abcde", b"\0abcde\0\0"), (b"", b""), (b"\0abcde\0\0", b""), (b"\0abcd", b""), (b"abcdef", b""), ("text", b""), (None, b""),
])  # fmt: skip
def test_only_the_kernel_names_nodes(name: object, found: bytes) -> None:
    assert picked(name) == found


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A node of a program, and the server's end of it."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as theirs:
        listener.bind(str(tmp_path / "renderD128"))
        listener.listen()
        theirs.bind("")
        theirs.connect(str(tmp_path / "renderD128"))
        with listener.accept()[0] as ours:
            yield theirs, ours


def test_a_descriptor_of_a_node_leads_to_its_connection(ends: tuple[socket.socket, socket.socket]) -> None:
    """What the program has written to it is no obstacle. Nothing is left on the way, and the descriptor is closed."""
    theirs, ours = ends
    for junk in (b"", b"junk", bytes(100_000)):
        theirs.send(junk)
        copy = os.dup(theirs.fileno())
        assert leads_to(copy, ours) and not Path(f"/proc/self/fd/{copy}").exists() and not ended(ours)
        with pytest.raises(BlockingIOError):
            ours.recv(1, socket.MSG_DONTWAIT)
    theirs.close()
    assert ended(ours)


def test_no_other_file_leads_to_a_node(ends: tuple[socket.socket, socket.socket]) -> None:
    """Not even a socket of the same name; nor the node itself where the program has ended writing to it."""
    theirs, ours = ends
    name = bytes(theirs.getsockname())
    theirs.shutdown(socket.SHUT_WR)
    pair, inet = socket.socketpair(), socket.socket()
    namesake = SimpleNamespace(getpeername=pair[0].getsockname, recv=ours.recv)
    with open(os.devnull, "rb") as file, pair[0], pair[1], inet, socket.socket(socket.AF_UNIX) as longer:
        longer.bind(name + b"\0\0")
        for other in (theirs, longer, pair[0], inet, file):
            copy = os.dup(other.fileno())
            assert not leads_to(copy, ours) and not Path(f"/proc/self/fd/{copy}").exists()
        assert not leads_to(os.dup(pair[0].fileno()), namesake)  # type: ignore[arg-type]


def test_a_socket_with_the_name_of_a_node_is_not_that_node(gpu: Gpu) -> None:
    """A program may give a socket a longer name that is the same in a message, and in another network namespace the same name."""
    owner, thief = gpu.program(), gpu.program()
    handle = owner.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    with socket.socket(socket.AF_UNIX) as forged:
        forged.bind(owner.name)
        name, node, thief.name, thief.node = thief.name, thief.node, owner.name, forged
        for connected in (False, True):
            if connected:  # then it is refused as a node
                forged.connect(str(gpu.folder / "renderD128"))
                assert MESSAGE.unpack(forged.recv(4096))[2] == (-errno.EINVAL) & QWORD_MASK
            with pytest.raises(OSError, match="Bad file"):
                thief.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle)
        thief.name, thief.node = name, node
    assert owner.thread().ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle).busy == 0 and thief.ioctl("DRM_IOCTL_VERSION").major == 1


def test_a_node_keeps_its_name(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of another network namespace connects with the name of a node: it is told to take another."""
    owner = gpu.program()
    handle = owner.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    monkeypatch.setattr(server, "picked", lambda address: owner.name)
    with pytest.raises(OSError) as refused:
        gpu.program()
    assert refused.value.errno == errno.EADDRINUSE and len(gpu.server.nodes) == 1
    assert owner.ioctl("DRM_IOCTL_I915_GEM_BUSY", handle=handle).busy == 0
