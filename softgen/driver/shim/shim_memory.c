/* The program's own memory, lent to the GPU. */
#include "shim.h"
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

char *own_maps(size_t *size)
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

/* PROCMAP_QUERY of Linux 6.11, which the headers of older systems lack: what is mapped at an address, or next after it. */
struct mapping_query {
    uint64_t size, flags, address, start, end, mode, page_size, offset, inode;
    uint32_t major, minor, name_size, build_id_size;
    uint64_t name, build_id;
};
enum { OR_NEXT = 0x10 };
enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8 };
#define MAPPING_QUERY _IOWR(0x66, 17, struct mapping_query)

/* One line for each mapping of a range, as in /proc/self/maps; NULL where the kernel must be asked for all of them. */
static char *query_maps(int fd, uint64_t start, uint64_t end, size_t *size)
{
    enum { LINE = 160 };
    char name[4096], *text = NULL;
    size_t used = 0, room = 0;
    for (uint64_t at = start; at < end;) {
        struct mapping_query found = {.size = sizeof found, .flags = OR_NEXT, .address = at};
        found.name_size = sizeof name, found.name = (uintptr_t)name;
        name[0] = 0;
        if (syscall(SYS_ioctl, fd, MAPPING_QUERY, &found)) {
            if (errno == ENOENT) /* nothing there, nor after it */
                break;
            free(text);
            return NULL;
        }
        if (found.start >= end)
            break;
        char *more = used + LINE + sizeof name > room ? realloc(text, room = 2 * room + LINE + sizeof name) : text;
        if (!more || strchr(name, '\n')) { /* which the file writes in another way */
            free(more ? more : text);
            return NULL;
        }
        text = more;
        uint64_t mode = found.mode;
        used += (size_t)snprintf(text + used, room - used, "%" PRIx64 "-%" PRIx64 " %c%c%c%c %08" PRIx64 " %02x:%02x %" PRIu64 " %s\n",
                                 found.start, found.end, mode & READABLE ? 'r' : '-', mode & WRITABLE ? 'w' : '-', mode & EXECUTABLE ? 'x' : '-',
                                 mode & SHARED ? 's' : 'p', found.offset, found.major, found.minor, found.inode, name);
        at = found.end;
    }
    *size = used;
    return text ? text : strdup("");
}

/* Of a program with thousands of mappings, only the lines of a range, where the kernel can tell them: reading all takes a millisecond. */
char *maps_of_range(uint64_t start, uint64_t end, size_t *size)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : query_maps(fd, start, end, size);
    if (fd >= 0)
        syscall(SYS_close, fd);
    return text ? text : own_maps(size);
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
int swap(uint64_t start, uint64_t size, int protection, int file)
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

/* Pages that were swapped belong to the parent; the child's must be its own again, as they would be without us. */
void keep_own_pages(void)
{
    size_t size, used = 0;
    char *maps = own_maps(&size);
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
