"""y = a * x + y on whatever OpenCL device there is, checked with NumPy.

    softgen run --gpu kbl -- /usr/bin/python3 examples/opencl_saxpy.py [ELEMENTS]

Needs pyopencl and, for softgen, Intel's OpenCL runtime (Debian: python3-pyopencl intel-opencl-icd).
"""

import sys

import numpy as np
import pyopencl as cl  # type: ignore[import-not-found]

SOURCE = """
kernel void saxpy(global const float *x, global float *y, float a)
{
    size_t i = get_global_id(0);
    y[i] = fma(a, x[i], y[i]);
}
"""


def main(count: int = 256) -> int:
    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    random = np.random.default_rng(1)
    x, y = (random.integers(-1000, 1000, count).astype(np.float32) for _ in range(2))
    flags = cl.mem_flags
    x_there = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=x)
    y_there = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=y)
    cl.Program(context, SOURCE).build().saxpy(queue, (count,), None, x_there, y_there, np.float32(3))
    found = np.empty_like(y)
    cl.enqueue_copy(queue, found, y_there)
    wrong = int((found != 3 * x + y).sum())  # small whole numbers: exact
    print(f"{device.name}: {count} elements, {'all right' if not wrong else f'{wrong} wrong'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
