"""The kernel's interface.

uapi.py        ioctls and structures; drm.py, i915_drm.py: its constants; input.py: events of input devices
kernel_tables.py  spec/driver: what the kernel reports for each GPU, which drivers there are
"""
