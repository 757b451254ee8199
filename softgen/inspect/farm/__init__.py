"""Farm: many tests or captures on one machine or on many. It schedules nothing itself: shards need no scheduler, executors bring theirs.

In:  a list of commands, captures, or cases of a suite; GPUs; limits.
Out: a folder with one line of JSON for each unit, under the hash of all that decides its result.

unit.py          FarmUnit, Job, UnitResult: what runs, what one process does, what came out; all of it travels to other machines
commands.py      the commands of `softgen farm`
lists.py         inputs: lists, folders of captures, GPUs; inputs.py  captures on their way to workers that do not see them
plans.py         which units there are, and jobs for those without a result
suites.py        what a worker does with a job: replays.py  captures; deqp.py piglit.py  suites; groups.py  cases that share a program
shards.py        a part of the list: 3/40, or from the variables of Slurm, Kubernetes, GitLab and others
identity.py      the hash of a unit; drivers.py  the driver libraries and variables in it
session.py       a farm from start to end; merge.py  results of several farms in one folder
engine.py        jobs on their way to a backend: backends.py  which; executors.py  this machine's threads, or any
                 concurrent.futures.Executor; dask_backend.py  the workers of a Dask cluster
worker.py        a job where it runs; process.py  its subprocess with limits; child.py  which ends with its worker
verdicts.py      pass, fail, crash, timeout or skip; deqp_output.py piglit_output.py  what suites say themselves
store.py         the folder of results
expectations.py  baselines and flakes in deqp-runner's formats
summary.py       counts and exit code; reports.py junit.py page.py  files for CI and people; progress.py  a bar with rate and time left
"""
