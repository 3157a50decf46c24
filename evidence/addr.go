package evidence

import (
	"fmt"
	"strconv"
	"strings"
)

// Addr is a virtual address in the target process. In JSON it is a string
// with a 0x prefix, because a JSON number cannot carry 64 bits.
type Addr uint64

// String returns the address in hexadecimal with a 0x prefix.
func (a Addr) String() string { return "0x" + strconv.FormatUint(uint64(a), 16) }

// MarshalText implements encoding.TextMarshaler.
func (a Addr) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Addr) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "0x")
	if !ok {
		return fmt.Errorf("address %q lacks the 0x prefix", text)
	}
	v, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return fmt.Errorf("address %q: %w", text, err)
	}
	*a = Addr(v)
	return nil
}

// Canonical reports whether bits 47 to 63 of the address are equal, which
// x86-64 with four-level paging demands of every address it dereferences
// (Intel SDM volume 1, 3.3.7.1).
func (a Addr) Canonical() bool {
	top := int64(a) >> 47
	return top == 0 || top == -1
}
