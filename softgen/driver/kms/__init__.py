"""Kernel Mode Setting: the virtual display, and the ioctls that set it up and show frames on it.

display.py      the display: its master, framebuffers, what is shown, commits and their events
crtc.py         state of the CRTC and its planes, with the kernel's checks; monitor.py: modes and EDID; vblank.py: vertical blanks
resources.py    ioctls on resources, connector, encoder and CRTC, page flips; framebuffer.py: framebuffers, dumb buffers
planes.py       planes and cursors; gamma.py: gamma ramps; sequence.py: waits for vertical blanks
atomic.py       atomic commits
properties.py   properties of mode objects, and blobs; handler.py: what the handlers of these ioctls have in common
"""
