"""Names of opened nodes, and the proof that a program has a descriptor of the node that it names.

The kernel picks the name of a node's socket (shim.c): a zero byte and five digits, which no other socket of that network namespace has.
But a name proves nothing. A program may bind a socket to a longer name whose first bytes are the same, or to the very name in a network
namespace of its own. So a node is only taken in with a name as the kernel picks it, which no other node has, and a descriptor is only
believed where what is sent through it arrives at the server's end of the node.
"""

from __future__ import annotations

import os
import socket
import threading

SIZE = 8  # bytes of a name in a message
PICKED = 6  # bytes of a name that the kernel picked
PROOF = 16  # bytes that nobody guesses
PENDING = 1 << 16  # bytes read at once of what a program has sent to its node, which means nothing
MOST_READS = 64

_proving = threading.Lock()  # held from sending a proof until it is read


def padded(name: object) -> bytes:
    """The name of a socket as messages carry it."""
    return name.ljust(SIZE, b"\0")[:SIZE] if isinstance(name, bytes) else b""


def picked(name: object) -> bytes:
    """The name that the kernel gave a socket, as messages carry it; b"" for any name that a program chose, or none."""
    return padded(name) if isinstance(name, bytes) and len(name) == PICKED and name[:1] == b"\0" else b""


def leads_to(descriptor: int, connection: socket.socket) -> bool:
    """Whether a descriptor is the other end of a connection of the server. Closes the descriptor."""
    try:
        end = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        return False
    with end:
        try:
            return end.family == socket.AF_UNIX and end.getsockname() == connection.getpeername() and _arrives(end, connection)
        except OSError:  # it cannot be written to, or one of the ends is closed
            return False


def _arrives(end: socket.socket, connection: socket.socket) -> bool:
    """Whether a number sent into one end comes out of the other."""
    proof = os.urandom(PROOF)
    with _proving:
        _read(connection)  # what came before, so that the proof is not torn apart
        end.send(proof, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        return proof in _read(connection)


def _read(connection: socket.socket) -> bytes:
    data = b""
    try:
        for _ in range(MOST_READS):
            if not (more := connection.recv(PENDING, socket.MSG_DONTWAIT)):
                break
            data += more
    except BlockingIOError:
        pass
    return data


def ended(connection: socket.socket) -> bool:
    """Whether the last descriptor of a node is closed. Data that programs write to a node is read, and means nothing."""
    try:
        with _proving:
            return not connection.recv(PENDING, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
