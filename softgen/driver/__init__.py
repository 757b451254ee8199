"""Driver: the boundary to programs. The kernel's i915 driver, played by a small C library in the program and a server that simulates.

In:  system calls of an unmodified program: ioctls on /dev/dri nodes, mmap, paths under /dev/dri and /sys.
Out: submissions for the device, results in the program's buffers; a report of what ran and what did not.

shim*.c        preloaded into the program: nodes are sockets, ioctls are messages
protocol.py    the messages, and what the server may ask of the program meanwhile; process.py: memory it reads and writes by itself
uapi.py        the ioctls and their structures
facts.py       spec/driver: what the kernel says about each GPU, which drivers there are
node.py        what an opened node owns, what all share
query.py       questions about the GPU
gem.py         buffer objects; prime.py: shared between programs; userptr.py: the program's own memory; aperture.py: tiled ones row by row
context.py     contexts and address spaces
syncobj.py     sync objects; fence.py: fences and sync files
execbuffer.py  EXECBUFFER2 becomes a submission; queue.py: queues and turns; execute.py: the device does it, failures are told
ioctls.py      which function answers which ioctl
descriptors.py spare descriptors, for when all others are in use
server.py      who listens and answers; service.py: its process, until the launcher ends; tree.py: the /dev/dri and /sys it shows
environment.py what each runtime must be told; run_folder.py: the folder of a run; launcher.py: a program, its server and their end
"""
