/* The last work-item writes past its buffer. */
kernel void beyond(global const int *in, global int *out)
{
    int i = get_global_id(0);
#ifdef FIXED
    out[i] = in[i] * 2;
#else
    out[i + 1] = in[i] * 2;
#endif
}
