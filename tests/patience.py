"""How long a test waits for what may never come.

A limit by the clock is there to end a hang and decides nothing else: on a machine with ten
other busy processes everything takes many times as long, and is right all the same.
"""

PATIENCE = 600  # seconds
