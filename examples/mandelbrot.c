/* The Mandelbrot set with OpenCL, written as a PNG: a plain program that knows nothing of softgen.
 *
 *     cc -O2 -o mandelbrot mandelbrot.c -lOpenCL
 *     softgen run --gpu kbl -- ./mandelbrot picture.png [WIDTH HEIGHT]
 *
 * Needs the headers and an OpenCL driver (Debian: ocl-icd-opencl-dev intel-opencl-icd).
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 16384, STORED = 65535 };

static const char *source =
    "kernel void mandelbrot(global uint *picture, uint width, uint height)\n"
    "{\n"
    "    uint column = get_global_id(0), row = get_global_id(1), steps = 0;\n"
    "    float scale = 2.6f / height, x = 0, y = 0;\n"
    "    float cx = (column - 0.72f * width) * scale, cy = (row - 0.5f * height) * scale;\n"
    "    while (steps < 255 && x * x + y * y < 16.0f) {\n"
    "        float next = x * x - y * y + cx;\n"
    "        y = 2 * x * y + cy;\n"
    "        x = next;\n"
    "        steps++;\n"
    "    }\n"
    "    float part = sqrt(steps / 255.0f), rest = 1 - part;\n"
    "    uint red = 9 * rest * part * part * part * 255, green = 15 * rest * rest * part * part * 255;\n"
    "    uint blue = 8.5f * rest * rest * rest * part * 255;\n"
    "    picture[row * width + column] = red << 16 | green << 8 | blue;\n"
    "}\n";

static void fine(cl_int error, const char *what)
{
    if (error) {
        fprintf(stderr, "mandelbrot: %s: error %d\n", what, error);
        exit(1);
    }
}

/* -- the picture is computed ----------------------------------------------------------------------------------------- */

static void compute(uint32_t *picture, cl_uint width, cl_uint height)
{
    cl_int error;
    cl_platform_id platform;
    cl_device_id device;
    char name[256] = "";
    size_t size[] = {width, height}, bytes = (size_t)width * height * sizeof *picture;
    fine(clGetPlatformIDs(1, &platform, NULL), "no OpenCL platform");
    fine(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no OpenCL device");
    clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    fine(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    fine(error, "clCreateCommandQueue");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    fine(error, "clCreateProgramWithSource");
    fine(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "mandelbrot", &error);
    fine(error, "clCreateKernel");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_WRITE_ONLY, bytes, NULL, &error);
    fine(error, "clCreateBuffer");
    fine(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg");
    fine(clSetKernelArg(kernel, 1, sizeof width, &width), "clSetKernelArg");
    fine(clSetKernelArg(kernel, 2, sizeof height, &height), "clSetKernelArg");
    fine(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, size, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
    fine(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, bytes, picture, 0, NULL, NULL), "clEnqueueReadBuffer");
    printf("%u x %u pixels on %s\n", width, height, name);
}

/* -- and written: a PNG whose data is stored, not compressed, so that no library is needed ----------------------------- */

static uint32_t crc;

static void put(FILE *file, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        crc ^= ((const uint8_t *)data)[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    fwrite(data, 1, size, file);
}

static void put32(FILE *file, uint32_t value)
{
    uint8_t bytes[] = {value >> 24, value >> 16, value >> 8, value};
    put(file, bytes, sizeof bytes);
}

static void begin_chunk(FILE *file, const char *name, size_t size)
{
    put32(file, (uint32_t)size);
    crc = ~0u;
    put(file, name, 4);
}

static void end_chunk(FILE *file)
{
    put32(file, ~crc);
}

static void put_stored(FILE *file, const uint8_t *data, size_t size)
{
    uint32_t a = 1, b = 0;
    put(file, "\x78\x01", 2);
    for (size_t at = 0; at < size; at += STORED) {
        size_t some = size - at < STORED ? size - at : STORED;
        uint8_t head[] = {at + some == size, some & 255, some >> 8, ~some & 255, (~some >> 8) & 255};
        put(file, head, sizeof head);
        put(file, data + at, some);
        for (size_t i = at; i < at + some; i++)
            a = (a + data[i]) % 65521, b = (b + a) % 65521;
    }
    put32(file, b << 16 | a);
}

static int write_png(const char *path, const uint32_t *picture, uint32_t width, uint32_t height)
{
    size_t line = 1 + 3 * (size_t)width, size = line * height;
    uint8_t *data = calloc(size, 1);
    FILE *file = fopen(path, "wb");
    if (!data || !file)
        return -1;
    for (size_t i = 0; i < (size_t)width * height; i++) {
        uint8_t *pixel = data + i / width * line + 1 + i % width * 3;
        pixel[0] = picture[i] >> 16, pixel[1] = picture[i] >> 8, pixel[2] = picture[i];
    }
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, file);
    begin_chunk(file, "IHDR", 13);
    put32(file, width);
    put32(file, height);
    put(file, "\x08\x02\0\0\0", 5); /* 8 bits, red green blue */
    end_chunk(file);
    begin_chunk(file, "IDAT", 2 + size + (size + STORED - 1) / STORED * 5 + 4);
    put_stored(file, data, size);
    end_chunk(file);
    begin_chunk(file, "IEND", 0);
    end_chunk(file);
    free(data);
    return ferror(file) | fclose(file);
}

int main(int count, char **arguments)
{
    int width = count > 2 ? atoi(arguments[2]) : 1024, height = count > 3 ? atoi(arguments[3]) : 768;
    if (count < 2 || width < 1 || height < 1 || width > MOST_SIDE || height > MOST_SIDE) {
        fprintf(stderr, "usage: mandelbrot FILE.png [WIDTH HEIGHT]\n");
        return 2;
    }
    uint32_t *picture = calloc((size_t)width * height, sizeof *picture);
    if (!picture)
        return 1;
    compute(picture, (cl_uint)width, (cl_uint)height);
    if (write_png(arguments[1], picture, (uint32_t)width, (uint32_t)height)) {
        perror(arguments[1]);
        return 1;
    }
    return 0;
}
