"""Driver: the boundary to programs. The kernel's i915 driver, played by a small C library in the program and a server that simulates.

In:  system calls of an unmodified program: ioctls on /dev/dri nodes, mmap, paths under /dev/dri and /sys.
Out: submissions for the device, results in the program's buffers; a report of what ran and what did not.

shim*.c        library preloaded into the program: nodes are sockets, ioctls are messages
protocol.py    messages between shim and server; process.py: memory of the program, accessed from the server; errors.py: refusals
uapi.py        ioctls and structures of the kernel's interface; drm.py, i915_drm.py: its constants
facts.py       spec/driver: what the kernel reports for each GPU, which drivers there are
node.py        state of an opened node, and state that all nodes share
query.py       GETPARAM, QUERY and other queries
gem.py         ioctls on buffer objects (gem_object.py); prime.py: sharing them; aperture.py: linear views of tiled ones
userptr.py     the program's own memory as a buffer; user_copy.py: copies of it
context.py     ioctls on contexts (gem_context.py) and address spaces (vm.py); placement.py: buffers by address
kms.py         mode-setting ioctls; framebuffer.py: those on framebuffers and dumb buffers; display.py: the display, page flips, events
syncobj.py     ioctls on sync objects; fence.py: fences, sync objects and sync files
execbuffer.py  EXECBUFFER2 becomes a submission (submission.py) with a list of buffers (buffer_list.py); relocation.py: its relocations;
               buffer_claim.py: one submission at a time changes a buffer
queue.py       queues by context, slots of engines; execute.py: execution by the device, failures; hints.py: advice about them;
               parking.py: submissions that wait at semaphores
budget.py      limits on memory; descriptors.py: spare descriptors
ioctls.py      dispatch of ioctls to their handlers
server.py      accepts connections and answers requests; node_name.py: whether a program has the node that it names;
               channel_threads.py: the threads that answer; wait_prediction.py: whether a program waits for each submission;
               service.py: the server's process; tree.py: the /dev/dri and /sys it shows
collector.py   the garbage collector of the server's process
environment.py environment variables for each runtime; run_folder.py: the folder of a run; launcher.py: program, server and their end;
               signal_wait.py: sigtimedwait
"""
