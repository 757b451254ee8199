/* How the time of a unit of work changes with the number of units, on the first OpenCL device there is: nanoseconds of one unit.
 *
 *     cc -O2 -o growth growth.c -lOpenCL
 *     ./growth buffers N         enqueues, each with another one of N buffers, and one wait for all
 *     ./growth threads N         one dispatch of N threads of few instructions
 *     ./growth instructions N    threads of one dispatch with about N instructions; a unit is an instruction
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7, BYTES = 4096, LINES = 1 << 13, LINE = 64, GROUP = 256, ITEMS = 1 << 15, STATEMENT = 3 };

static cl_context context;
static cl_command_queue queue;
static cl_device_id device;

static void check(cl_int error, const char *what)
{
    if (error) {
        fprintf(stderr, "growth: %s: error %d\n", what, error);
        exit(1);
    }
}

static void start(void)
{
    cl_int error;
    cl_platform_id platform;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue");
}

static cl_kernel built(const char *source)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "work", &error);
    check(error, "clCreateKernel");
    return kernel;
}

static cl_mem buffer(size_t size)
{
    cl_int error;
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &error);
    check(error, "clCreateBuffer");
    return made;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void enqueue(cl_kernel kernel, cl_mem memory, size_t items)
{
    size_t group = GROUP;
    check(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL), "clEnqueueNDRangeKernel");
}

static double many_buffers(int count)
{
    cl_kernel kernel = built("kernel void work(global uint *o) { o[get_global_id(0)] += 1; }");
    cl_mem *all = malloc((size_t)count * sizeof *all);
    double best = 1e18;
    for (int i = 0; i < count; i++)
        all[i] = buffer(BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        double began = now();
        for (int i = 0; i < count; i++)
            enqueue(kernel, all[i], GROUP);
        check(clFinish(queue), "clFinish");
        double took = now() - began;
        best = took < best ? took : best;
    }
    return best / count;
}

/* Over so many seconds: long enough for a translation to be ready. */
static double dispatched(cl_kernel kernel, size_t items, double seconds)
{
    cl_mem memory = buffer(ITEMS * sizeof(cl_uint));
    double best = 1e18, until = now() + seconds * 1e9;
    for (int round = 0; round < ROUNDS || now() < until; round++) {
        double began = now();
        enqueue(kernel, memory, items);
        check(clFinish(queue), "clFinish");
        double took = now() - began;
        best = took < best ? took : best;
    }
    return best;
}

static double many_threads(int count)
{
    size_t width = 0;
    cl_kernel kernel = built("kernel void work(global uint *o) { uint i = get_global_id(0); o[i & 0x7fff] = i; }");
    check(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof width, &width, NULL), "width");
    size_t items = ((size_t)count * width + GROUP - 1) / GROUP * GROUP;
    return dispatched(kernel, items, 2) / count;
}

static double many_instructions(int count)
{
    static char source[LINES * LINE];
    int statements = count / STATEMENT < LINES - 2 ? count / STATEMENT : LINES - 2;
    char *at = source + sprintf(source, "kernel void work(global uint *o) { uint i = get_global_id(0), x = i;\n");
    for (int i = 0; i < statements; i++)
        at += sprintf(at, "x = (x ^ %uu) + (x >> %d);\n", 2654435761u * (unsigned)(i + 1), 1 + i % 15);
    sprintf(at, "o[i] = x; }\n");
    return dispatched(built(source), ITEMS, 2 + count * 3e-3) / count;
}

int main(int count, char **arguments)
{
    int number = count == 3 ? atoi(arguments[2]) : 0;
    if (number < 1) {
        fprintf(stderr, "usage: growth buffers|threads|instructions N\n");
        return 2;
    }
    start();
    double took = !strcmp(arguments[1], "buffers") ? many_buffers(number)
                  : !strcmp(arguments[1], "threads") ? many_threads(number)
                                                     : many_instructions(number);
    printf("%.3f ns\n", took);
    return 0;
}
