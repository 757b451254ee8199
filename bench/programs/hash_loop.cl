/* An integer hash, again and again. */
__kernel void hash_loop(__global uint* restrict out, uint salt, uint count) {
  uint x=get_global_id(0)+salt;
  for (uint k=0;k<count;k++) {
    x^=x>>16; x*=0x7feb352du; x^=x>>15; x*=0x846ca68bu; x^=x>>16; x+=k;
  }
  out[get_global_id(0)]=x;
}
