/* The shim: preloaded into a program, it stands in for the kernel's i915 driver.
 *
 * Opening /dev/dri/card0 or renderD128 connects to the server, the process that simulates. The descriptor is that very
 * socket: the kernel duplicates it, hands it to children and other programs, and tells the server when the last copy is
 * closed, so nothing about descriptors is kept here. A node is recognised by the name of its peer, one opened node from
 * another by the name the socket was bound to.
 *
 * An ioctl travels over a second socket, a channel, one per thread. While the server works on it, it may ask for more:
 * memory behind pointers, a descriptor, a mapping. It answers with results to be written. So what an ioctl means is known
 * to the server alone.
 *
 * shim_channel.c talks to the server, shim_memory.c lends the program's own memory to it, shim_paths.c shows /dev/dri and /sys.
 * protocol.py is the other side. Plain C, no library but libc.
 */
#include "shim.h"
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

char run[80];
size_t run_length;

static int64_t as_result(int64_t result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* Of an input device: event0 has the minor number 64. */
static int minor_of_event(const char *node)
{
    return !strcmp(node, "event0") ? INPUT + 64 : !strcmp(node, "event1") ? INPUT + 65 : -1;
}

/* Which node a descriptor is: its minor number, and in name which of the opened ones; -1 if it is none of ours. */
int node_of(int fd, char *name)
{
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    int keep = errno, minor = -1;
    if (run_length && fd >= 0 && !getpeername(fd, (struct sockaddr *)&address, &size) && size > sizeof(sa_family_t) &&
        address.sun_family == AF_UNIX && !strncmp(address.sun_path, run, run_length) && address.sun_path[run_length] == '/') {
        const char *node = address.sun_path + run_length + 1;
        minor = !strcmp(node, "renderD128") ? 128 : !strcmp(node, "card0") ? 0 : minor_of_event(node);
    }
    if (minor >= 0 && name) {
        size = sizeof address;
        memset(&address, 0, sizeof address);
        getsockname(fd, (struct sockaddr *)&address, &size);
        memcpy(name, address.sun_path, NAME); /* a zero byte and five digits */
    }
    errno = keep;
    return minor;
}

int minor_of_path(const char *path)
{
    if (run_length && path && has_input && !strncmp(path, "/dev/input/", 11))
        return minor_of_event(path + 11);
    if (!run_length || !path || strncmp(path, "/dev/dri/", 9))
        return -1;
    const char *node = path + 9;
    if (!strncmp(node, "by-path/", 8))
        return strstr(node, "-render") ? 128 : strstr(node, "-card") ? 0 : -1;
    return !strcmp(node, "card0") ? 0 : !strcmp(node, "renderD128") ? 128 : -1;
}

int open_node(int minor, int flags)
{
    int kept = (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0) | (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0), fd, tries = 16;
    uint64_t unused;
    do /* names are picked in each network namespace, so another one may have ours by chance */
        fd = connect_to(minor == INPUT + 64 ? "event0" : minor == INPUT + 65 ? "event1" : minor ? "renderD128" : "card0", kept, 1, &unused);
    while (fd < 0 && errno == EADDRINUSE && --tries);
    return fd;
}

/* A signal ended DRM_IOCTL_I915_GEM_WAIT: its argument gets what is left of its time, as from the kernel's driver: programs ask again. */
static void write_time_left(const struct message_head *request, const char *data, uint64_t began)
{
    enum { TIMEOUT = 8 }; /* where it is in the argument */
    int64_t left, passed = (int64_t)(nanoseconds() - began);
    if (request->size < TIMEOUT + sizeof left)
        return;
    memcpy(&left, data + TIMEOUT, sizeof left);
    if (left <= 0) /* negative: without a limit */
        return;
    left = left > passed ? left - passed : 0;
    copy(&left, request->b + TIMEOUT, sizeof left, 1);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    NEXT(int, ioctl, int, unsigned long, ...);
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    struct message_head out = {.kind = IOCTL, .a = request, .b = (uintptr_t)argument, .c = (uint64_t)fd}, last;
    struct stat what;
    unsigned type = _IOC_TYPE(request);
    int device = run_length && has_input && type == 'E' ? node_of(fd, NULL) : -1;
    if (device >= INPUT)
        return (int)as_result(input_ioctl(device, request, argument));
    if (!run_length || (type != 'd' && type != 'b' && type != '>'))
        return next(fd, request, argument);
    if (type != 'd' && !syscall(SYS_newfstatat, fd, "", &what, AT_EMPTY_PATH) && (S_ISREG(what.st_mode) || S_ISFIFO(what.st_mode))) {
        out.kind = FOREIGN; /* a dma-buf or a sync file, if the server knows it */
    } else if (type != 'd' || node_of(fd, out.name) < 0)
        return next(fd, request, argument);
    char data[_IOC_SIZE(request) + 1];
    out.size = argument ? _IOC_SIZE(request) : 0;
    if (out.size && copy(data, (uintptr_t)argument, out.size, 0)) {
        errno = EFAULT;
        return -1;
    }
    int keep = errno, waits = out.kind == IOCTL && _IOC_NR(request) == 0x6c; /* DRM_IOCTL_I915_GEM_WAIT */
    uint64_t began = waits ? nanoseconds() : 0;
    last.kind = 0;
    int64_t result = exchange(&out, data, &last, NULL);
    if (waits && result == -EINTR)
        write_time_left(&out, data, began);
    if (last.kind == NOT_MINE)
        return next(fd, request, argument);
    errno = keep;
    return (int)as_result(result);
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct message_head out = {.kind = MMAP, .a = (uint64_t)offset, .b = length, .c = (uint64_t)fd}, last;
    if (fd < 0 || flags & MAP_ANONYMOUS || node_of(fd, out.name) < 0)
        return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
    int file = -1;
    if (as_result(exchange(&out, NULL, &last, &file)) < 0)
        return MAP_FAILED;
    void *at = (void *)syscall(SYS_mmap, address, length, protection, flags, file, (off_t)last.b);
    int keep = errno;
    syscall(SYS_close, file);
    errno = keep;
    return at;
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return mmap(address, length, protection, flags, fd, offset);
}

/* Events are read whole, as in the kernel (drm_read): where there is no room for one, none is read once there is one. */
EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
    NEXT(ssize_t, read, int, void *, size_t);
    enum { EVENT = 32 }; /* bytes of an event (kms/display.py) */
    int node = size % EVENT ? node_of(fd, NULL) : -1;
    if (node < 0 || node >= INPUT)
        return next(fd, buffer, size);
    if (size > EVENT)
        return next(fd, buffer, size - size % EVENT);
    char first;
    return recv(fd, &first, sizeof first, MSG_PEEK) < 0 ? -1 : 0;
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room) { return (void)room, read(fd, buffer, size); }

