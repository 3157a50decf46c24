package failure

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// objectName names a lock in the program's terms: the global that holds it and the path to it
// inside that global; "" if it is in no global.
func (w *waiter) objectName(addr evidence.Addr) string {
	sym, ok := w.SymbolAt(addr)
	if !ok || addr < sym.Addr || uint64(addr-sym.Addr) >= max(sym.Size, 1) {
		return ""
	}
	offset := int64(addr - sym.Addr)
	if sym.Module != nil {
		if suffix, ok := w.pathInside(sym.Module.LinkAddr(sym.Addr), offset, addr); ok {
			return sym.Name + suffix
		}
	}
	if offset == 0 {
		return sym.Name
	}
	return fmt.Sprintf("%s+%#x", sym.Name, offset)
}

// pathInside reads from DWARF the members and elements that lead to an offset.
func (w *waiter) pathInside(link uint64, offset int64, addr evidence.Addr) (string, bool) {
	m := w.ModuleAt(addr)
	if m == nil {
		return "", false
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return "", false
	}
	v, ok, err := info.GlobalAt(link, 0)
	if err != nil || !ok || v.Type == nil {
		return "", false
	}
	return memberPath(v.Type, offset)
}

// maxNesting bounds how deeply members are followed.
const maxNesting = 16

// lockTypes are the types at which a path ends: their members belong to the library.
var lockTypes = []string{"pthread_mutex_t", "pthread_rwlock_t", "mutex", "shared_mutex", "recursive_mutex", "mtx_t", "pthread_cond_t", "condition_variable", "cnd_t",
	"atomic_flag"}

// memberPath names the innermost member or element at an offset of a type,
// and stops at the locks themselves.
func memberPath(t debuginfo.Type, offset int64) (string, bool) {
	var path strings.Builder
	for range maxNesting {
		if t == nil || offset == 0 && isLock(t.Name()) {
			return path.String(), t != nil
		}
		next, inner, ok := stepInside(t, offset, &path)
		if !ok {
			return path.String(), offset == 0
		}
		t, offset = next, inner
	}
	return path.String(), offset == 0
}

func isLock(name string) bool {
	name = strings.TrimPrefix(name, "std::")
	if strings.HasPrefix(name, "atomic<") {
		return true
	}
	for _, lock := range lockTypes {
		if name == lock {
			return true
		}
	}
	return false
}

func stepInside(t debuginfo.Type, offset int64, path *strings.Builder) (debuginfo.Type, int64, bool) {
	switch t.Kind() {
	case debuginfo.KindArray:
		elem := t.Elem()
		if elem == nil || elem.Size() <= 0 {
			return nil, 0, false
		}
		fmt.Fprintf(path, "[%d]", offset/elem.Size())
		return elem, offset % elem.Size(), true
	case debuginfo.KindStruct:
		for _, m := range t.Members() {
			if m.Type == nil || m.BitSize != 0 || offset < m.Offset || offset >= m.Offset+debuginfo.SizeIn(t, m) {
				continue
			}
			if !m.Base && m.Name != "" {
				path.WriteString("." + m.Name)
			}
			return m.Type, offset - m.Offset, true
		}
	}
	return nil, 0, false
}
