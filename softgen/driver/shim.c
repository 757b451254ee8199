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
 * Files under /dev/dri and /sys are looked up in a small tree the server made; the paths are listed below.
 * protocol.py is the other side and gives the same numbers. Plain C, no library but libc.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PER_THREAD static __thread __attribute__((tls_model("initial-exec")))
#define NEXT(result, name, ...)                                   \
    static result (*next)(__VA_ARGS__);                           \
    if (!next)                                                    \
        next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

enum { IOCTL = 1, MMAP = 2, FOREIGN = 3, REPLY = 4, HELLO = 5 };                                    /* to the server */
enum { DONE = 16, READ = 17, GIVE = 18, MAPS = 19, SWAP = 20, MAP = 21, NOT_MINE = 22 };            /* from it */
enum { MOST_DESCRIPTORS = 8, ROOM = 4096, DRM_MAJOR = 226, NAME = 8 };

struct message {
    uint32_t kind, size; /* size of what follows */
    uint64_t a, b, c;
    char name[NAME]; /* which opened node */
};

struct part { /* in READ: what is wanted; in DONE: what follows is to be written there, or a descriptor's number is */
    uint64_t address;
    uint32_t size, descriptor; /* 0: data follows; n: the n-th descriptor received */
};

struct channel {
    int fd, busy;
    pid_t pid;
    ino_t inode;
};

static char run[80]; /* the run's folder: sockets and the tree; empty outside softgen run */
static size_t run_length;
PER_THREAD struct channel own;
static pthread_key_t ending;

static void start(void)
{
    const char *folder = getenv("SOFTGEN_RUN");
    if (!folder || strlen(folder) >= sizeof run - 16)
        return;
    strcpy(run, folder);
    run_length = strlen(run);
}

static void lost(void)
{
    static const char text[] = "softgen: the simulator has ended; this program cannot go on without its GPU\n";
    if (write(2, text, sizeof text - 1)) {
    }
    _exit(1);
}

/* -- talking ------------------------------------------------------------------------------------------------------- */

static int connect_to(const char *name, int flags, int named)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | flags, 0);
    if (fd < 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", run, name);
    sa_family_t anything = AF_UNIX; /* the kernel picks a name nobody has */
    int bad = named && bind(fd, (struct sockaddr *)&anything, sizeof anything);
    while (!bad && connect(fd, (struct sockaddr *)&address, sizeof address) && (bad = errno != EINTR))
        ;
    if (!bad)
        return fd;
    syscall(SYS_close, fd);
    errno = ENODEV; /* the server is gone */
    return -1;
}

