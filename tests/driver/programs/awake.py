"""Ioctls in the order of the arguments: buffers of so many bytes, and `wait` for the first."""

import sys

from node import create, open_node, wait

node = open_node()
handle = create(node)
for order in sys.argv[1:]:
    if order == "wait":
        wait(node, handle)
    else:
        create(node, int(order))
