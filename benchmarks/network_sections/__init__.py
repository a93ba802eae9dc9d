"""The sections of `network.py`: networks of broker processes, and the model of a large one."""
