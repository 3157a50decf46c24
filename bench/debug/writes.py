# gdb executes this at the end of a recording: it goes back to the last write of a variable, and prints how long that took.
import time

gdb.execute("watch -l from", to_string=True)
begun = time.monotonic()
gdb.execute("reverse-continue", to_string=True)
print("write %.2f s, at line %d" % (time.monotonic() - begun, gdb.selected_frame().find_sal().line))