static int send_all(int fd, const struct message *message, const void *payload, int descriptor)
{
    struct iovec parts[2] = {{(void *)message, sizeof *message}, {(void *)payload, message->size}};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct msghdr out = {.msg_iov = parts, .msg_iovlen = message->size ? 2 : 1};
    if (descriptor >= 0) {
        out.msg_control = &control;
        out.msg_controllen = sizeof control.room;
        control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &descriptor, sizeof descriptor);
    }
    size_t left = sizeof *message + message->size;
    while (left) {
        ssize_t sent = syscall(SYS_sendmsg, fd, &out, MSG_NOSIGNAL); /* an ioctl is no place where a thread may be cancelled */
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        left -= (size_t)sent;
        out.msg_control = NULL;
        out.msg_controllen = 0;
        while (out.msg_iovlen && (size_t)sent >= out.msg_iov->iov_len) {
            sent -= (ssize_t)out.msg_iov->iov_len;
            out.msg_iov++;
            out.msg_iovlen--;
        }
        if (out.msg_iovlen) {
            out.msg_iov->iov_base = (char *)out.msg_iov->iov_base + sent;
            out.msg_iov->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

/* Bytes, and the descriptors that came with them. */
static int receive(int fd, void *to, size_t size, int *descriptors, int *count)
{
    union { struct cmsghdr head; char room[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))]; } control;
    while (size) {
        struct iovec part = {to, size};
        struct msghdr in = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t got = syscall(SYS_recvmsg, fd, &in, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        struct cmsghdr *head = CMSG_FIRSTHDR(&in);
        if (count && head && head->cmsg_type == SCM_RIGHTS) {
            *count = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(descriptors, CMSG_DATA(head), (size_t)*count * sizeof(int));
        }
        to = (char *)to + got;
        size -= (size_t)got;
    }
    return 0;
}

/* A thread's channel. The program may have forked, or closed or replaced every descriptor it does not know: the socket is
 * used only if it is still the one that was made. A signal handler that comes in the middle of an exchange gets its own. */
static int open_channel(struct channel *channel)
{
    struct stat now;
    struct rlimit limit;
    struct ucred server;
    socklen_t size = sizeof server;
    int fd = connect_to("server", SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == ENODEV)
        lost();
    if (fd < 0)
        return -1;
    if (!getrlimit(RLIMIT_NOFILE, &limit)) { /* out of the way of programs that count on low numbers */
        int high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, (long)(limit.rlim_cur > 4096 ? 3000 : limit.rlim_cur / 4 * 3));
        if (high >= 0) {
            syscall(SYS_close, fd);
            fd = high;
        }
    }
    if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) && server.pid > 0)
        prctl(PR_SET_PTRACER, (unsigned long)server.pid, 0, 0, 0); /* it may write to memory that cannot be shared */
    if (syscall(SYS_newfstatat, fd, "", &now, AT_EMPTY_PATH))
        return -1;
    *channel = (struct channel){.fd = fd, .pid = getpid(), .inode = now.st_ino};
    struct message hello = {.kind = HELLO, .a = (uint64_t)channel->pid};
    return send_all(fd, &hello, NULL, -1);
}

static int is_ours(const struct channel *channel)
{
    struct stat now;
    return channel->pid && !syscall(SYS_newfstatat, channel->fd, "", &now, AT_EMPTY_PATH) && now.st_ino == channel->inode;
}

static void close_channel(struct channel *channel)
{
    if (is_ours(channel))
        syscall(SYS_close, channel->fd);
    channel->pid = 0;
}

static void thread_ends(void *channel)
{
    close_channel(channel);
}

static struct channel *take_channel(struct channel *spare)
{
    struct channel *channel = own.busy && own.pid == getpid() ? spare : &own;
    spare->pid = 0;
    if (channel == &own && own.pid && (own.pid != getpid() || !is_ours(&own)))
        close_channel(&own);
    if (!channel->pid && open_channel(channel))
        return NULL; /* no descriptor left */
    channel->busy = 1;
    if (channel == &own)
        pthread_setspecific(ending, &own);
    return channel;
}

static void leave_channel(struct channel *channel)
{
    channel->busy = 0;
    if (channel != &own)
        close_channel(channel);
}

/* -- what the server may ask for ------------------------------------------------------------------------------------ */

/* Memory named by a pointer the program gave: a bad one is EFAULT, not a crash. */
static int copy(void *ours, uint64_t theirs, size_t size, int to_program)
{
    static int direct;
    struct iovec here = {ours, size}, there = {(void *)(uintptr_t)theirs, size};
    while (!direct && here.iov_len) {
        ssize_t done = (to_program ? process_vm_writev : process_vm_readv)(getpid(), &here, 1, &there, 1, 0);
        if (done < 0 && (errno == ENOSYS || errno == EPERM)) {
            direct = 1; /* forbidden here, as in some containers */
            break;
        }
        if (done <= 0)
            return -EFAULT;
        here.iov_base = (char *)here.iov_base + done;
        there.iov_base = (char *)there.iov_base + done;
        here.iov_len = there.iov_len -= (size_t)done;
    }
    if (here.iov_len && to_program)
        memcpy(there.iov_base, here.iov_base, here.iov_len);
    else if (here.iov_len)
        memcpy(here.iov_base, there.iov_base, here.iov_len);
    return 0;
}

static void answer(int fd, int64_t result, const void *payload, size_t size, int descriptor)
{
    struct message reply = {.kind = REPLY, .size = (uint32_t)size, .a = (uint64_t)result};
    if (send_all(fd, &reply, payload, descriptor))
        lost();
}

