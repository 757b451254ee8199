"""One process submits a batch that never ends; another works on meanwhile. Prints what the other came to."""

import os
import struct
import sys
import time

from node import create, open_node, submit, view, works

ENDLESS = struct.pack("<4I", 0x18800101, 0x10000, 0, 0)  # MI_BATCH_BUFFER_START, to itself

if not os.fork():
    node = open_node()
    code = create(node)
    with view(node, code) as memory:
        memory[: len(ENDLESS)] = ENDLESS
    submit(node, (code, 0x10000))
    print("hangs", flush=True)
    time.sleep(60)
    os._exit(0)
time.sleep(0.5)
node = open_node()
print("works" if all(works(node) for _ in range(5)) else "WRONG", flush=True)
sys.exit(5)
