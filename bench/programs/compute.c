/* OpenCL kernels under the clock, from enqueue to finish, on the first device there is. The plain program that `softgen run` and its peers
 * are measured with: it reads lines and answers each.
 *
 *     kernel NAME FILE GLOBAL_X GLOBAL_Y LOCAL_X LOCAL_Y COUNT    a kernel of an OpenCL source file; the next COUNT lines are its arguments:
 *     buffer FILE | uint NUMBER | float NUMBER | bytes HEX | local SIZE | image WRITTEN ORDER TYPE WIDTH HEIGHT FILE, which is - for none
 *     options TEXT                for the kernels that follow, with commas for spaces; - for none
 *     size NAME GLOBAL_X GLOBAL_Y GLOBAL_Z LOCAL_X LOCAL_Y LOCAL_Z OFFSET_X OFFSET_Y OFFSET_Z    another size, in three dimensions
 *     run NAME COUNT              microseconds of each of COUNT enqueues
 *     read NAME ARGUMENT FILE     a buffer's content, into a file
 *     type                        gpu, or other
 *
 *     cc -O2 -o compute compute.c -lOpenCL && ./compute
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME = 64, PATH = 1024, KERNELS = 64, ARGUMENTS = 16 };

struct job {
    char name[NAME];
    cl_kernel kernel;
    cl_uint dimensions;
    size_t global[3], local[3], offset[3];
    cl_mem buffers[ARGUMENTS];
    size_t sizes[ARGUMENTS];
};

static cl_context context;
static cl_command_queue queue;
static cl_device_id device;
static struct job jobs[KERNELS];
static int job_count;
static char options[PATH];

static void fail(const char *what, const char *about, long code)
{
    fprintf(stderr, "compute: %s %s: error %ld\n", what, about, code);
    exit(1);
}

static void check(cl_int error, const char *what, const char *about)
{
    if (error)
        fail(what, about, error);
}

static char *content(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("cannot open", path, 0);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, file) != *size)
        fail("cannot read", path, 0);
    data[*size] = 0;
    fclose(file);
    return data;
}

static void start(void)
{
    cl_int error;
    cl_platform_id platform;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs", "");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs", "");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext", "");
    queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue", "");
}

static void tell_type(void)
{
    cl_device_type type;
    check(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL), "clGetDeviceInfo", "");
    puts(type & CL_DEVICE_TYPE_GPU ? "gpu" : "other");
}

static cl_kernel built(const char *name, const char *path)
{
    cl_int error;
    size_t size;
    char *source = content(path, &size);
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&source, &size, &error);
    check(error, "clCreateProgramWithSource", path);
    check(clBuildProgram(program, 1, &device, options, NULL, NULL), "clBuildProgram", path);
    cl_kernel kernel = clCreateKernel(program, name, &error);
    check(error, "clCreateKernel", name);
    free(source);
    return kernel;
}

static void set_buffer(struct job *job, cl_uint index, const char *path)
{
    cl_int error;
    char *data = content(path, &job->sizes[index]);
    job->buffers[index] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, job->sizes[index], data, &error);
    check(error, "clCreateBuffer", path);
    check(clSetKernelArg(job->kernel, index, sizeof(cl_mem), &job->buffers[index]), "clSetKernelArg", path);
    free(data);
}

static void set_bytes(struct job *job, cl_uint index, const char *text)
{
    unsigned char value[16];
    size_t size = strlen(text) / 2;
    for (size_t i = 0; i < size && i < sizeof value; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        value[i] = (unsigned char)byte;
    }
    check(clSetKernelArg(job->kernel, index, size, value), "clSetKernelArg", job->name);
}

static void set_image(struct job *job, cl_uint index, int written)
{
    cl_int error;
    char path[PATH];
    size_t width, height, size;
    cl_image_format format;
    if (scanf("%u %u %zu %zu %1023s", &format.image_channel_order, &format.image_channel_data_type, &width, &height, path) != 5)
        fail("what image for", job->name, index);
    cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height};
    char *data = strcmp(path, "-") ? content(path, &size) : NULL;
    cl_mem_flags flags = (written ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY) | (data ? CL_MEM_COPY_HOST_PTR : 0);
    cl_mem image = clCreateImage(context, flags, &format, &shape, data, &error);
    check(error, "clCreateImage", job->name);
    check(clSetKernelArg(job->kernel, index, sizeof image, &image), "clSetKernelArg", job->name);
    free(data);
}

static void set_argument(struct job *job, cl_uint index)
{
    char kind[NAME], value[PATH];
    if (scanf("%63s %1023s", kind, value) != 2)
        fail("no argument for", job->name, index);
    cl_uint number = (cl_uint)strtoul(value, NULL, 0);
    cl_float real = strtof(value, NULL);
    if (!strcmp(kind, "buffer"))
        set_buffer(job, index, value);
    else if (!strcmp(kind, "bytes"))
        set_bytes(job, index, value);
    else if (!strcmp(kind, "local"))
        check(clSetKernelArg(job->kernel, index, number, NULL), "clSetKernelArg", job->name);
    else if (!strcmp(kind, "image"))
        set_image(job, index, (int)number);
    else
        check(clSetKernelArg(job->kernel, index, 4, !strcmp(kind, "float") ? (void *)&real : (void *)&number), "clSetKernelArg", job->name);
}

static void add(void)
{
    struct job *job = &jobs[job_count++];
    char path[PATH];
    cl_uint count = 0;
    if (scanf("%63s %1023s %zu %zu %zu %zu %u", job->name, path, &job->global[0], &job->global[1], &job->local[0], &job->local[1], &count) != 7
        || count > ARGUMENTS || job_count == KERNELS)
        fail("what kernel?", job->name, count);
    job->kernel = built(job->name, path);
    job->dimensions = 2;
    for (cl_uint i = 0; i < count; i++)
        set_argument(job, i);
    printf("ready %s\n", job->name);
}

static struct job *find(void)
{
    char name[NAME] = "";
    if (scanf("%63s", name) == 1)
        for (int i = 0; i < job_count; i++)
            if (!strcmp(jobs[i].name, name))
                return &jobs[i];
    fail("no kernel", name, 0);
    return NULL;
}

static void resize(struct job *job)
{
    size_t *all[] = {job->global, job->local, job->offset};
    for (int i = 0; i < 9; i++)
        if (scanf("%zu", &all[i / 3][i % 3]) != 1)
            fail("what size?", job->name, i);
    job->dimensions = 3;
    printf("sized %s\n", job->name);
}

static void read_options(void)
{
    if (scanf("%1023s", options) != 1 || !strcmp(options, "-"))
        options[0] = 0;
    for (char *at = options; *at; at++)
        if (*at == ',')
            *at = ' ';
    printf("options\n");
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static void run(struct job *job)
{
    int count = 0;
    if (scanf("%d", &count) != 1)
        fail("how often?", job->name, 0);
    for (int i = 0; i < count; i++) {
        double began = now();
        check(clEnqueueNDRangeKernel(queue, job->kernel, job->dimensions, job->offset, job->global, job->local, 0, NULL, NULL),
              "clEnqueueNDRangeKernel", job->name);
        check(clFinish(queue), "clFinish", job->name);
        printf("%.1f ", now() - began);
    }
    printf("\n");
}

static void read_back(struct job *job)
{
    unsigned index;
    char path[PATH];
    if (scanf("%u %1023s", &index, path) != 2 || index >= ARGUMENTS || !job->buffers[index])
        fail("no buffer of", job->name, 0);
    char *data = malloc(job->sizes[index]);
    FILE *file = fopen(path, "wb");
    if (!data || !file)
        fail("cannot write", path, 0);
    check(clEnqueueReadBuffer(queue, job->buffers[index], CL_TRUE, 0, job->sizes[index], data, 0, NULL, NULL), "clEnqueueReadBuffer", path);
    fwrite(data, 1, job->sizes[index], file);
    fclose(file);
    free(data);
    printf("read %s\n", job->name);
}

int main(void)
{
    char word[NAME];
    start();
    while (scanf("%63s", word) == 1) {
        if (!strcmp(word, "kernel"))
            add();
        else if (!strcmp(word, "type"))
            tell_type();
        else if (!strcmp(word, "options"))
            read_options();
        else if (!strcmp(word, "size"))
            resize(find());
        else if (!strcmp(word, "run"))
            run(find());
        else if (!strcmp(word, "read"))
            read_back(find());
        else
            fail("no such order:", word, 0);
        fflush(stdout);
    }
    return 0;
}
