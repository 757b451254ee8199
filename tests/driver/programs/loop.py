"""Submits work for ever, or until somebody ends it."""

from node import open_node, works

node = open_node()
print("ready", flush=True)
while works(node):
    pass
