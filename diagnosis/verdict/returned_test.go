package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/image"
)

func TestLiteralReturns(t *testing.T) {
	for text, want := range map[string]bool{
		"	return NULL;": true, "return (0);": true, "if (!p) return nullptr;": true, "return -1;": true, "return;": true, "return {};": true,
		"return p;": false, "return p->next;": false, "return find(0);": false, "return 0 + n;": false,
	} {
		if got := literal.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestValueText(t *testing.T) {
	for v, want := range map[uint64]string{0: "0", 12: "12", 0xffffffff: "-1", ^uint64(0): "-1", 0x208000050080: "0x208000050080", 0x80000000: "0x80000000"} {
		if got := valueText(v); got != want {
			t.Errorf("%#x: %s, not %s", v, got, want)
		}
	}
}

// texts is memory with one text, behind which it ends.
type texts struct {
	at   evidence.Addr
	data string
}

func (m texts) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr != m.at {
		return 0, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	}
	n := copy(p, m.data)
	if n < len(p) {
		return n, &image.MemoryError{Addr: addr, Reason: "is not mapped", Unmapped: true}
	}
	return n, nil
}

func TestArguments(t *testing.T) {
	m := texts{0x1000, "HOME\x00rest"}
	for _, test := range []struct {
		kind byte
		v    uint64
		want string
	}{{'s', 0x1000, `"HOME"`}, {'s', 0, "NULL"}, {'s', 0x2000, "0x2000"}, {'c', '=', "'='"}, {'d', 0xffffffff, "-1"}, {'u', 4096, "4096"}, {'p', 0, "NULL"}, {'p', 0x20, "0x20"}} {
		if got := argumentText(m, test.kind, test.v); got != test.want {
			t.Errorf("%c %#x: %s, not %s", test.kind, test.v, got, test.want)
		}
	}
}

// A value that is read by one instruction is not what another one read later.
func TestReadByInstruction(t *testing.T) {
	log := logOf(t, "W p 0x401000 0->5", "R p 0x401010 5->5", "W p 0x401000 5->5", "R p 0x401020 5->5")
	value := uint64(5)
	v := victim{start: word, size: 8, value: &value}
	if got := v.readBy(log, 4, 1); got != 4 {
		t.Errorf("the last read is before %d", got)
	}
	v.readPC = 0x401010
	if got := v.readBy(log, 4, 1); got != 2 {
		t.Errorf("the read at 0x401010 is before %d", got)
	}
	if got := v.readBy(log, 1, 1); got != 1 {
		t.Errorf("of one access the read is before %d", got)
	}
}
