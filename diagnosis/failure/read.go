package failure

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"diagnose/evidence"
	"diagnose/image"
)

func readPointer(m image.Memory, addr evidence.Addr) (evidence.Addr, error) {
	v, err := image.Uint64(m, addr)
	return evidence.Addr(v), err
}

// cString reads text that ends in NUL; a text that does not end within the
// limit, or ends where memory does, is cut and marked.
func cString(m image.Memory, addr evidence.Addr, limit int) (string, error) {
	text, whole, err := image.CString(m, addr, limit)
	if err != nil && text == "" {
		return "", err
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !whole {
		text += "..."
	}
	return text, nil
}

// readText reads exactly n bytes that must be UTF-8.
func readText(m image.Memory, addr evidence.Addr, n uint64) (string, error) {
	if n > maxMessage {
		return "", fmt.Errorf("text of %d bytes at %v is too long", n, addr)
	}
	b := make([]byte, n)
	if _, err := m.ReadMemory(addr, b); err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("the %d bytes at %v are no text", n, addr)
	}
	return string(b), nil
}
