"""Ioctls in the order of the arguments, buffers of so many bytes and `wait` for the first: the processor time that each took."""

import sys
import time

from node import create, open_node, wait

node = open_node()
handle = create(node)
for order in sys.argv[1:]:
    began = time.thread_time()
    if order == "wait":
        wait(node, handle)
    else:
        create(node, int(order))
    print(time.thread_time() - began)
