/* The inner loop of an n-body problem over bodies that need no memory. */
__kernel void nbody_loop(__global float* restrict out, float step, float eps2, uint count) {
  uint i=get_global_id(0);
  float x=(float)i*0.001f, ax=0.0f, q=0.0f;
  for (uint k=0;k<count;k++) {
    float d=q-x, r2=d*d+eps2;
    float inv=native_rsqrt(r2);
    ax+=d*inv*inv*inv; q+=step;
  }
  out[i]=ax;
}
