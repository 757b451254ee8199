/* Runs one kernel of an OpenCL file over a buffer of integers, as a plain program does that knows nothing of softgen:
 *
 *     cc -o opencl opencl.c -lOpenCL
 *     softgen check --gpu kbl -- ./opencl race.cl race 256 64 [OPTIONS OF THE COMPILER]
 *
 * The kernel gets a buffer with its numbers (0, 1, 2 …) and one to write to, with as many integers as there are work-items.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_SOURCE = 1 << 16, MOST_ITEMS = 1 << 16, MOST_LOG = 1 << 14 };

static char source[MOST_SOURCE], text[MOST_LOG];
static cl_int in[MOST_ITEMS], out[MOST_ITEMS];

static void fine(cl_int error, const char *what)
{
    if (error) {
        fprintf(stderr, "opencl: %s failed: %d\n", what, error);
        exit(1);
    }
}

static cl_kernel kernel_of(cl_context context, cl_device_id device, const char *file, const char *name, const char *options)
{
    FILE *stream = fopen(file, "r");
    const char *code = source;
    cl_int error;
    fine(!stream || !fread(source, 1, sizeof source - 1, stream), "reading the source");
    cl_program program = clCreateProgramWithSource(context, 1, &code, NULL, &error);
    fine(error, "making a program");
    error = clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (error && !clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof text - 1, text, NULL))
        fputs(text, stderr);
    fine(error, "compiling");
    cl_kernel kernel = clCreateKernel(program, name, &error);
    fine(error, "finding the kernel");
    return kernel;
}

int main(int count, char **words)
{
    size_t items = count > 4 ? strtoul(words[3], NULL, 0) : 0, group = count > 4 ? strtoul(words[4], NULL, 0) : 0;
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    fine(!items || !group || items > MOST_ITEMS, "reading arguments: FILE KERNEL ITEMS GROUP [OPTIONS]");
    fine(clGetPlatformIDs(1, &platform, NULL), "finding OpenCL");
    fine(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL), "finding a GPU");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    fine(error, "making a context");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    fine(error, "making a queue");
    cl_kernel kernel = kernel_of(context, device, words[1], words[2], count > 5 ? words[5] : "");
    for (size_t item = 0; item < items; item++)
        in[item] = (cl_int)item;
    size_t size = items * sizeof *in;
    cl_mem there = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, size, in, &error), back = clCreateBuffer(context, 0, size, NULL, &error);
    fine(error, "making buffers");
    fine(clEnqueueFillBuffer(queue, back, &in[0], sizeof *in, 0, size, 0, NULL, NULL), "clearing a buffer");
    fine(clSetKernelArg(kernel, 0, sizeof there, &there), "setting an argument");
    fine(clSetKernelArg(kernel, 1, sizeof back, &back), "setting an argument");
    fine(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL), "starting the kernel");
    fine(clEnqueueReadBuffer(queue, back, CL_TRUE, 0, size, out, 0, NULL, NULL), "waiting for it");
    for (size_t item = 0; item < items; item++)
        printf("%d%c", out[item], item % 16 == 15 ? '\n' : ' ');
    return 0;
}
