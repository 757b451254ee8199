"""The adaptive video scaler behind the sampler: blocks of 16x4 pixels of a media surface, filtered by 8x8 polyphase tables (sample_8x8).

In:  a message of two registers, a MEDIA_SURFACE_STATE and a SAMPLER_STATE_8X8_AVS (before Gen8 SAMPLER_STATE_8X8 and its table).
Out: words with eight bits behind the point, for each channel that the header leaves.

surface.py   media surfaces: planes and channels of their formats
state.py     coefficients and switches
filter.py    sums over taps
messages.py  payloads and answers
scaler.c     all of it for compiled code, scaler.h; scaler_samples.c reads rows; bound.py: surfaces and states of its messages
"""
