"""Encoding to bitstreams (PAK): pictures of the latched state, coded by decisions that commands or VDENC bring.

In:  MFX_* state with codec_select encode, headers (MFX_PAK_INSERT_OBJECT), objects. Out: streams in memory, counts in registers.

stream.py       the stream that is written: where, how much, what registers say of it
structures.py   what the C code of bits/writer.h shares with Python
source.py       the surface that is encoded
jpeg/, avc/     one folder per standard: state.py reads the latched records, the C files encode
"""
