package failure

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// Offsets from the _Unwind_Exception header, which libstdc++ (libsupc++/unwind-cxx.h, struct
// __cxa_exception) and libc++abi (cxa_exception.h) share: the type is 80 bytes before it, the
// thrown object 32 bytes after it. A dependent exception, made by std::rethrow_exception, has the
// pointer to the primary object in the type's place.
const (
	exceptionHeader = 80
	exceptionObject = 32
)

// Exception classes (Itanium C++ ABI: exception handling, 1.2): vendor and language, the lowest
// byte 1 for a dependent exception. They are written as in memory, lowest byte first.
var (
	gnuClass   = []byte("++CCUNG")
	clangClass = []byte("++CGNLC")
)

// maxTLSBlock bounds the thread-local block that is searched. That of libstdc++ has 32 bytes.
const maxTLSBlock = 4096

// thrown is an exception in flight.
type thrown struct {
	typeInfo, object evidence.Addr
	proof            evidence.Proof
	// others is how many other exceptions were in flight.
	others uint32
}

// exceptionReader reads the C++ exception that a thread handles.
type exceptionReader struct {
	*process
	*limitList
	thread *image.Thread
	// sp is where the search of the thread's stack begins.
	sp evidence.Addr
}

// exceptions returns the reader of the failing thread's exceptions.
func (j *judge) exceptions() *exceptionReader {
	return &exceptionReader{process: j.process, limitList: j.limits, thread: j.thread, sp: j.stack.registers().SP()}
}

// exception finds the exception that the thread handles: first in the
// thread's __cxa_eh_globals, then by a search of its stack. The number is how
// many others were in flight.
func (e *exceptionReader) exception() (*evidence.Exception, uint32) {
	t, ok := e.caughtException()
	if !ok {
		t, ok = e.exceptionOnStack()
	}
	if !ok {
		return nil, 0
	}
	return e.describeException(t), t.others
}

// caughtException reads the head of the chain of caught exceptions in the
// thread-local block of the C++ runtime. The block is small and its layout
// not exported, so each of its words is tried; the exception class decides.
func (e *exceptionReader) caughtException() (thrown, bool) {
	for _, m := range e.modules {
		base := path.Base(m.Path)
		if m.Object == nil || !strings.HasPrefix(base, "libstdc++.") && !strings.HasPrefix(base, "libc++abi.") {
			continue
		}
		tls, ok := m.Object.TLS()
		if !ok || tls.Memsz > maxTLSBlock {
			continue
		}
		block, err := e.ThreadLocal(e.thread, m)
		if err != nil {
			e.limit(m.Path, "its thread-local storage cannot be found, so the exception is searched on the stack: "+err.Error())
			continue
		}
		if t, ok := e.caughtIn(block, evidence.Addr(tls.Memsz)); ok {
			return t, true
		}
	}
	return thrown{}, false
}

// caughtIn tries each word of the runtime's thread-local block as
// __cxa_eh_globals.caughtExceptions.
func (e *exceptionReader) caughtIn(block, size evidence.Addr) (thrown, bool) {
	for off := evidence.Addr(0); off+8 <= size; off += 8 {
		p, err := readPointer(e, block+off)
		if err != nil {
			break
		}
		if t, ok := e.exceptionWithHeader(p + exceptionHeader); ok {
			t.proof = evidence.FromCore
			// __cxa_eh_globals.uncaughtExceptions follows (Itanium C++ ABI: exception handling,
			// 2.2.2). It does not count the exception that is handled.
			var count [4]byte
			if _, err := e.ReadMemory(block+off+8, count[:]); err == nil {
				t.others = binary.LittleEndian.Uint32(count[:])
			}
			return t, true
		}
	}
	return thrown{}, false
}

// stackSearch bounds how much of a stack is searched for an exception.
const stackSearch = 64 << 10

// exceptionOnStack searches the stack for a pointer to an exception's header.
func (e *exceptionReader) exceptionOnStack() (thrown, bool) {
	sp := e.sp &^ 7
	stack := make([]byte, stackSearch)
	n, _ := e.ReadMemory(sp, stack)
	for off := 0; off+8 <= n; off += 8 {
		p := evidence.Addr(binary.LittleEndian.Uint64(stack[off:]))
		if t, ok := e.exceptionWithHeader(p); ok {
			t.proof = evidence.Inferred
			return t, true
		}
	}
	return thrown{}, false
}

// exceptionWithHeader validates a pointer to an _Unwind_Exception.
func (e *exceptionReader) exceptionWithHeader(header evidence.Addr) (thrown, bool) {
	if header%16 != 0 || header < nearNull || !header.Canonical() {
		return thrown{}, false
	}
	var class [8]byte
	if _, err := e.ReadMemory(header, class[:]); err != nil || !cxxClass(class) {
		return thrown{}, false
	}
	first, err := readPointer(e, header-exceptionHeader)
	if err != nil {
		return thrown{}, false
	}
	t := thrown{typeInfo: first, object: header + exceptionObject}
	if class[0] == 1 {
		t.object = first
		t.typeInfo, err = readPointer(e, first-exceptionObject-exceptionHeader)
		if err != nil {
			return thrown{}, false
		}
	}
	return t, true
}

func cxxClass(class [8]byte) bool {
	return class[0] <= 1 && (bytes.Equal(class[1:], gnuClass) || bytes.Equal(class[1:], clangClass))
}
