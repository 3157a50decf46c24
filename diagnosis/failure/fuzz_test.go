package failure

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/siginfo"

	"golang.org/x/sys/unix"
)

// FuzzClassify classifies random code, memory, registers and signals.
func FuzzClassify(f *testing.F) {
	f.Add(load, []byte{0}, uint64(0), uint64(0), uint64(codeAt), uint64(8), uint8(11), int16(1))
	f.Add(divECX, []byte{0}, uint64(0), uint64(0), uint64(codeAt), uint64(0), uint8(8), int16(1))
	f.Add(pushRBX, []byte{0}, uint64(0), uint64(stackAt), uint64(codeAt), uint64(stackAt-8), uint8(11), int16(2))
	f.Add(movaps, []byte{1}, uint64(dataAt+4), uint64(0), uint64(codeAt), uint64(0), uint8(11), int16(0x80))
	f.Add([]byte{}, []byte{1}, uint64(0), uint64(stackAt), uint64(0x4141414141), uint64(0x4141414141), uint8(7), int16(2))
	f.Add(ud2, []byte{1}, uint64(1), uint64(1), uint64(codeAt), uint64(0), uint8(6), int16(-6))
	f.Add(ret, []byte{1}, uint64(1), uint64(stackAt+8), uint64(codeAt), uint64(0), uint8(11), int16(128))
	f.Fuzz(func(t *testing.T, code, stack []byte, rax, rsp, rip, addr uint64, number uint8, siCode int16) {
		fk := newFake(code)
		fk.put(stackAt+0x1000, stack)
		fk.symbols = []image.Symbol{{Name: "__abort_msg", Addr: dataAt, Size: 8}, {Name: "work", Addr: codeAt, Size: 64}}
		fk.put64(dataAt, rax)
		sig := evidence.Signal{Number: int(number), Code: int(siCode), Addr: evidence.Addr(addr), HasAddr: siCode != siginfo.Kernel}
		j := fk.judge(sig, regs{image.RAX: rax, image.RSP: rsp, image.RIP: rip})
		j.stack.frames[1].Kind = evidence.SignalFrame
		j.stack.frames = append(j.stack.frames, j.stack.frames[0])
		got := j.classify()
		Describe(&got, Names{Threads: 2})
		if got.Kind == "" || got.Sentence == "" || !got.Proof.Valid() {
			t.Errorf("incomplete: %+v", got)
		}
		if got.Fault != nil && (!got.Fault.Proof.Valid() || got.Fault.Access != "" && !got.Fault.Access.Valid()) {
			t.Errorf("fault %+v", got.Fault)
		}
	})
}

// exceptionMemory lays out a thrown std::runtime_error in the data page.
func exceptionMemory() []byte {
	b := make([]byte, 0x400)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
	put(0, dataAt+0x40)     // caughtExceptions
	put(0x40, dataAt+0x200) // exceptionType
	copy(b[0x90:], "\x00++CCUNG")
	put(0xb0, dataAt+0x180)  // the object's vptr
	put(0xb8, dataAt+0x300)  // its text
	put(0x190, codeAt+0x200) // what()
	put(0x200, dataAt+0x280) // type_info: vptr, name, base
	put(0x208, dataAt+0x320)
	put(0x210, dataAt+0x220)
	put(0x220, dataAt+0x2c0) // base: std::exception
	put(0x228, dataAt+0x340)
	copy(b[0x300:], "no disk\x00")
	copy(b[0x320:], "St13runtime_error\x00")
	copy(b[0x340:], "St9exception\x00")
	return b
}

func exceptionJudge(memory []byte) *judge {
	fk := newFake(nil)
	fk.put(dataAt, memory)
	fk.tls = dataAt
	fk.symbols = []image.Symbol{
		{Name: "vtable for __cxxabiv1::__si_class_type_info", Addr: dataAt + 0x270, Size: 0x40},
		{Name: "vtable for __cxxabiv1::__vmi_class_type_info", Addr: dataAt + 0x2b0, Size: 0x40},
		{Name: "std::runtime_error::what() const", Addr: codeAt + 0x200, Size: 16},
	}
	j := fk.judge(evidence.Signal{Number: int(unix.SIGABRT), Code: siTkill}, regs{image.RSP: stackAt})
	fk.put64(stackAt+0x10, dataAt+0x90)
	return j
}

func TestExceptionOnStack(t *testing.T) {
	e, _ := exceptionJudge(exceptionMemory()).exceptions().exception()
	if e == nil || e.Type != "std::runtime_error" || e.What != "no disk" || e.Proof != evidence.Inferred {
		t.Fatalf("exception %+v", e)
	}
}

// manyBases is a class with a million bases, each of which is the class.
func manyBases() []byte {
	b := exceptionMemory()
	binary.LittleEndian.PutUint64(b[0x200:], dataAt+0x2c0) // __vmi_class_type_info
	binary.LittleEndian.PutUint32(b[0x214:], 1<<20)
	for at := 0x218; at+16 <= 0x280; at += 16 {
		binary.LittleEndian.PutUint64(b[at:], dataAt+0x200)
	}
	return b
}

func TestCaughtException(t *testing.T) {
	caught, ok := exceptionJudge(exceptionMemory()).exceptions().caughtIn(dataAt, 16)
	if !ok || caught.object != dataAt+0xb0 || caught.proof != evidence.FromCore {
		t.Errorf("caught %+v, %v", caught, ok)
	}
}

// FuzzException puts random memory where the exception globals point.
func FuzzException(f *testing.F) {
	f.Add(exceptionMemory())
	loop := exceptionMemory()
	binary.LittleEndian.PutUint64(loop[0x210:], dataAt+0x200) // a base that is itself
	f.Add(loop)
	f.Add([]byte("\x00++CCUNG"))
	f.Add(manyBases())
	f.Fuzz(func(t *testing.T, memory []byte) {
		e := exceptionJudge(memory).exceptions()
		if t1, ok := e.caughtIn(dataAt, 64); ok {
			e.describeException(t1)
		}
		if got, _ := e.exception(); got != nil && !got.Proof.Valid() {
			t.Errorf("exception %+v", got)
		}
	})
}

// FuzzMutex puts random memory at the words on which threads wait.
func FuzzMutex(f *testing.F) {
	f.Add(mutexHeldBy(100), uint16(0), uint8(0))
	f.Add(mutexHeldBy(101), uint16(8), uint8(1))
	f.Add([]byte{101, 0, 0, 0}, uint16(0), uint8(2))
	names := []string{"pthread_mutex_lock", "pthread_rwlock_wrlock", "__pthread_clockjoin_ex", "pthread_cond_wait", "other"}
	f.Fuzz(func(t *testing.T, memory []byte, offset uint16, what uint8) {
		fk := newFake(nil)
		fk.put(dataAt, memory)
		w := &waiter{target: fk}
		for i := range 3 {
			thread, stack := waitingIn(100+i, dataAt+evidence.Addr(offset)*evidence.Addr(i), 101, names[(int(what)+i)%len(names)])
			w.threads, w.stacks = append(w.threads, thread), append(w.stacks, stack)
		}
		w.stacks = append(w.stacks, unwind.Stack{})
		for _, finding := range w.cycles(w.waits()) {
			if err := finding.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