static void answer_read(int fd, const struct part *wanted, size_t count)
{
    size_t total = 0, at = 0;
    int bad = 0;
    for (size_t i = 0; i < count; i++)
        total += wanted[i].size;
    char *data = malloc(total + 1);
    for (size_t i = 0; data && i < count && !bad; at += wanted[i++].size)
        bad = copy(data + at, wanted[i].address, wanted[i].size, 0);
    answer(fd, data ? bad : -ENOMEM, data, data && !bad ? total : 0, -1);
    free(data);
}

static char *own_maps(size_t *size)
{
    size_t room = 1 << 16, used = 0;
    char *text = malloc(room);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (text && fd >= 0) {
        ssize_t got = syscall(SYS_read, fd, text + used, room - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if ((used += (size_t)got) == room) {
            char *more = realloc(text, room *= 2);
            if (!more)
                free(text);
            text = more;
        }
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    *size = text ? used : 0;
    return text;
}

/* Other threads that write to a range wait until the descriptor returned is closed; where the kernel does not allow it, -1:
 * then a write in the few microseconds of the copy is lost. Pages must be there to be protected, hence the reads. */
static int hold_writers(uint64_t start, uint64_t size)
{
    int held = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api interface = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    struct uffdio_register range = {.range = {start, size}, .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect protect = {.range = {start, size}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    if (held < 0)
        return -1;
    if (!syscall(SYS_ioctl, held, UFFDIO_API, &interface) && !syscall(SYS_ioctl, held, UFFDIO_REGISTER, &range)) {
        for (uint64_t at = 0; at < size; at += 4096)
            (void)*(volatile char *)(uintptr_t)(start + at);
        if (!syscall(SYS_ioctl, held, UFFDIO_WRITEPROTECT, &protect))
            return held;
    }
    syscall(SYS_close, held);
    return -1;
}

static int copy_and_map(uint64_t start, uint64_t size, int protection, int file)
{
    for (uint64_t done = 0; done < size;) {
        ssize_t wrote = syscall(SYS_pwrite64, file, start + done, size - done, done);
        if (wrote <= 0)
            return wrote ? -errno : -EIO;
        done += (uint64_t)wrote;
    }
    void *at = (void *)syscall(SYS_mmap, start, size, protection, MAP_SHARED | MAP_FIXED, file, 0L);
    return at == MAP_FAILED ? -errno : 0;
}

/* Private pages become pages of a file the server has too; the program sees the same bytes at the same address. */
static int swap(uint64_t start, uint64_t size, int protection, int file)
{
    sigset_t all, before;
    uintptr_t here = (uintptr_t)&before; /* the pages this very function runs on cannot be swapped */
    if (start <= here + 65536 && here < start + size + 65536)
        return -EBUSY;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a handler of this thread must not wait for this thread */
    int held = protection & PROT_WRITE ? hold_writers(start, size) : -1;
    int result = copy_and_map(start, size, protection, file);
    if (held >= 0)
        syscall(SYS_close, held);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static int64_t finish(const struct message *message, const char *payload, const int *descriptors, int count)
{
    int bad = 0;
    for (size_t at = 0; at + sizeof(struct part) <= message->size;) {
        struct part part;
        memcpy(&part, payload + at, sizeof part);
        at += sizeof part;
        if (part.descriptor) {
            int number = (int)part.descriptor <= count ? descriptors[part.descriptor - 1] : -1;
            bad |= copy(&number, part.address, sizeof number, 1);
        } else if (at + part.size <= message->size) {
            bad |= copy((void *)(payload + at), part.address, part.size, 1);
            at += part.size;
        }
    }
    return bad && (int64_t)message->a >= 0 ? -EFAULT : (int64_t)message->a;
}

static void serve(int fd, const struct message *message, const void *payload, const int *descriptors, int count)
{
    int given = count ? descriptors[0] : -1;
    size_t size = 0;
    char *text;
    void *at;
    switch (message->kind) {
    case READ:
        answer_read(fd, payload, message->size / sizeof(struct part));
        break;
    case GIVE:
        given = (int)syscall(SYS_fcntl, (int)message->a, F_DUPFD_CLOEXEC, 3L);
        answer(fd, given < 0 ? -EBADF : 0, NULL, 0, given);
        break;
    case MAPS:
        text = own_maps(&size);
        answer(fd, 0, text, size, -1);
        free(text);
        break;
    case SWAP:
        answer(fd, swap(message->a, message->b, (int)message->c, given), NULL, 0, -1);
        break;
    case MAP:
        at = (void *)syscall(SYS_mmap, NULL, message->b, PROT_READ | PROT_WRITE, MAP_SHARED, given, message->a);
        answer(fd, at == MAP_FAILED ? -errno : (int64_t)(uintptr_t)at, NULL, 0, -1);
        break;
    default:
        answer(fd, -ENOSYS, NULL, 0, -1);
    }
    if (given >= 0)
        syscall(SYS_close, given);
}

/* One request until it is done. Returns the result; *last is the server's last message, *file a descriptor for mmap. */
static int64_t exchange(const struct message *request, const void *payload, struct message *last, int *file)
{
    struct channel spare, *channel = take_channel(&spare);
    int64_t result = 0;
    char small[ROOM];
    if (!channel)
        return -errno;
    if (send_all(channel->fd, request, payload, -1))
        lost();
    for (;;) {
        int descriptors[MOST_DESCRIPTORS], count = 0;
        if (receive(channel->fd, last, sizeof *last, descriptors, &count))
            lost();
        char *data = last->size <= ROOM ? small : malloc(last->size);
        if (!data || receive(channel->fd, data, last->size, NULL, NULL))
            lost();
        int over = last->kind == DONE || last->kind == NOT_MINE;
        if (!over)
            serve(channel->fd, last, data, descriptors, count);
        else if (last->kind == DONE && file && count)
            *file = descriptors[0], result = (int64_t)last->a;
        else if (last->kind == DONE)
            result = finish(last, data, descriptors, count);
        if (data != small)
            free(data);
        if (over)
            break;
    }
    leave_channel(channel);
    return result;
}

static int64_t as_result(int64_t result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* -- nodes -------------------------------------------------------------------------------------------------------- */

/* Which node a descriptor is: its minor number, and in name which of the opened ones; -1 if it is none of ours. */
static int node_of(int fd, char *name)
{
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    int keep = errno, minor = -1;
    if (run_length && fd >= 0 && !getpeername(fd, (struct sockaddr *)&address, &size) && size > sizeof(sa_family_t) &&
        address.sun_family == AF_UNIX && !strncmp(address.sun_path, run, run_length) && address.sun_path[run_length] == '/') {
        const char *node = address.sun_path + run_length + 1;
        minor = !strcmp(node, "renderD128") ? 128 : !strcmp(node, "card0") ? 0 : -1;
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

static int minor_of_path(const char *path)
{
    if (!run_length || !path || strncmp(path, "/dev/dri/", 9))
        return -1;
    const char *node = path + 9;
    if (!strncmp(node, "by-path/", 8))
        return strstr(node, "-render") ? 128 : strstr(node, "-card") ? 0 : -1;
    return !strcmp(node, "card0") ? 0 : !strcmp(node, "renderD128") ? 128 : -1;
}

static int open_node(int minor, int flags)
{
    int kept = (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0) | (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0);
    return connect_to(minor ? "renderD128" : "card0", kept, 1);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    NEXT(int, ioctl, int, unsigned long, ...);
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    struct message out = {.kind = IOCTL, .a = request, .b = (uintptr_t)argument}, last;
    struct stat what;
    unsigned type = _IOC_TYPE(request);
    if (!run_length || (type != 'd' && type != 'b' && type != '>'))
        return next(fd, request, argument);
    if (type != 'd' && !syscall(SYS_newfstatat, fd, "", &what, AT_EMPTY_PATH) && (S_ISREG(what.st_mode) || S_ISFIFO(what.st_mode))) {
        out.kind = FOREIGN; /* a dma-buf or a sync file, if the server knows it */
        out.c = what.st_ino;
    } else if (type != 'd' || node_of(fd, out.name) < 0)
        return next(fd, request, argument);
    char data[_IOC_SIZE(request) + 1];
    out.size = argument ? _IOC_SIZE(request) : 0;
    if (out.size && copy(data, (uintptr_t)argument, out.size, 0)) {
        errno = EFAULT;
        return -1;
    }
    int keep = errno;
    last.kind = 0;
    int64_t result = exchange(&out, data, &last, NULL);
    if (last.kind == NOT_MINE)
        return next(fd, request, argument);
    errno = keep;
    return (int)as_result(result);
}

EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct message out = {.kind = MMAP, .a = (uint64_t)offset, .b = length, .c = (uint64_t)protection}, last;
    if (fd < 0 || flags & MAP_ANONYMOUS || node_of(fd, out.name) < 0)
        return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
    int file = -1;
    if (as_result(exchange(&out, NULL, &last, &file)) < 0)
        return MAP_FAILED;
    void *at = (void *)syscall(SYS_mmap, address, length, protection, (flags & ~MAP_PRIVATE) | MAP_SHARED, file, (off_t)last.b);
    int keep = errno;
    syscall(SYS_close, file);
    errno = keep;
    return at;
}

EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return mmap(address, length, protection, flags, fd, offset);
}

/* -- paths -------------------------------------------------------------------------------------------------------- */

static const char *const redirected[] = {
    "/dev/dri", "/sys/dev/char/226:0", "/sys/dev/char/226:128", "/sys/class/drm", "/sys/devices/pci0000:00/0000:00:02.0",
    "/sys/bus/pci/devices", "/sys/bus/pci/drivers/i915", "/sys/module/i915", "/run/udev/data/c226:0", "/run/udev/data/c226:128",
};

static int in_tree(const char *path)
{
    if (!strcmp(path, "/sys/class") || !strcmp(path, "/sys/class/")) /* the list of classes; the others in it are links to the machine's */
        return 1;
    for (size_t i = 0; i < sizeof redirected / sizeof *redirected; i++) {
        size_t size = strlen(redirected[i]);
        if (!strncmp(path, redirected[i], size) && (path[size] == 0 || path[size] == '/'))
            return 1;
    }
    return 0;
}

/* The path to use instead: the tree's, where the tree has one. */
static const char *redirect(const char *path, char *buffer)
{
    if (!run_length || !path || path[0] != '/' || (path[1] != 'd' && path[1] != 's' && path[1] != 'r') || !in_tree(path))
        return path;
    if (snprintf(buffer, PATH_MAX, "%s/tree%s", run, path) >= PATH_MAX)
        return path;
    return buffer;
}

/* A path relative to a folder, as libudev walks: one name after another. The machine's own folders come first, so that a
 * way which starts outside the tree may lead into it. */
static const char *redirect_at(int *folder, const char *path, char *buffer)
{
    char link[32], whole[PATH_MAX];
    struct stat there;
    if (!run_length || !path || *path == '/' || !*path || *folder == AT_FDCWD)
        return redirect(path, buffer);
    snprintf(link, sizeof link, "/proc/self/fd/%d", *folder);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, whole, sizeof whole - 1);
    if (size < 0 || (strncmp(whole, "/sys", 4) && strncmp(whole, "/dev", 4) && strncmp(whole, "/run", 4)))
        return path;
    if ((size_t)size + strlen(path) + 2 > sizeof whole)
        return path;
    whole[size] = '/';
    strcpy(whole + size + 1, path);
    if (!in_tree(whole) && !syscall(SYS_newfstatat, *folder, path, &there, AT_SYMLINK_NOFOLLOW))
        return path;
    if (snprintf(buffer, PATH_MAX, "%s/tree%s", run, whole) >= PATH_MAX || syscall(SYS_newfstatat, AT_FDCWD, buffer, &there, AT_SYMLINK_NOFOLLOW))
        return path;
    *folder = AT_FDCWD;
    return buffer;
}

static int open_any(int folder, const char *path, int flags, mode_t mode)
{
    NEXT(int, openat, int, const char *, int, ...);
    char buffer[PATH_MAX];
    int minor = minor_of_path(path);
    if (minor >= 0 && !(flags & O_PATH))
        return open_node(minor, flags);
    path = redirect_at(&folder, path, buffer);
    if (path == buffer && !(flags & O_PATH) && (minor = minor_of_path(path + run_length + 5)) >= 0)
        return open_node(minor, flags);
    return next(folder, path, flags, mode);
}

#define MODE(mode)                              \
    mode_t mode = 0;                            \
    if (flags & (O_CREAT | __O_TMPFILE)) {      \
        va_list rest;                           \
        va_start(rest, flags);                  \
        mode = va_arg(rest, mode_t);            \
        va_end(rest);                           \
    }
EXPORT int open(const char *path, int flags, ...) { MODE(mode) return open_any(AT_FDCWD, path, flags, mode); }
EXPORT int open64(const char *path, int flags, ...) { MODE(mode) return open_any(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
EXPORT int openat(int folder, const char *path, int flags, ...) { MODE(mode) return open_any(folder, path, flags, mode); }
EXPORT int openat64(int folder, const char *path, int flags, ...) { MODE(mode) return open_any(folder, path, flags | O_LARGEFILE, mode); }
EXPORT int __open_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
EXPORT int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags | O_LARGEFILE, 0); }
EXPORT int __openat_2(int folder, const char *path, int flags) { return open_any(folder, path, flags, 0); }
EXPORT int __openat64_2(int folder, const char *path, int flags) { return open_any(folder, path, flags | O_LARGEFILE, 0); }

/* The tree's nodes are plain files, an opened node is a socket: both are shown as the devices they stand for. */
static int as_device(int result, struct stat *what, int minor)
{
    if (!result && minor >= 0 && !S_ISLNK(what->st_mode)) {
        what->st_mode = S_IFCHR | 0666;
        what->st_rdev = makedev(DRM_MAJOR, minor);
        what->st_size = 0;
    }
    return result;
}

static int stat_any(int folder, const char *path, struct stat *what, int flags)
{
    NEXT(int, fstatat, int, const char *, struct stat *, int);
    char buffer[PATH_MAX];
    int minor = minor_of_path(path);
    if (flags & AT_EMPTY_PATH && path && !*path) {
        int result = next(folder, path, what, flags);
        return as_device(result, what, !result && S_ISSOCK(what->st_mode) ? node_of(folder, NULL) : -1);
    }
    path = redirect_at(&folder, path, buffer);
    if (path == buffer && minor < 0)
        minor = minor_of_path(path + run_length + 5);
    return as_device(next(folder, path, what, flags), what, minor);
}

EXPORT int fstat(int fd, struct stat *what)
{
    NEXT(int, fstat, int, struct stat *);
    int result = next ? next(fd, what) : (int)syscall(SYS_fstat, fd, what);
    return as_device(result, what, !result && S_ISSOCK(what->st_mode) ? node_of(fd, NULL) : -1);
}
EXPORT int fstat64(int fd, struct stat64 *what) { return fstat(fd, (struct stat *)what); }
EXPORT int stat(const char *path, struct stat *what) { return stat_any(AT_FDCWD, path, what, 0); }
EXPORT int stat64(const char *path, struct stat64 *what) { return stat_any(AT_FDCWD, path, (struct stat *)what, 0); }
EXPORT int lstat(const char *path, struct stat *what) { return stat_any(AT_FDCWD, path, what, AT_SYMLINK_NOFOLLOW); }
EXPORT int lstat64(const char *path, struct stat64 *what) { return stat_any(AT_FDCWD, path, (struct stat *)what, AT_SYMLINK_NOFOLLOW); }
EXPORT int fstatat(int folder, const char *path, struct stat *what, int flags) { return stat_any(folder, path, what, flags); }
EXPORT int fstatat64(int folder, const char *path, struct stat64 *what, int flags) { return stat_any(folder, path, (struct stat *)what, flags); }
EXPORT int __xstat(int version, const char *path, struct stat *what) { return (void)version, stat(path, what); }
EXPORT int __xstat64(int version, const char *path, struct stat64 *what) { return (void)version, stat64(path, what); }
EXPORT int __lxstat(int version, const char *path, struct stat *what) { return (void)version, lstat(path, what); }
EXPORT int __lxstat64(int version, const char *path, struct stat64 *what) { return (void)version, lstat64(path, what); }
EXPORT int __fxstat(int version, int fd, struct stat *what) { return (void)version, fstat(fd, what); }
EXPORT int __fxstat64(int version, int fd, struct stat64 *what) { return (void)version, fstat64(fd, what); }
EXPORT int __fxstatat(int version, int folder, const char *path, struct stat *what, int flags) { return (void)version, fstatat(folder, path, what, flags); }
EXPORT int __fxstatat64(int version, int folder, const char *path, struct stat64 *what, int flags) { return (void)version, fstatat64(folder, path, what, flags); }

EXPORT int statx(int folder, const char *path, int flags, unsigned mask, struct statx *what)
{
    NEXT(int, statx, int, const char *, int, unsigned, struct statx *);
    char buffer[PATH_MAX];
    int minor = minor_of_path(path);
    const char *instead = redirect_at(&folder, path, buffer);
    if (instead == buffer && minor < 0)
        minor = minor_of_path(instead + run_length + 5);
    int result = next(folder, instead, flags, mask, what);
    if (!result && !*path && S_ISSOCK(what->stx_mode))
        minor = node_of(folder, NULL);
    if (!result && minor >= 0 && !S_ISLNK(what->stx_mode)) {
        what->stx_mode = S_IFCHR | 0666;
        what->stx_rdev_major = DRM_MAJOR;
        what->stx_rdev_minor = (unsigned)minor;
    }
    return result;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE *, fopen, const char *, const char *);
    char buffer[PATH_MAX];
    return next(redirect(path, buffer), mode);
}
EXPORT FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

EXPORT int access(const char *path, int mode)
{
    NEXT(int, access, const char *, int);
    char buffer[PATH_MAX];
    return next(redirect(path, buffer), mode);
}

EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
    NEXT(int, faccessat, int, const char *, int, int);
    char buffer[PATH_MAX];
    path = redirect_at(&folder, path, buffer);
    return next(folder, path, mode, flags);
}

/* Links under /proc/self/fd must not show where the tree really is. */
static ssize_t outside_name(const char *path, char *to, size_t size, ssize_t found)
{
    int fd;
    char name[PATH_MAX];
    if (found <= 0 || !run_length || !path || sscanf(path, "/proc/self/fd/%d", &fd) != 1)
        return found;
    int minor = node_of(fd, NULL);
    ssize_t whole = minor < 0 ? syscall(SYS_readlinkat, AT_FDCWD, path, name, sizeof name - 1) : -1;
    const char *shown = minor == 0 ? "/dev/dri/card0" : "/dev/dri/renderD128";
    if (minor < 0) {
        if (whole < 0 || (size_t)whole < run_length + 5 || strncmp(name, run, run_length) || strncmp(name + run_length, "/tree", 5))
            return found;
        name[whole] = 0;
        shown = name + run_length + 5;
    }
    size_t length = strlen(shown) < size ? strlen(shown) : size;
    memcpy(to, shown, length);
    return (ssize_t)length;
}

EXPORT ssize_t readlink(const char *path, char *to, size_t size)
{
    NEXT(ssize_t, readlink, const char *, char *, size_t);
    char buffer[PATH_MAX];
    return outside_name(path, to, size, next(redirect(path, buffer), to, size));
}
EXPORT ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room) { return (void)room, readlink(path, to, size); }

EXPORT ssize_t readlinkat(int folder, const char *path, char *to, size_t size)
{
    NEXT(ssize_t, readlinkat, int, const char *, char *, size_t);
    char buffer[PATH_MAX];
    const char *instead = redirect_at(&folder, path, buffer);
    return outside_name(path, to, size, next(folder, instead, to, size));
}
EXPORT ssize_t __readlinkat_chk(int folder, const char *path, char *to, size_t size, size_t room) { return (void)room, readlinkat(folder, path, to, size); }

EXPORT DIR *opendir(const char *path)
{
    NEXT(DIR *, opendir, const char *);
    char buffer[PATH_MAX];
    return next(redirect(path, buffer));
}

typedef int picking(const struct dirent *);
typedef int ordering(const struct dirent **, const struct dirent **);
EXPORT int scandir(const char *path, struct dirent ***list, picking *pick, ordering *order)
{
    NEXT(int, scandir, const char *, struct dirent ***, picking *, ordering *);
    char buffer[PATH_MAX];
    return next(redirect(path, buffer), list, pick, order);
}
EXPORT int scandir64(const char *path, struct dirent64 ***list, int (*pick)(const struct dirent64 *),
                     int (*order)(const struct dirent64 **, const struct dirent64 **))
{
    return scandir(path, (struct dirent ***)list, (picking *)pick, (ordering *)order);
}

/* libudev wants to see that what lies under /sys is a sysfs. */
static int as_sysfs(int result, int fd, struct statfs *what)
{
    char link[32], name[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = result || !run_length ? -1 : syscall(SYS_readlinkat, AT_FDCWD, link, name, sizeof name - 1);
    if (size > (ssize_t)run_length + 9 && !strncmp(name, run, run_length) && !strncmp(name + run_length, "/tree/sys", 9))
        what->f_type = SYSFS_MAGIC;
    return result;
}

EXPORT int fstatfs(int fd, struct statfs *what)
{
    NEXT(int, fstatfs, int, struct statfs *);
    return as_sysfs(next(fd, what), fd, what);
}
EXPORT int fstatfs64(int fd, struct statfs64 *what) { return fstatfs(fd, (struct statfs *)what); }

EXPORT int statfs(const char *path, struct statfs *what)
{
    NEXT(int, statfs, const char *, struct statfs *);
    char buffer[PATH_MAX];
    const char *instead = redirect(path, buffer);
    int result = next(instead, what);
    if (!result && instead == buffer && !strncmp(path, "/sys", 4))
        what->f_type = SYSFS_MAGIC;
    return result;
}
EXPORT int statfs64(const char *path, struct statfs64 *what) { return statfs(path, (struct statfs *)what); }

EXPORT char *realpath(const char *path, char *to)
{
    NEXT(char *, realpath, const char *, char *);
    char buffer[PATH_MAX];
    char *found = next(redirect(path, buffer), to);
    if (found && run_length && !strncmp(found, run, run_length) && !strncmp(found + run_length, "/tree/", 6))
        memmove(found, found + run_length + 5, strlen(found + run_length + 5) + 1);
    return found;
}
EXPORT char *__realpath_chk(const char *path, char *to, size_t room) { return (void)room, realpath(path, to); }
EXPORT char *canonicalize_file_name(const char *path) { return realpath(path, NULL); }

/* -- fork --------------------------------------------------------------------------------------------------------- */

/* Pages that were swapped belong to the parent; the child's must be its own again, as they would be without us. */
static void in_child(void)
{
    size_t size, used = 0;
    char *maps = own_maps(&size);
    if (is_ours(&own))
        syscall(SYS_close, own.fd); /* the parent's */
    memset(&own, 0, sizeof own);
    while (maps && used < size) {
        char *line = maps + used, *end = memchr(line, '\n', size - used);
        if (!end)
            break;
        used = (size_t)(end - maps) + 1;
        *end = 0;
        unsigned long first, last;
        char mode[5];
        if (!strstr(line, "/memfd:softgen userptr") || sscanf(line, "%lx-%lx %4s", &first, &last, mode) != 3)
            continue;
        int protection = (mode[0] == 'r') * PROT_READ | (mode[1] == 'w') * PROT_WRITE | (mode[2] == 'x') * PROT_EXEC;
        void *copied = (void *)syscall(SYS_mmap, NULL, last - first, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
        if (copied == MAP_FAILED)
            continue;
        memcpy(copied, (void *)first, last - first);
        mprotect(copied, last - first, protection);
        mremap(copied, last - first, last - first, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)first);
    }
    free(maps);
}

__attribute__((constructor)) static void begin(void)
{
    start();
    if (!run_length)
        return;
    pthread_key_create(&ending, thread_ends);
    pthread_atfork(NULL, NULL, in_child);
}
