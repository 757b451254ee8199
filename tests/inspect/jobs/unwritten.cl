/* Adds to local memory that nothing has written. */
kernel void unwritten(global const int *in, global int *out)
{
    local int sums[64];
    int i = get_local_id(0);
#ifdef FIXED
    sums[i] = 0;
#endif
    sums[i] += in[get_global_id(0)];
    out[get_global_id(0)] = sums[i];
}
