"""A run: the program, its server, and their end.

launcher.py    program, server and their end; run_folder.py: the folder of a run; signal_wait.py: sigtimedwait
environment.py environment variables for each runtime
service.py     the server's process; sysfs_tree.py: the /dev/dri and /sys it shows; collector.py: its garbage collector;
               input_devices.py: a keyboard and a pointer
simulator.py   the parts of a server, built as options say
server.py      accepts connections and answers requests; node_name.py: whether a program has the node that it names;
               channel_threads.py: the threads that answer; wait_prediction.py: whether a program waits for each submission
protocol.py    messages between shim and server; process.py: memory of the program, accessed from the server
"""
