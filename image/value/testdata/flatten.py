# Run by gdb: writes every scalar in the variables of the named functions'
# frames as "function <tab> path <tab> kind <tab> value" lines.
import gdb

SCALARS = {gdb.TYPE_CODE_INT, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_FLAGS}


def emit(function, path, kind, value):
    print("FLAT\t%s\t%s\t%s\t%s" % (function, path, kind, value))


def flatten(function, path, value, depth):
    try:
        if value.is_optimized_out:
            emit(function, path, "lost", "")
            return
        kind = value.type.strip_typedefs()
        if kind.code in SCALARS:
            emit(function, path, "int", int(value))
        elif kind.code == gdb.TYPE_CODE_PTR:
            emit(function, path, "pointer", int(value))
        elif kind.code == gdb.TYPE_CODE_FLT:
            emit(function, path, "float", repr(float(value)))
        elif kind.code == gdb.TYPE_CODE_REF and depth < 3:
            flatten(function, path, value.referenced_value(), depth)
        elif kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION) and depth < 3:
            for field in kind.fields():
                if not hasattr(field, "bitpos"):
                    continue
                name = "<%s>" % field.name if field.is_base_class else field.name or ""
                flatten(function, path + "." + name, value[field], depth + 1)
        elif kind.code == gdb.TYPE_CODE_ARRAY and depth < 3:
            low, high = kind.range()
            for i in range(low, min(high, low + 15) + 1):
                flatten(function, "%s[%d]" % (path, i), value[i], depth + 1)
    except gdb.error as err:
        emit(function, path, "error", str(err).replace("\n", " "))


frame = gdb.newest_frame()
while frame is not None:
    if frame.name() is not None and frame.function() is not None:
        name = frame.name().split("(")[0].split("::")[-1]
        block = frame.block()
        seen = set()
        while block is not None:
            for symbol in block:
                if (symbol.is_variable or symbol.is_argument) and symbol.name not in seen:
                    seen.add(symbol.name)
                    if symbol.needs_frame:
                        flatten(name, symbol.name, symbol.value(frame), 0)
            if block.function is not None:
                break
            block = block.superblock
    frame = frame.older()
