/* Paths: what lies under /dev/dri and, about it, under /sys is looked up in a small tree the server made. */
#include "shim.h"
#include <dirent.h>
#include <glob.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static const char *const redirected[] = {
    "/dev/dri", "/sys/dev/char/226:0", "/sys/dev/char/226:128", "/sys/class/drm", "/sys/devices/pci0000:00/0000:00:02.0",
    "/sys/bus/pci/devices", "/sys/bus/pci/drivers/i915", "/sys/module/i915", "/run/udev/data/c226:0", "/run/udev/data/c226:128",
};

/* Where the run has input devices (softgen run --show), they are the only ones. */
static const char *const input_paths[] = {
    "/dev/input", "/sys/class/input", "/sys/devices/virtual/input", "/sys/dev/char/13:64", "/sys/dev/char/13:65", "/run/udev/data/c13:64",
    "/run/udev/data/c13:65",
};
int has_input;

void find_input(void)
{
    char path[128];
    struct stat there;
    snprintf(path, sizeof path, "%s/tree/dev/input", run);
    has_input = !syscall(SYS_newfstatat, AT_FDCWD, path, &there, 0);
}

static int is_under(const char *path, const char *const *folders, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(folders[i]);
        if (!strncmp(path, folders[i], size) && (path[size] == 0 || path[size] == '/'))
            return 1;
    }
    return 0;
}

static int in_tree(const char *path)
{
    if (!strcmp(path, "/sys/class") || !strcmp(path, "/sys/class/")) /* the list of classes; the others in it are links to the machine's */
        return 1;
    return is_under(path, redirected, sizeof redirected / sizeof *redirected) ||
           (has_input && is_under(path, input_paths, sizeof input_paths / sizeof *input_paths));
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

/* The folder that the program has for /, as the kernel calls it: QEMU's QEMU_LD_PREFIX; empty where it is /. */
static char root[PATH_MAX];

void find_root(void)
{
    char link[32];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = fd < 0 ? -1 : syscall(SYS_readlinkat, AT_FDCWD, link, root, sizeof root - 1);
    root[size > 1 ? size : 0] = 0;
    if (fd >= 0)
        syscall(SYS_close, fd);
}

/* The machine's folder of a name in /; NULL for names that are looked for in QEMU's folder alone. */
static const char *from_root(const char *folder, const char *name)
{
    static const char *const machines[] = {"/sys", "/dev", "/run"};
    for (size_t i = 0; *root && !strcmp(folder, root) && i < sizeof machines / sizeof *machines; i++)
        if (!strcmp(name, machines[i] + 1))
            return machines[i];
    return NULL;
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
    whole[size < 0 ? 0 : size] = 0;
    const char *start = from_root(whole, path);
    if (start) {
        *folder = AT_FDCWD;
        return start;
    }
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
        what->st_rdev = minor >= INPUT ? makedev(INPUT_MAJOR, minor - INPUT) : makedev(DRM_MAJOR, minor);
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
        what->stx_rdev_major = minor >= INPUT ? INPUT_MAJOR : DRM_MAJOR;
        what->stx_rdev_minor = (unsigned)(minor >= INPUT ? minor - INPUT : minor);
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
    const char *shown = minor == INPUT + 64 ? "/dev/input/event0" : minor == INPUT + 65 ? "/dev/input/event1"
                        : minor == 0 ? "/dev/dri/card0" : "/dev/dri/renderD128";
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
    if (run_length && strstr(path, "/OpenCL/vendors")) /* a loader that was told which driver to take does not look there */
        remark("seeks", "OpenCL");
    else if (run_length && strstr(path, "/vulkan/icd.d"))
        remark("seeks", "Vulkan");
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

/* glob() calls libc's own functions, past the wrappers: GLOB_ALTDIRFUNC makes it call the wrappers. */
EXPORT int glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *found)
{
    NEXT(int, glob, const char *, int, int (*)(const char *, int), glob_t *);
    if (run_length && !(flags & GLOB_ALTDIRFUNC) && (!strncmp(pattern, "/dev/", 5) || !strncmp(pattern, "/sys/", 5))) {
        found->gl_opendir = (void *(*)(const char *))opendir;
        found->gl_readdir = (struct dirent *(*)(void *))readdir;
        found->gl_closedir = (void (*)(void *))closedir;
        found->gl_stat = stat;
        found->gl_lstat = lstat;
        flags |= GLOB_ALTDIRFUNC;
    }
    return next(pattern, flags, failed, found);
}
EXPORT int glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob64_t *found)
{
    return glob(pattern, flags, failed, (glob_t *)found);
}

/* ls asks for these of every file. */
#define ATTRIBUTES(name, parameters, ...)                         \
    EXPORT ssize_t name parameters                                \
    {                                                             \
        static ssize_t(*next) parameters;                         \
        char buffer[PATH_MAX];                                    \
        if (!next)                                                \
            next = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name); \
        return next(redirect(path, buffer), __VA_ARGS__);         \
    }
ATTRIBUTES(getxattr, (const char *path, const char *name, void *value, size_t size), name, value, size)
ATTRIBUTES(lgetxattr, (const char *path, const char *name, void *value, size_t size), name, value, size)
ATTRIBUTES(listxattr, (const char *path, char *list, size_t size), list, size)
ATTRIBUTES(llistxattr, (const char *path, char *list, size_t size), list, size)
