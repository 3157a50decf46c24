# Writes every thread's stack of the loaded core as JSON, for the tests that
# compare the unwinder with gdb. Run by gdb -nx -batch -x.
import json
import os

import gdb

KINDS = {
    gdb.NORMAL_FRAME: "physical",
    gdb.INLINE_FRAME: "inlined",
    gdb.SIGTRAMP_FRAME: "signal",
    gdb.TAILCALL_FRAME: "tail-call",
}


def describe(frame):
    sal = frame.find_sal()
    function = frame.function()
    return {
        "kind": KINDS.get(frame.type(), "other"),
        "pc": frame.pc(),
        "name": frame.name() or "",
        "linkage": (function.linkage_name or "") if function else "",
        "debug": function is not None,
        "file": sal.symtab.filename if sal.symtab else "",
        "path": sal.symtab.fullname() if sal.symtab else "",
        "line": sal.line if sal.symtab else 0,
    }


def stack(limit):
    frames = []
    frame = gdb.newest_frame()
    stopped = ""
    while frame is not None and len(frames) < limit:
        try:
            frames.append(describe(frame))
            older = frame.older()
        except gdb.error as e:
            stopped = str(e)
            break
        if older is None:
            stopped = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
        frame = older
    return frames, stopped


def main():
    for option in ("backtrace past-main on", "backtrace past-entry on", "style enabled off"):
        gdb.execute("set " + option)
    limit = int(os.environ["STACKS_LIMIT"])
    threads = []
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frames, stopped = stack(limit)
        threads.append({"tid": thread.ptid[1] or thread.ptid[0], "frames": frames, "stopped": stopped})
    with open(os.environ["STACKS_OUTPUT"], "w") as out:
        json.dump(threads, out)


main()
