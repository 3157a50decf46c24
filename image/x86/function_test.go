package x86

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

func opName(op int) string { return x86asm.Op(op).String() }

// TestLibcDecodes decodes all of the C library's code, whose hand-written
// parts use every vector extension, without an unknown byte.
func TestLibcDecodes(t *testing.T) {
	code, addr, path := libcText(t)
	insts, bad := Function(code, addr)
	if bad != 0 {
		t.Errorf("%s: %d bytes were not decoded", path, bad)
	}
	unnamed := 0
	for n := range insts {
		if strings.Contains(insts[n].Op, ".") {
			unnamed++
			t.Logf("no name: %s % x", insts[n].Text(), insts[n].Bytes)
		}
	}
	if unnamed > 0 {
		t.Errorf("%s: %d of %d instructions have no name", path, unnamed, len(insts))
	}
	t.Logf("%s: %d instructions", path, len(insts))
}

// TestInStepWithObjdump compares instruction starts with objdump's, in windows
// spread over the C library.
func TestInStepWithObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("not supported here: objdump is not installed")
	}
	code, addr, path := libcText(t)
	insts, _ := Function(code, addr)
	const windows, size = 8, 4000
	compared := 0
	for w := range windows {
		part := insts[len(insts)*w/windows:]
		part = part[:min(size, len(part))]
		last := &part[len(part)-1]
		theirs := objdumpAddresses(t, path, part[0].PC, last.PC+uint64(last.Len))
		ours := make(map[uint64]string, len(part))
		for n := range part {
			ours[part[n].PC] = part[n].Text()
		}
		for pc, text := range theirs {
			if _, ok := ours[pc]; !ok {
				t.Errorf("objdump has %q at %#x, where no instruction begins for Function", text, pc)
			}
			compared++
		}
		if len(theirs) != len(ours) {
			t.Errorf("window at %#x: objdump has %d instructions, Function %d", part[0].PC, len(theirs), len(ours))
		}
	}
	if compared < windows*size/2 {
		t.Errorf("only %d instructions were compared", compared)
	}
}

func objdumpAddresses(t *testing.T, path string, from, to uint64) map[uint64]string {
	t.Helper()
	out, err := exec.Command("objdump", "-d", "-w", "--no-show-raw-insn",
		"--start-address=0x"+strconv.FormatUint(from, 16), "--stop-address=0x"+strconv.FormatUint(to, 16), path).Output()
	if err != nil {
		t.Fatal(err)
	}
	addresses := make(map[uint64]string)
	for line := range bytes.Lines(out) {
		head, text, ok := strings.Cut(strings.TrimSpace(string(line)), ":\t")
		if !ok {
			continue
		}
		pc, err := strconv.ParseUint(head, 16, 64)
		if err != nil {
			continue
		}
		addresses[pc] = text
	}
	return addresses
}

func TestFunctionSkipsBadBytes(t *testing.T) {
	insts, bad := Function([]byte{0x90, 0x06, 0x90, 0x0f}, 0x1000)
	if len(insts) != 2 || bad != 2 || insts[1].PC != 0x1002 {
		t.Errorf("%d instructions, %d bad bytes", len(insts), bad)
	}
}
