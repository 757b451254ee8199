/* Channels: one socket to the server per thread, on which requests go out and questions come back. */
#include "shim.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

enum { MOST_DESCRIPTORS = 8, ROOM = 4096 };

struct part { /* in READ: what is wanted; in DONE: what follows is to be written there, or a descriptor's number is */
    uint64_t address;
    uint32_t size, descriptor; /* 0: data follows; n: the n-th descriptor received */
};

struct channel {
    int fd, busy, hopeful; /* hopeful: the last answer came within `patience` */
    pid_t pid;
    ino_t inode;
    uint64_t patience; /* nanoseconds that the server allows to wait for an answer awake */
};

/* Initial-exec: a signal handler must not allocate a thread's variables the first time it looks at them. */
static __thread __attribute__((tls_model("initial-exec"))) struct channel own;
static pthread_key_t ending;

static void lost(void)
{
    static const char text[] = "softgen: the simulator has ended; this program cannot go on without its GPU\n";
    if (write(2, text, sizeof text - 1)) {
    }
    _exit(1);
}

static int send_all(int fd, const struct message_head *message, const void *payload, int descriptor)
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

/* Bytes, and the descriptors that came with them. 1: a signal came before the first of them, and `may_stop`. */
static int receive(int fd, void *to, size_t size, int *descriptors, int *count, int may_stop)
{
    union { struct cmsghdr head; char room[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))]; } control;
    while (size) {
        struct iovec part = {to, size};
        struct msghdr in = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t got = syscall(SYS_recvmsg, fd, &in, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR && may_stop)
            return 1;
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
        may_stop = 0;
    }
    return 0;
}

/* Connects. The server's first message says whether it serves us (EMFILE: no descriptor left), and how long to wait for answers awake. */
int connect_to(const char *name, int flags, int named, uint64_t *patience)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct message_head greeting = {0};
    int fd = socket(AF_UNIX, SOCK_STREAM | (flags & SOCK_CLOEXEC), 0);
    if (fd < 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", run, name);
    sa_family_t anything = AF_UNIX; /* the kernel picks an unused name */
    int bad = named && bind(fd, (struct sockaddr *)&anything, sizeof anything);
    while (!bad && connect(fd, (struct sockaddr *)&address, sizeof address) && (bad = errno != EINTR))
        ;
    int reason = ENODEV; /* the server is gone */
    if (!bad && !(bad = receive(fd, &greeting, sizeof greeting, NULL, NULL, 0)) && (int64_t)greeting.a < 0) {
        bad = 1;
        reason = (int)-(int64_t)greeting.a;
    }
    if (!bad && flags & SOCK_NONBLOCK)
        bad = (int)syscall(SYS_fcntl, fd, F_SETFL, (long)O_NONBLOCK);
    *patience = greeting.b;
    if (!bad)
        return fd;
    syscall(SYS_close, fd);
    errno = reason;
    return -1;
}

uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Until there is something to receive, or patience ends. A processor that sleeps meanwhile wakes up late, without clock rate and caches. */
static void wait_awake(const struct channel *channel)
{
    uint64_t until = nanoseconds() + channel->patience;
    int before = errno;
    char byte;
    while (syscall(SYS_recvfrom, channel->fd, &byte, 1L, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) < 0 && errno == EAGAIN && nanoseconds() < until)
        sched_yield();
    errno = before;
}

/* Ioctls that only wait: a signal whose handler does not restart them ends them, as it does in the kernel. */
static int only_waits(const struct message_head *request)
{
    static const unsigned char waiting[] = {0x5f, 0x6c, 0xc3, 0xca}; /* SET_DOMAIN, WAIT, DRM_IOCTL_SYNCOBJ_WAIT, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT */
    return request->kind == IOCTL && memchr(waiting, (int)(request->a & 0xff), sizeof waiting) != NULL;
}

/* A thread's channel. The program may have forked, or closed or replaced every descriptor it does not know: the socket is
 * used only if it is still the one that was made. A signal handler that comes in the middle of an exchange gets its own. */
