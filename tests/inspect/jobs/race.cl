/* Reads what another work-item writes, with no barrier between them. */
kernel void race(global const int *in, global int *out)
{
    local int row[64];
    int i = get_local_id(0), left = i == 0 ? 63 : i - 1;
    row[i] = in[get_global_id(0)];
#ifdef FIXED
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    out[get_global_id(0)] = row[left];
}
