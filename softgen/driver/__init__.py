"""Driver: the boundary to programs. The kernel's i915 driver, played by a small C library in the program and a server that simulates.

In:  system calls of an unmodified program: ioctls on /dev/dri nodes, mmap, paths under /dev/dri and /sys.
Out: submissions for the device, results in the program's buffers; a report of what ran and what did not.

shim/          the library preloaded into the program: nodes are sockets, ioctls are messages
uapi/          the kernel's interface: ioctls, structures, constants
ioctl/         what each ioctl does
objects/       what ioctls act on: buffers, contexts, address spaces, fences
kms/           the display: mode setting, framebuffers, page flips
queue/         submissions, from a context's queue to the device
run/           a run: the program, its server, and their end
errors.py      refusals
"""
