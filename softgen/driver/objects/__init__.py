"""What ioctls act on.

node.py        state of an opened node, and state that all nodes share
gem_object.py  buffer objects; gem_context.py: contexts; vm.py: address spaces; placement.py: buffers by address
submission.py  a submission; buffer_list.py: its list of buffers; buffer_claim.py: one submission at a time changes a buffer
fence.py       fences, sync objects and sync files
budget.py      limits on memory; address_parts.py: on the parts of 4 GiB that address spaces take; descriptors.py: spare descriptors
"""
