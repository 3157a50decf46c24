package futex

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// The header of the kernel's interface has the same numbers.
func TestNumbers(t *testing.T) {
	text, err := os.ReadFile("/usr/include/linux/futex.h")
	if err != nil {
		t.Skip("not supported here: the kernel's headers are not installed")
	}
	header := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#define\s+FUTEX_(\w+)\s+(\w+)`).FindAllStringSubmatch(string(text), -1) {
		header[m[1]] = m[2]
	}
	for name, ours := range map[string]uint64{"WAIT": Wait, "WAKE": Wake, "REQUEUE": Requeue, "CMP_REQUEUE": CmpRequeue, "WAKE_OP": WakeOp,
		"LOCK_PI": LockPI, "WAIT_BITSET": WaitBitset, "WAKE_BITSET": WakeBitset, "WAIT_REQUEUE_PI": WaitRequeuePI, "LOCK_PI2": LockPI2,
		"PRIVATE_FLAG": private, "TID_MASK": TIDMask} {
		if theirs, err := strconv.ParseUint(header[name], 0, 64); err != nil || theirs != ours {
			t.Errorf("FUTEX_%s is %s in the header and %d here", name, header[name], ours)
		}
	}
}

func TestOperation(t *testing.T) {
	const clockRealtime = 256
	op := uint64(WaitBitset | private | clockRealtime)
	if Command(op)&^clockRealtime != WaitBitset || !Private(op) || !Waits(op) || Private(Wait) || Waits(WakeBitset|private) {
		t.Error("the flags are not told from the command")
	}
}
