"""Processes: the only place that forks, starts programs, limits them and kills them.

`tree` starts children and kills everything below them; `fork`, `fork_pool` and `fork_tasks` run
functions in forks; `commands` runs programs; `limits` prepares a fork for a test; `frames` are the
messages between processes; `scratch` has directories that are removed whatever happens.
"""
