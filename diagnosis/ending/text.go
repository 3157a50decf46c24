package ending

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record/eventlog"
)

// written is the text that a write passed to the kernel, which took c.result bytes of it.
func (c *call) written(m image.Memory) []byte {
	left := uint64(min(c.result, mostWritten))
	if c.number == callWrite || c.number == callPwrite {
		return readText(m, c.args[1], left)
	}
	const most, size = 64, 16 // struct iovec: address and length (readv(2))
	var text []byte
	for i := uint64(0); i < min(c.args[2], most) && left > 0; i++ {
		var v [size]byte
		if n, err := m.ReadMemory(evidence.Addr(c.args[1]+i*size), v[:]); err != nil || n != size {
			break
		}
		part := readText(m, binary.LittleEndian.Uint64(v[:]), min(left, binary.LittleEndian.Uint64(v[8:])))
		text, left = append(text, part...), left-uint64(len(part))
	}
	return text
}

// readText reads as much of a text as is readable.
func readText(m image.Memory, at, size uint64) []byte {
	b := make([]byte, size)
	n, _ := m.ReadMemory(evidence.Addr(at), b)
	return b[:max(n, 0)]
}

// endsLine reports whether the text after a write begins a new line. A write that was not read as a
// whole counts as one that ends its line.
func (c *call) endsLine() bool {
	return len(c.text) == 0 || int64(len(c.text)) < c.result || bytes.HasSuffix(c.text, []byte("\n"))
}

// nameTexts reads the paths and names that a failed call was given and that the log lacks: it has
// those of calls that found or made no file, but not those of other errors.
func (c *call) nameTexts(m image.Memory) {
	const most = 4096 // PATH_MAX, include/uapi/linux/limits.h
	for _, i := range c.logged.TextArguments() {
		if i >= len(c.args) || slices.ContainsFunc(c.logged.Payloads, func(p eventlog.Payload) bool { return uint64(p.Addr) == c.args[i] }) {
			continue
		}
		if text, whole := readName(m, c.args[i], most); whole {
			c.logged.Payloads = append(c.logged.Payloads, eventlog.Payload{Addr: evidence.Addr(c.args[i]), Kind: eventlog.PayloadText, Data: text})
			c.word()
		}
	}
}

// readName reads a text up to its zero byte. whole is false if that cannot be read.
func readName(m image.Memory, at uint64, most int) (text []byte, whole bool) {
	const page = 4096 // the next page may not be mapped
	for len(text) < most {
		from := at + uint64(len(text))
		part := readText(m, from, page-from%page)
		if name, _, found := bytes.Cut(part, []byte{0}); found {
			return append(text, name...), true
		}
		if len(part) == 0 {
			return nil, false
		}
		text = append(text, part...)
	}
	return nil, false
}

// nameAddress puts the address that a connect(2) or bind(2) was given into its words.
func (c *call) nameAddress(m image.Memory) {
	if c.number != unix.SYS_CONNECT && c.number != unix.SYS_BIND || len(c.args) < 3 {
		return
	}
	const most = 110 // sizeof(struct sockaddr_un)
	b := make([]byte, min(c.args[2], most))
	if n, err := m.ReadMemory(evidence.Addr(c.args[1]), b); err != nil || n != len(b) {
		return
	}
	if text := socketAddress(b); text != "" {
		c.words = fmt.Sprintf("%s(%d, %s)", c.words[:strings.IndexByte(c.words, '(')], int32(c.args[0]), text)
	}
}

// socketAddress is a struct sockaddr in words: 127.0.0.1:80, [::1]:80 or a quoted path;
// empty for other families (ip(7), ipv6(7), unix(7)).
func socketAddress(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	switch family := binary.LittleEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])).String()
	case family == unix.AF_INET6 && len(b) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), binary.BigEndian.Uint16(b[2:])).String()
	case family == unix.AF_UNIX && len(b) > 2:
		path, _, _ := bytes.Cut(b[2:], []byte{0})
		if b[2] == 0 { // an abstract name
			return fmt.Sprintf("%q", "@"+string(b[3:]))
		}
		return fmt.Sprintf("%q", path)
	}
	return ""
}