/* For the launcher, which says what is missing: an empty file in the run's folder. */
void remark(const char *kind, const char *api)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s-%s", run, kind, api);
    int keep = errno, fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        syscall(SYS_close, fd);
    errno = keep;
}

static int see_library(struct dl_phdr_info *library, size_t size, void *nothing)
{
    static const char *const known[][2] = {{"/libOpenCL", "OpenCL"}, {"/libvulkan.so", "Vulkan"}, {"/libva.so", "VA-API"},
                                           {"/libEGL.so", "OpenGL"}, {"/libGL.so", "OpenGL"},     {"/libgbm.so", "OpenGL"}};
    (void)size, (void)nothing;
    for (size_t i = 0; library->dlpi_name && i < sizeof known / sizeof *known; i++)
        if (strstr(library->dlpi_name, known[i][0]))
            remark("loads", known[i][1]);
    return 0;
}

__attribute__((destructor)) static void end(void)
{
    if (run_length)
        dl_iterate_phdr(see_library, NULL);
}

static void in_child(void)
{
    forget_channel();
    keep_own_pages();
}

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("SOFTGEN_RUN");
    if (!folder || strlen(folder) >= sizeof run - 16)
        return;
    strcpy(run, folder);
    start_channels();
    find_root();
    find_input();
    pthread_atfork(NULL, NULL, in_child);
    run_length = strlen(run); /* from here on, paths and nodes are looked at */
}
