/* Waits for the host, which waits for the kernel. */
kernel void spin(global volatile const int *in, global int *out)
{
    int i = get_global_id(0);
#ifndef FIXED
    while (in[0] == 0)
        ;
#endif
    out[i] = in[i];
}
