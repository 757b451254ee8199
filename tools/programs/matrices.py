"""Two matrices multiplied by PyOpenCL, compared with NumPy's product."""

import numpy as np
import pyopencl as cl

SIZE = 64
SOURCE = """
kernel void multiply(global const int *a, global const int *b, global int *c) {
    int x = get_global_id(0), y = get_global_id(1), size = get_global_size(0), sum = 0;
    for (int k = 0; k < size; ++k)
        sum += a[y * size + k] * b[k * size + x];
    c[y * size + x] = sum;
}
"""
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
a, b = np.random.default_rng(1).integers(-999, 999, (2, SIZE, SIZE), dtype=np.int32)
c = np.empty_like(a)
flags = cl.mem_flags.COPY_HOST_PTR
buffers = [cl.Buffer(context, flags | cl.mem_flags.READ_WRITE, hostbuf=each) for each in (a, b, c)]
cl.Program(context, SOURCE).build().multiply(queue, (SIZE, SIZE), None, *buffers)
cl.enqueue_copy(queue, c, buffers[2])
print(context.devices[0].name, "difference", np.abs(c - a @ b).max())
