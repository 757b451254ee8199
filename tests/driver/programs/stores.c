/* The GPU writes a number into a buffer and another into memory of this program; prints both. A child does the same. */
#include <drm/i915_drm.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, STORE = 0x10000002, END = 0x05000000, BATCH = 0x10000, BUFFER = 0x20000, OWN = 0x30000 };

static int node;

static void ask(unsigned long request, void *argument, const char *name)
{
    if (ioctl(node, request, argument)) {
        perror(name);
        exit(1);
    }
}

static uint32_t *buffer(uint32_t *handle)
{
    struct drm_i915_gem_create create = {.size = PAGE};
    ask(DRM_IOCTL_I915_GEM_CREATE, &create, "GEM_CREATE");
    struct drm_i915_gem_mmap_offset at = {.handle = *handle = create.handle, .flags = I915_MMAP_OFFSET_WB};
    ask(DRM_IOCTL_I915_GEM_MMAP_OFFSET, &at, "GEM_MMAP_OFFSET");
    void *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)at.offset);
    if (mapped == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return mapped;
}

static void stores(const char *who)
{
    struct drm_i915_gem_exec_object2 objects[3] = {{.offset = BUFFER}, {.offset = OWN}, {.offset = BATCH}};
    uint32_t *target = buffer(&objects[0].handle), *batch = buffer(&objects[2].handle);
    uint32_t *own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct drm_i915_gem_userptr lent = {.user_ptr = (uintptr_t)own, .user_size = PAGE};
    ask(DRM_IOCTL_I915_GEM_USERPTR, &lent, "GEM_USERPTR");
    objects[1].handle = lent.handle;
    for (int i = 0; i < 3; i++)
        objects[i].flags = EXEC_OBJECT_PINNED;
    memcpy(batch, (uint32_t[]){STORE, BUFFER + 4, 0, 0x1234, STORE, OWN + 8, 0, 0x5678, END, 0}, 40);
    struct drm_i915_gem_execbuffer2 work = {.buffers_ptr = (uintptr_t)objects, .buffer_count = 3};
    ask(DRM_IOCTL_I915_GEM_EXECBUFFER2, &work, "EXECBUFFER2");
    struct drm_i915_gem_wait wait = {.bo_handle = objects[2].handle, .timeout_ns = 20000000000};
    ask(DRM_IOCTL_I915_GEM_WAIT, &wait, "GEM_WAIT");
    printf("%s %x %x\n", who, target[1], own[2]);
    fflush(stdout);
}

int main(void)
{
    node = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    if (node < 0) {
        perror("/dev/dri/renderD128");
        return 1;
    }
    stores("parent");
    int status = 1;
    pid_t child = fork();
    if (!child) {
        stores("child");
        _exit(0);
    }
    waitpid(child, &status, 0);
    struct drm_i915_getparam bad = {.param = I915_PARAM_CHIPSET_ID, .value = (int *)8};
    printf("%s\n", status ? "the child failed" : !ioctl(node, DRM_IOCTL_I915_GETPARAM, &bad) ? "a bad pointer is taken" : "done");
    return 0;
}
