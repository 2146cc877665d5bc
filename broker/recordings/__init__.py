"""Recordings: every run written down as it happens, to be shown, replayed, compared and resumed.

Above: execution.py and the command line. Below: the store and the sandbox. The modules beside this one say what a
recording is: its lines, what they mean together, and the file that holds them.
"""
