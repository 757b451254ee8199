/* What the parts of the shim share, and with the server (protocol.py). shim.c says how it works. */
#ifndef SOFTGEN_SHIM_H
#define SOFTGEN_SHIM_H
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* The function the program would have called without us. */
#define NEXT(result, name, ...)                                   \
    static result (*next)(__VA_ARGS__);                           \
    if (!next)                                                    \
        next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

enum { IOCTL = 1, MMAP = 2, FOREIGN = 3, REPLY = 4 }; /* to the server */
enum { DONE = 16, READ = 17, GIVE = 18, MAPS = 19, SWAP = 20, MAP = 21, NOT_MINE = 22, WELCOME = 23, WRITE = 24 }; /* from it */
enum { NAME = 8, DRM_MAJOR = 226, INPUT_MAJOR = 13 };
enum { INPUT = 0x1000 }; /* added to the minor number of an input device: of nodes, DRM's have theirs alone */

/* The head of a message. */
struct message_head {
    uint32_t kind, size; /* size of what follows */
    uint64_t a, b, c;
    char name[NAME]; /* which opened node */
};

extern char run[80]; /* the run's folder: sockets and the tree; empty outside softgen run */
extern size_t run_length;

/* shim.c */
int node_of(int fd, char *name);
int minor_of_path(const char *path);
int open_node(int minor, int flags);

void remark(const char *kind, const char *api);

/* shim_channel.c */
void start_channels(void);
void forget_channel(void);
int connect_to(const char *name, int flags, int named, uint64_t *patience);
uint64_t nanoseconds(void);
int copy(void *ours, uint64_t theirs, size_t size, int to_program);
int64_t exchange(const struct message_head *request, const void *payload, struct message_head *last, int *file);

/* shim_paths.c */
extern int has_input; /* the run has input devices */
void find_root(void);
void find_input(void);

/* shim_input.c */
int input_ioctl(int node, unsigned long request, void *argument);

/* shim_memory.c */
char *own_maps(size_t *size);
char *maps_of_range(uint64_t start, uint64_t end, size_t *size);
int swap(uint64_t start, uint64_t size, int protection, int file);
void keep_own_pages(void);

#endif
