"""Runs a program in which process_vm_readv and process_vm_writev are refused with EPERM, as seccomp filters of some containers do."""

import ctypes
import errno
import os
import platform
import struct
import sys

REFUSED = {"x86_64": (310, 311), "aarch64": (270, 271)}[platform.machine()]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # of classic BPF; a jump counts the instructions to skip
ALLOW, FAIL = 0x7FFF0000, 0x00050000

ROWS = ((LOAD, 0, 0, 0), (EQUAL, 2, 0, REFUSED[0]), (EQUAL, 1, 0, REFUSED[1]), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL | errno.EPERM))

code = b"".join(struct.pack("<HBBI", *row) for row in ROWS)
filter_ = ctypes.create_string_buffer(code)
program = struct.pack("@HP", len(code) // 8, ctypes.addressof(filter_))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
    print("no seccomp here:", os.strerror(ctypes.get_errno()))
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
