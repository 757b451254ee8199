/* The inner loop of a mandelbrot set without its way out. */
__kernel void mandel_loop(__global float* restrict out, float dx, float dy, uint count) {
  uint i=get_global_id(0);
  float cr=dx*(float)(i & 1023)-0.5f, ci=dy*(float)(i >> 10), zr=0.0f, zi=0.0f;
  for (uint k=0;k<count;k++) {
    float a=zr*zr, b=zi*zi;
    zi=2.0f*zr*zi+ci; zr=a-b+cr;
  }
  out[i]=zr+zi;
}
