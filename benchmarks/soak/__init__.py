"""Good and hostile scripts beside servers that die, for a long time: whether anything leaks.

__main__ runs them; scripts.py says which, and how each may end; held.py judges what the process holds afterwards.
"""
