"""Every way a descriptor or a process can take, each time followed by work that must be done. Prints a line for each that is fine."""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading

from node import batch, create, ioctl, open_node, submit, view, wait, works


def plainly():
    return works(open_node()) and works(open_node("card0"))


def duplicated():
    node = open_node()
    other = fcntl.fcntl(node, fcntl.F_DUPFD, 100)
    handle = create(node)
    os.close(node)
    view(other, handle).close()
    return works(other)


def forked():
    node = open_node()
    works(node)
    child = os.fork()
    if not child:
        os._exit(0 if works(node) and works(open_node()) else 1)
    return os.waitpid(child, 0)[1] == 0 and works(node)


def executed():
    node = open_node()
    os.set_inheritable(node, True)
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import node; sys.exit(not node.works({node}))"
    return subprocess.run([sys.executable, "-c", code], close_fds=False, check=False).returncode == 0


def swept():
    """Everything above 2 is closed, our channel with it, and the numbers are used for something else."""
    child = os.fork()
    if not child:
        works(open_node())
        os.closerange(3, 4096)
        for _ in range(64):
            os.open(os.devnull, os.O_RDWR)
        os._exit(0 if works(open_node()) else 1)
    return os.waitpid(child, 0)[1] == 0


def threaded():
    node, fine = open_node(), []
    threads = [threading.Thread(target=lambda value=value: fine.append(works(open_node(), value))) for value in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return fine == [True] * 8 and works(node)


def sent():
    """A node sent over a socket is recognised by who gets it."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1)
        os._exit(0 if stat.S_ISCHR(os.fstat(descriptors[0]).st_mode) and works(descriptors[0]) else 1)
    socket.send_fds(ours, [b"!"], [open_node()])
    return os.waitpid(child, 0)[1] == 0


def looked_at():
    node = open_node()
    seen = os.fstat(node)
    path = os.stat("/dev/dri/renderD128")
    return (
        stat.S_ISCHR(seen.st_mode)
        and seen.st_rdev == path.st_rdev == os.makedev(226, 128)
        and stat.S_ISCHR(path.st_mode)
        and os.readlink(f"/proc/self/fd/{node}") == "/dev/dri/renderD128"
        and sorted(os.listdir("/dev/dri")) == ["by-path", "card0", "renderD128"]
        and open("/sys/dev/char/226:128/device/vendor").read() == "0x8086\n"
        and os.path.realpath("/sys/dev/char/226:128") == "/sys/devices/pci0000:00/0000:00:02.0/drm/renderD128"
        and not os.path.exists("/dev/dri/card1")
    )


def found_step_by_step():
    """As libudev walks: each name relative to the folder before it, following links by hand."""
    folder = os.open("/sys", os.O_PATH)
    for name in ("dev", "char", "226:0"):
        folder = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    folder = os.open("/sys", os.O_PATH)
    for name in ("devices", "pci0000:00", "0000:00:02.0", "drm", "card0"):
        folder = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    file = os.open("uevent", os.O_RDONLY, dir_fd=folder)
    return b"DEVNAME=dri/card0" in os.read(file, 4096)


def found_by_libudev():
    try:
        udev = ctypes.CDLL("libudev.so.1")
    except OSError:
        return True  # nothing to show here
    for name in ("udev_new", "udev_device_new_from_devnum", "udev_device_get_syspath", "udev_device_get_devnode"):
        getattr(udev, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(udev.udev_new())
    device = udev.udev_device_new_from_devnum(context, ctypes.c_char(b"c"), ctypes.c_uint64(os.makedev(226, 128)))
    if not device:
        return False
    path = ctypes.string_at(udev.udev_device_get_syspath(ctypes.c_void_p(device)))
    return path == b"/sys/devices/pci0000:00/0000:00:02.0/drm/renderD128"


def found_by_others():
    """ls, which asks for attributes of each file, and glob(), which libc does without calling itself."""
    listed = subprocess.run(["ls", "-l", "/dev/dri", "/sys/class/drm/"], capture_output=True, check=False)
    pattern = f"import ctypes; g = ctypes.create_string_buffer(256); print(ctypes.CDLL(None).glob({b'/dev/dri/render*'!r}, 0, None, g))"
    matched = subprocess.run([sys.executable, "-c", pattern], capture_output=True, check=False)
    return listed.returncode == 0 and listed.stderr == b"" and b"226, 128" in listed.stdout and matched.stdout == b"0\n"


def own_memory():
    """USERPTR: the GPU writes into memory of the program; a child gets its own copy of it."""
    node = open_node()
    memory = mmap.mmap(-1, 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:4] = b"here"
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    handle = struct.unpack("<QQII", ioctl(node, 0x73, struct.pack("<QQII", address, 8192, 0, 0)))[3]
    overlapping = struct.unpack("<QQII", ioctl(node, 0x73, struct.pack("<QQII", address + 4096, 4096, 0, 0)))[3]
    if memory[:4] != b"here":
        return False
    submit(node, (handle, 0x40000), (batch(node, (0x40100, 77), (0x41000, 78)), 0x10000))
    wait(node, handle)
    if struct.unpack_from("<I", memory, 0x100)[0] != 77 or struct.unpack_from("<I", memory, 0x1000)[0] != 78:
        return False
    submit(node, (overlapping, 0x80000), (batch(node, (0x80000, 79)), 0x10000))
    wait(node, overlapping)
    child = os.fork()
    if not child:
        memory[:4] = b"mine"
        os._exit(0)
    os.waitpid(child, 0)
    return struct.unpack_from("<I", memory, 0x1000)[0] == 79 and memory[:4] == b"here"


def lent_while_written():
    """Another thread writes to memory while it is taken over: no write may be lost. Only promised where userfaultfd is allowed."""
    held = ctypes.CDLL(None).syscall(323, os.O_CLOEXEC | 1) if os.uname().machine == "x86_64" else -1
    if held < 0:
        return True
    os.close(held)
    node, size = open_node(), 1 << 20
    for turn in range(8):
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))

        def write(memory=memory):
            for at in range(size):
                memory[at] = 1

        writer = threading.Thread(target=write)
        writer.start()
        while not memory[2000 + 100000 * turn]:
            pass
        ioctl(node, 0x73, struct.pack("<QQII", address, size, 0, 0))
        writer.join()
        if memory[:] != b"\1" * size:
            return False
    return True


def on_the_stack():
    """Memory that cannot be swapped, because the thread that asks runs on it: copied, and written back."""
    node, fine = open_node(), []

    def run():
        end = next(int(line.split()[0].split("-")[1], 16) for line in open("/proc/self/maps") if "[stack]" in line)
        handle = struct.unpack("<QQII", ioctl(node, 0x73, struct.pack("<QQII", end - 16384, 16384, 0, 0)))[3]
        submit(node, (handle, 0x40000), (batch(node), 0x10000))
        wait(node, handle)
        fine.append(True)

    run()
    return fine == [True]


def shared_memory():
    """PRIME: a buffer's memory in another process, by descriptor."""
    node = open_node()
    handle = create(node)
    descriptor = struct.unpack("<IIi", ioctl(node, 0x2D, struct.pack("<IIi", handle, 0, -1)))[2]
    child = os.fork()
    if not child:
        other = open_node()
        theirs = struct.unpack("<IIi", ioctl(other, 0x2E, struct.pack("<IIi", 0, 0, descriptor)))[0]
        submit(other, (theirs, 0x20000), (batch(other, (0x20000, 99)), 0x10000))
        wait(other, theirs)
        os._exit(0)
    os.waitpid(child, 0)
    with view(node, handle) as memory:
        return struct.unpack_from("<I", memory)[0] == 99


def fences():
    node = open_node()
    target = create(node)
    answer = submit(node, (target, 0x20000), (batch(node, (0x20000, 5)), 0x10000), flags=1 << 17)
    fence = struct.unpack("<QIIIIIIQQQQ", answer)[-1] >> 32
    return bool(select.select([fence], [], [], 20)[0])


def through_the_aperture():
    """GEM_MMAP_GTT of an X-tiled buffer: its rows in order, for what the program writes and for what the GPU does."""
    node = open_node()
    handle = create(node, 8192)
    ioctl(node, 0x61, struct.pack("<IIII", handle, 1, 1024, 0))
    offset = struct.unpack("<IIQ", ioctl(node, 0x64, struct.pack("<IIQ", handle, 0, 0)))[2]
    with mmap.mmap(node, 8192, offset=offset) as rows, view(node, handle, 8192) as memory:
        rows[1024:1028] = b"here"  # the second row
        submit(node, (handle, 0x40000), (batch(node, (0x40000 + 4096 + 512, 0x21212121)), 0x10000))
        wait(node, handle)
        return memory[512:516] == b"here" and rows[1024 + 512 : 1024 + 516] == b"!!!!" and memory[:4] == bytes(4)


def of_its_own():
    """A private mapping of a buffer: what the program writes there is its own, what it has not written is the buffer's."""
    node = open_node()
    handle = create(node, 8192)
    offset = struct.unpack("<IIQQQ", ioctl(node, 0x64, struct.pack("<IIQQQ", handle, 0, 0, 2, 0)))[2]
    with mmap.mmap(node, 8192, mmap.MAP_PRIVATE, offset=offset) as private, view(node, handle, 8192) as memory:
        private[:4], memory[4096:4100] = b"mine", b"ours"
        return memory[:4] == bytes(4) and private[:4] == b"mine" and private[4096:4100] == b"ours"


def interrupted():
    """A signal ends a wait for work that never ends, and the node goes on. The argument says how much of its time is left: programs that
    ask again wait no longer in all. A wait whose time was too short says so."""

    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    node = open_node()
    code = create(node)
    with view(node, code) as memory:
        memory[:12] = struct.pack("<3I", 0x18800101, 0x10000, 0)  # MI_BATCH_BUFFER_START, to itself
    submit(node, (code, 0x10000))
    signal.signal(signal.SIGALRM, lambda *_: None)
    for seconds, expected, most in ((60, errno.EINTR, 59.9), (0.01, errno.ETIME, 0.0)):
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        error, left = time_left(node, code, seconds)
        if error != expected or not most - 30 < left <= most or left < 0:
            return False
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        wait(node, code, -1)
    except Rang:
        return works(open_node())
    return False


def time_left(node, handle, seconds):
    """The error number of a wait, and the seconds that its argument has afterwards."""
    libc = ctypes.CDLL(None, use_errno=True)
    argument = ctypes.create_string_buffer(struct.pack("<IIq", handle, 0, int(seconds * 10**9)), 16)
    result = libc.ioctl(node, ctypes.c_ulong(request_of(0x6C)), argument)
    return ctypes.get_errno() if result else 0, struct.unpack_from("<q", argument.raw, 8)[0] / 10**9


def refused():
    """Bad pointers, bad numbers: an error number, never a crash."""
    node = open_node()
    wrong = []
    for number, data, expected in (
        (0x46, struct.pack("<iIQ", 4, 0, 8), errno.EFAULT),
        (0x69, struct.pack("<QIIIIIIQQQQ", 8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), errno.EFAULT),
        (0x9E, bytes(16), errno.EINVAL),
        (0xA0, bytes(64), errno.EACCES),
    ):
        try:
            ioctl(node, number, data)
            wrong.append(number)
        except OSError as error:
            if error.errno != expected:
                wrong.append((number, error.errno))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ioctl(node, ctypes.c_ulong(request_of(0x46)), ctypes.c_void_p(8)) != -1 or ctypes.get_errno() != errno.EFAULT:
        wrong.append("argument")
    try:
        fcntl.ioctl(node, 0x5401, bytearray(64), True)  # TCGETS
        wrong.append("terminal")
    except OSError:
        pass
    return wrong == []


def request_of(number):
    return 3 << 30 | 16 << 16 | ord("d") << 8 | number


CASES = (plainly, duplicated, forked, executed, swept, threaded, sent, looked_at, found_step_by_step, found_by_libudev, found_by_others,
         own_memory, lent_while_written, on_the_stack, shared_memory, fences, through_the_aperture, of_its_own, refused,
         interrupted)  # fmt: skip

if __name__ == "__main__":
    for case in CASES:
        if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
            print(case.__name__, "ok" if case() else "WRONG", flush=True)
