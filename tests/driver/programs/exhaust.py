"""Uses up the server's descriptors from several processes, says what is refused and how, gives them back, and goes on working."""

import errno
import os
import sys
import threading
import time

from node import create, open_node, wait, works

PROCESSES = 4


def fill():
    """Open nodes until that is refused; the process itself has descriptors left, so it is the server that refuses."""
    taken = []
    try:
        while len(taken) < 2000:
            taken.append(open_node())
    except OSError as error:
        os.close(os.open(os.devnull, os.O_RDONLY))
        return errno.errorcode[error.errno]
    return "nothing"


def child(reading, writing):
    refused = fill()
    os.write(writing, refused.encode().ljust(8))
    os.read(reading, 1)
    os._exit(0)


def in_new_thread(node):
    """A thread that never spoke to the server needs a connection of its own."""
    told = []

    def ask():
        try:
            create(node)
            told.append("fine")
        except OSError as error:
            told.append(errno.errorcode[error.errno])

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(20)
    return told[0] if told else "hangs"


def main():
    node = open_node()
    handle = create(node)
    reading, release = os.pipe()
    told, writing = os.pipe()
    for _ in range(PROCESSES):
        if not os.fork():
            os.close(release)
            child(reading, writing)
    os.close(reading)
    print("refused", *sorted(os.read(told, 8).decode().strip() for _ in range(PROCESSES)))
    print("thread", in_new_thread(node))
    wait(node, handle)  # what is connected is served
    print("full", flush=True)
    sys.stdin.readline()
    os.close(release)
    for _ in range(PROCESSES):
        os.wait()
    end = time.monotonic() + 20
    while True:
        try:
            open_node()
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    print("thread", in_new_thread(node))
    print("works", works(node) and works(open_node()))


main()
