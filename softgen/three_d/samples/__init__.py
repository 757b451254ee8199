"""Multisampling: pixels with several samples, each with coverage, depth, stencil and colours of its own.

sample_plan.py     what state says: how many samples there are, where, and which of them count
sample_coverage.c  the samples that an object covers
sample_threads.c   depth tests at each sample, threads of pixels and of samples
"""
