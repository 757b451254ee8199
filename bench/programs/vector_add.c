/* c = a + b with OpenCL, checked; then N times an empty enqueue and a wait for it, and how long the quickest, the middle and the
 * slowest took. The plain program that `softgen run` is measured with.
 *
 *     cc -O2 -o vector_add vector_add.c -lOpenCL && ./vector_add [N]
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT = 1024, MOST = 100000 };

static const char *source = "kernel void add(global const int *a, global const int *b, global int *c)\n"
                            "{ size_t i = get_global_id(0); c[i] = a[i] + b[i]; }\n"
                            "kernel void nothing(void) { }\n";
static cl_context context;
static cl_command_queue queue;

static void *fine(void *thing, cl_int error, const char *what)
{
    if (error) {
        fprintf(stderr, "vector_add: %s: error %d\n", what, error);
        exit(1);
    }
    return thing;
}

static cl_kernel kernel(cl_program program, const char *name)
{
    cl_int error;
    cl_kernel made = clCreateKernel(program, name, &error);
    return fine(made, error, name);
}

static cl_mem buffer(const void *content)
{
    cl_int error;
    cl_mem made = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, COUNT * sizeof(int), (void *)content, &error);
    return fine(made, error, "clCreateBuffer");
}

static cl_program start(void)
{
    cl_int error;
    cl_platform_id platform;
    cl_device_id device;
    fine(NULL, clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    fine(NULL, clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL), "clGetDeviceIDs");
    context = fine(clCreateContext(NULL, 1, &device, NULL, NULL, &error), error, "clCreateContext");
    queue = fine(clCreateCommandQueue(context, device, 0, &error), error, "clCreateCommandQueue");
    cl_program program = fine(clCreateProgramWithSource(context, 1, &source, NULL, &error), error, "clCreateProgramWithSource");
    fine(NULL, clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    return program;
}

static int add(cl_program program)
{
    static int a[COUNT], b[COUNT], c[COUNT];
    size_t size = COUNT;
    for (int i = 0; i < COUNT; i++)
        a[i] = i * 7, b[i] = 1000000 - i;
    cl_mem there[] = {buffer(a), buffer(b), buffer(c)};
    cl_kernel sum = kernel(program, "add");
    for (cl_uint i = 0; i < 3; i++)
        fine(NULL, clSetKernelArg(sum, i, sizeof(cl_mem), &there[i]), "clSetKernelArg");
    fine(NULL, clEnqueueNDRangeKernel(queue, sum, 1, NULL, &size, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    fine(NULL, clEnqueueReadBuffer(queue, there[2], CL_TRUE, 0, sizeof c, c, 0, NULL, NULL), "clEnqueueReadBuffer");
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += c[i] != a[i] + b[i];
    printf("%d sums, %d of them wrong\n", COUNT, wrong);
    return wrong;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static void wait_often(cl_kernel nothing, int times)
{
    static double took[MOST];
    size_t size = 1;
    for (int i = 0; i < times; i++) {
        double began = now();
        fine(NULL, clEnqueueNDRangeKernel(queue, nothing, 1, NULL, &size, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
        fine(NULL, clFinish(queue), "clFinish");
        took[i] = now() - began;
    }
    qsort(took, times, sizeof *took, ascending);
    printf("waits %.1f %.1f %.1f us\n", took[0], took[times / 2], took[times - 1]);
}

int main(int count, char **arguments)
{
    int times = count > 1 ? atoi(arguments[1]) : 0;
    cl_program program = start();
    int wrong = add(program);
    if (times > 0)
        wait_often(kernel(program, "nothing"), times < MOST ? times : MOST);
    return wrong != 0;
}
