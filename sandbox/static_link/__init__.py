"""Links the libraries of the guest component into one core module, ahead of time.

componentize-py makes a component of a dozen modules that share a memory and a table, linked anew whenever it is
instantiated: thousands of table entries are written, each call between libraries is indirect, and each address of
position-independent code is read from a global. Here the same is done once, when the image is built. Runs in build
environments, so it imports nothing but the standard library; `componentize` starts it as a process.
"""
