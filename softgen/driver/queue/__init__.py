"""Submissions, from a context's queue to the device.

queue.py       queues by context, slots of engines
execute.py     execution by the device, failures; hints.py: advice about them
parking.py     submissions that wait at semaphores
"""
