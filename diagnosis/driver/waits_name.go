package driver

import (
	"encoding/binary"
	"iter"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/image/value"
)

// stackVariable names an address on a stack by the function and its variable ("main's pool.lock");
// empty: no frame is known to have a variable there.
func (w waitReader) stackVariable(addr evidence.Addr) string {
	for i := range w.walked {
		frames := w.walked[i].Frames
		for j := range frames {
			f := &frames[j]
			if f.CFA == 0 || addr >= f.CFA || addr < f.Registers.SP() {
				continue
			}
			for v := range w.variables(f) {
				if v.at.InMemory && v.Type != nil && addr >= v.at.Addr && addr < v.at.Addr+evidence.Addr(max(v.Type.Size(), 0)) {
					path, _, _ := value.Path(v.Type, int64(addr-v.at.Addr), 0)
					return evidence.ShortName(v.call.Site.Function) + "'s " + v.Name + lockPath(path)
				}
			}
			break // the frame is found, and its variable is not known
		}
	}
	return ""
}

// frameVariable is a variable of a stopped call, and where it is.
type frameVariable struct {
	debuginfo.Variable
	call  *image.SymbolizedCall
	frame *value.Frame
	at    value.Location
}

// variables are those of a frame's calls that have a value.
func (w waitReader) variables(f *unwind.Frame) iter.Seq[frameVariable] {
	return func(yield func(frameVariable) bool) {
		m := w.process.ModuleAt(f.PC())
		if m == nil {
			return
		}
		info, err := m.Debug()
		if err != nil || info == nil {
			return
		}
		pc := m.LinkAddr(f.LookupPC())
		calls, err := info.CallsAt(pc)
		if err != nil || len(calls) != len(f.Calls) {
			return
		}
		frame := &value.Frame{Process: w.process, Module: m, Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup}
		for level, call := range calls {
			variables, err := info.VariablesAt(call, pc)
			if err != nil {
				continue
			}
			for _, v := range variables {
				at, err := value.Lives(frame, v)
				if err == nil && !yield(frameVariable{v, &f.Calls[level], frame, at}) {
					return
				}
			}
		}
	}
}

// lockPath shortens the path to the first member of a lock to a path to the lock: it removes the
// members of the C library's types and of libstdc++'s.
func lockPath(path string) string {
	path, _, _ = strings.Cut(path, ".__")
	// A std::condition_variable has one in another.
	for _, inside := range []string{"._M_impl._M_rwlock", "._M_rwlock", "._M_mutex", "._M_cond", "._M_cond"} {
		path = strings.TrimSuffix(path, inside)
	}
	return path
}

// pathFrom is how a thread's frames name an object that one of their pointers leads to: "to->lock", where the pointer is to
// the object around it, else "*queue->ready", else "*lock". The innermost such frame of the program counts, as the others were called
// with less. Empty: there is none.
func (w waitReader) pathFrom(thread int, addr evidence.Addr) string {
	if thread >= len(w.walked) {
		return ""
	}
	var found namedBy
	for i := range w.walked[thread].Frames {
		for v := range w.variables(&w.walked[thread].Frames[i]) {
			if image.LibraryCode(&v.call.Site) {
				continue
			}
			if n := w.namedBy(&v, addr); n.how > found.how {
				found = n
			}
		}
	}
	return found.text
}

// namedBy is a name of an object by a variable, and how much that says.
type namedBy struct {
	how  leadsBy
	text string
}

// leadsBy is how a variable leads to an object.
type leadsBy int

const (
	_ leadsBy = iota // not at all
	// pointsTo: its value is the object's address.
	pointsTo
	// memberPointsTo: so is that of a member of what it points to.
	memberPointsTo
	// pointsAround: it points to what the object is a part of.
	pointsAround
)

// namedBy names an object by a pointer variable, if that leads to it.
func (w waitReader) namedBy(v *frameVariable, addr evidence.Addr) namedBy {
	if v.Type == nil || v.Type.Kind() != debuginfo.KindPointer && !v.Type.Reference() {
		return namedBy{}
	}
	word, known := value.Number(v.frame, v.Variable)
	if !known {
		return namedBy{}
	}
	to := evidence.Addr(word)
	arrow, star := "->", "*"
	if v.Type.Reference() {
		arrow, star = ".", ""
	}
	t := v.Type.Elem()
	if t != nil && t.Kind() == debuginfo.KindStruct {
		if inside := int64(addr - to); addr >= to && inside < t.Size() {
			path, _, ok := value.Path(t, inside, 0)
			if path = strings.TrimPrefix(lockPath(path), "."); ok && path != "" {
				return namedBy{pointsAround, v.Name + arrow + path}
			}
		}
		if path := w.memberPointing(t, to, addr); path != "" {
			return namedBy{memberPointsTo, "*" + v.Name + arrow + path}
		}
	}
	if to == addr {
		return namedBy{pointsTo, star + v.Name}
	}
	return namedBy{}
}

// mostSearched bounds the bytes of an object that are searched for a pointer.
const mostSearched = 4096

const wordSize = 8

// memberPointing is the member of an object of type t that points to an address; empty: none does.
func (w waitReader) memberPointing(t debuginfo.Type, at, addr evidence.Addr) string {
	b := make([]byte, min(max(t.Size(), 0), mostSearched)&^(wordSize-1))
	got, err := w.process.ReadMemory(at, b)
	if err != nil {
		return ""
	}
	for offset := 0; offset+wordSize <= got; offset += wordSize {
		if evidence.Addr(binary.LittleEndian.Uint64(b[offset:])) != addr {
			continue
		}
		path, leaf, ok := value.Path(t, int64(offset), wordSize)
		if ok && leaf != nil && leaf.Kind() == debuginfo.KindPointer {
			return strings.TrimPrefix(path, ".")
		}
	}
	return ""
}