static int open_channel(struct channel *channel)
{
    struct stat now;
    struct rlimit limit;
    struct ucred server;
    socklen_t size = sizeof server;
    uint64_t patience;
    int fd = connect_to("server", SOCK_CLOEXEC, 0, &patience);
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
    *channel = (struct channel){.fd = fd, .pid = getpid(), .inode = now.st_ino, .patience = patience};
    return 0;
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

/* A copy by system calls that tell a bad pointer, through a file, where the kernel does not offer a copy between two addresses. */
static int copy_through_file(char *to, const char *from, size_t size)
{
    size_t done = 0;
    int file = (int)syscall(SYS_memfd_create, "softgen copy", MFD_CLOEXEC);
    if (file < 0) { /* no descriptor left */
        memcpy(to, from, size);
        return 0;
    }
    while (done < size) {
        ssize_t moved = syscall(SYS_pwrite64, file, from + done, size - done, 0L);
        if (moved <= 0 || syscall(SYS_pread64, file, to + done, (size_t)moved, 0L) != moved)
            break;
        done += (size_t)moved;
    }
    syscall(SYS_close, file);
    return done == size ? 0 : -EFAULT;
}

/* Memory named by a pointer the program gave: a bad one is EFAULT, not a crash. */
int copy(void *ours, uint64_t theirs, size_t size, int to_program)
{
    static int refused; /* as in some containers and under QEMU */
    struct iovec here = {ours, size}, there = {(void *)(uintptr_t)theirs, size};
    while (!refused && here.iov_len) {
        ssize_t done = (to_program ? process_vm_writev : process_vm_readv)(getpid(), &here, 1, &there, 1, 0);
        if (done < 0 && (errno == ENOSYS || errno == EPERM)) {
            refused = 1;
            break;
        }
        if (done <= 0)
            return -EFAULT;
        here.iov_base = (char *)here.iov_base + done;
        there.iov_base = (char *)there.iov_base + done;
        here.iov_len = there.iov_len -= (size_t)done;
    }
    if (!here.iov_len)
        return 0;
    return to_program ? copy_through_file(there.iov_base, here.iov_base, here.iov_len)
                      : copy_through_file(here.iov_base, there.iov_base, here.iov_len);
}

static void answer(int fd, int64_t result, const void *payload, size_t size, int descriptor)
{
    struct message_head reply = {.kind = REPLY, .size = (uint32_t)size, .a = (uint64_t)result};
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

static int64_t finish(const struct message_head *message, const char *payload, const int *descriptors, int count)
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

static void serve(int fd, const struct message_head *message, const void *payload, const int *descriptors, int count)
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
        answer(fd, given < 0 ? -errno : 0, NULL, 0, given);
        break;
    case WRITE:
        answer(fd, finish(&(struct message_head){.size = message->size}, payload, NULL, 0), NULL, 0, -1);
        break;
    case MAPS:
        text = maps_of_range(message->a, message->b, &size);
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

/* The server's next message. A wait that a signal may end is not spent awake: the signal would be missed. */
static int next_message(struct channel *channel, const struct message_head *request, struct message_head *message, int *descriptors, int *count)
{
    uint64_t began = channel->patience ? nanoseconds() : 0;
    int may_stop = only_waits(request);
    if (channel->hopeful && !may_stop)
        wait_awake(channel);
    int stopped = receive(channel->fd, message, sizeof *message, descriptors, count, may_stop);
    channel->hopeful = channel->patience && nanoseconds() - began < channel->patience;
    return stopped;
}

/* One request until it is done. Returns the result; *last is the server's last message, *file a descriptor for mmap. */
int64_t exchange(const struct message_head *request, const void *payload, struct message_head *last, int *file)
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
        int stopped = next_message(channel, request, last, descriptors, &count);
        if (stopped < 0)
            lost();
        if (stopped) {
            close_channel(channel); /* the server sees that the waiting thread is gone */
            channel->busy = 0;
            return -EINTR;
        }
        char *data = last->size <= ROOM ? small : malloc(last->size);
        if (!data || receive(channel->fd, data, last->size, NULL, NULL, 0))
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

void start_channels(void)
{
    pthread_key_create(&ending, thread_ends);
}

/* In a child: the channel is the parent's. */
void forget_channel(void)
{
    if (is_ours(&own))
        syscall(SYS_close, own.fd);
    memset(&own, 0, sizeof own);
}
