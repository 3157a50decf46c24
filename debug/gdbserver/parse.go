package gdbserver

import (
	"fmt"
	"strconv"
	"strings"
)

func parseHex(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("gdbserver: %.40q is no hexadecimal number", text)
	}
	return n, nil
}

// parsePair reads two numbers with a comma between them.
func parsePair(text string) (a, b uint64, err error) {
	x, y, _ := strings.Cut(text, ",")
	if a, err = parseHex(x); err != nil {
		return 0, 0, err
	}
	b, err = parseHex(y)
	return a, b, err
}

// parseThread reads a thread's number; 0: any, or all.
func parseThread(text string) (uint32, error) {
	if text == "-1" || text == "0" || text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("gdbserver: %.40q is no thread", text)
	}
	return uint32(n), nil
}
