package image

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
)

func sampleNotes() []byte {
	return slices.Concat(
		noteBytes("CORE", notePrstatus, prstatusBytes(7, 11, 0x401000, 0x7fff0000)),
		noteBytes("CORE", noteSiginfo, siginfoBytes(11, 2, 0x1234)),
		noteBytes("CORE", noteAuxv, auxvBytes(auxPHDR, 0x400040, auxEntry, 0x401000)),
		noteBytes("CORE", noteFile, fileNoteBytes(fileMapping{0x400000, 0x401000, 0, "/bin/x"}, fileMapping{0x401000, 0x402000, 0x1000, "/bin/x"})),
		noteBytes("CORE", noteFPRegs, bytes.Repeat([]byte{7}, 512)),
		noteBytes("LINUX", noteXState, make([]byte, 832)),
		noteBytes("CORE", notePrstatus, prstatusBytes(8, 11, 0x401010, 0x7ffe0000)),
	)
}

func TestNotes(t *testing.T) {
	var n coreNotes
	n.parse(sampleNotes())
	if n.cut || len(n.problems) > 0 || len(n.threads) != 2 || n.threads[0].tid != 7 || n.threads[1].tid != 8 {
		t.Fatalf("%+v", n)
	}
	want := evidence.Signal{Number: 11, Name: "SIGSEGV", Code: 2, CodeName: "SEGV_ACCERR", Addr: 0x1234, HasAddr: true}
	if s := n.threads[0].siginfo; s == nil || *s != want || n.threads[1].siginfo != nil {
		t.Errorf("signal %+v", s)
	}
	if v := n.threads[0].regs.Vector; v == nil || v[15][15] != 7 || n.threads[1].regs.Vector != nil {
		t.Errorf("vector registers %v", v)
	}
	if n.threads[0].regs.PC() != 0x401000 || n.threads[0].regs.SP() != 0x7fff0000 {
		t.Errorf("registers %+v", n.threads[0].regs)
	}
	if len(n.files) != 2 || n.files[1].offset != 0x1000 || n.files[1].path != "/bin/x" || n.auxv[auxEntry] != 0x401000 {
		t.Errorf("files %+v, auxv %v", n.files, n.auxv)
	}
}

// TestCutNotes truncates the notes at every byte, and reads the threads before
// the cut.
func TestCutNotes(t *testing.T) {
	whole := sampleNotes()
	second := len(whole) - 336 - 20
	for at := range len(whole) {
		var n coreNotes
		n.parse(whole[:at])
		want := 0
		switch {
		case at >= second+20+prstatusRegs+userRegsSize:
			want = 2
		case at >= 20+prstatusRegs+userRegsSize:
			want = 1
		}
		if len(n.threads) != want {
			t.Fatalf("cut at %d: %d threads, want %d", at, len(n.threads), want)
		}
	}
}

// Notes that are not the kernel's, and a second note of a kind, change nothing.
func TestForeignNotes(t *testing.T) {
	var n coreNotes
	n.parse(slices.Concat(sampleNotes(), noteBytes("OTHER", notePrstatus, prstatusBytes(9, 11, 1, 2)),
		noteBytes("CORE", noteSiginfo, siginfoBytes(6, -6, 0)), noteBytes("CORE", noteSiginfo, siginfoBytes(11, 2, 0x1234)),
		noteBytes("OTHER", noteAuxv, auxvBytes(auxEntry, 1))))
	if len(n.threads) != 2 || n.threads[1].siginfo == nil || n.threads[1].siginfo.Number != 6 || n.auxv[auxEntry] != 0x401000 || n.cut {
		t.Errorf("%+v", n)
	}
	n = coreNotes{}
	if n.parse(append(sampleNotes(), 1, 2, 3)); !n.cut || len(n.threads) != 2 {
		t.Errorf("notes with a rest: cut %v", n.cut)
	}
}

func TestBoundsOfAuxvAndFiles(t *testing.T) {
	var b []byte
	for i := range uint64(10000) {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, i+1), i)
	}
	if got := len(parseAuxv(b)); got != 256 {
		t.Errorf("%d entries of a vector without end", got)
	}
	note := fileNoteBytes(fileMapping{0x1000, 0x2000, 0x1000, "/a"})
	binary.LittleEndian.PutUint64(note[16+16:], 1<<52+1) // times 4096
	if files, err := parseFileNote(note); err != nil || len(files) != 1 || files[0].offset != 0 {
		t.Errorf("an offset that overflows: %+v, %v", files, err)
	}
	if files, err := parseFileNote(fileNoteBytes(fileMapping{0x1000, 0x1000, 0, "/a"}, fileMapping{0x1000, 0x2000, 0, "/b"})); err != nil || len(files) != 1 {
		t.Errorf("a mapping of no bytes: %+v, %v", files, err)
	}
}

func TestSiginfo(t *testing.T) {
	sender := siginfoBytes(6, -6, 0)
	binary.LittleEndian.PutUint32(sender[16:], 4242)
	binary.LittleEndian.PutUint32(sender[20:], 1000)
	for _, c := range []struct {
		bytes []byte
		want  evidence.Signal
	}{
		{siginfoBytes(11, siginfo.Kernel, 0), evidence.Signal{Number: 11, Name: "SIGSEGV", Code: siginfo.Kernel, CodeName: "SI_KERNEL"}},
		{siginfoBytes(8, 1, 0x40), evidence.Signal{Number: 8, Name: "SIGFPE", Code: 1, CodeName: "FPE_INTDIV", Addr: 0x40, HasAddr: true}},
		{siginfoBytes(7, 2, 0x40), evidence.Signal{Number: 7, Name: "SIGBUS", Code: 2, CodeName: "BUS_ADRERR", Addr: 0x40, HasAddr: true}},
		{siginfoBytes(11, 99, 0x40), evidence.Signal{Number: 11, Name: "SIGSEGV", Code: 99, Addr: 0x40, HasAddr: true}},
		{siginfoBytes(70, 0, 0), evidence.Signal{Number: 70, Name: "signal 70", CodeName: "SI_USER"}},
		{sender, evidence.Signal{Number: 6, Name: "SIGABRT", Code: -6, CodeName: "SI_TKILL", SenderPID: 4242, SenderUID: 1000}},
	} {
		if got, ok := siginfo.Parse(c.bytes); !ok || got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}

func TestFileNote(t *testing.T) {
	good := fileNoteBytes(fileMapping{0x1000, 0x2000, 0, "/a"}, fileMapping{0x2000, 0x3000, 0x5000, "/b"})
	for _, c := range []struct {
		name  string
		desc  []byte
		files int
		fails bool
	}{
		{"whole", good, 2, false},
		{"names cut", good[:len(good)-2], 1, true},
		{"entries cut", good[:40], 0, true},
		{"short", good[:9], 0, true},
		{"huge count", append(bytes.Repeat([]byte{0xff}, 8), good[8:]...), 0, true},
	} {
		files, err := parseFileNote(c.desc)
		if len(files) != c.files || (err != nil) != c.fails {
			t.Errorf("%s: %d files, error %v", c.name, len(files), err)
		}
	}
}

func FuzzNotes(f *testing.F) {
	f.Add(sampleNotes())
	f.Add(sampleNotes()[:700])
	f.Add(noteBytes("CORE", noteFile, bytes.Repeat([]byte{0xff}, 64)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n coreNotes
		n.parse(b)
		if len(n.threads)*(prstatusRegs+userRegsSize) > len(b) {
			t.Errorf("%d threads in %d bytes", len(n.threads), len(b))
		}
		coreMappings(nil, sortFiles(n.files), len(b)%2 == 0)
	})
}
