"""What each ioctl does.

ioctls.py      dispatch of ioctls to their handlers
query.py       GETPARAM, QUERY and other queries
gem.py         buffer objects; prime.py: sharing them; aperture.py: linear views of tiled ones
userptr.py     the program's own memory as a buffer; user_copy.py: copies of it
context.py     contexts and address spaces
syncobj.py     sync objects
execbuffer.py  EXECBUFFER2 becomes a submission; relocation.py: its relocations
"""
