package failure

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

func rustPanicking(names []string) bool {
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, "std::panicking::")
		// std runs main, and every thread, inside the functions that catch panics.
		if ok && !hasPrefix([]string{rest}, "catch_unwind", "try") {
			return true
		}
	}
	return hasPrefix(names, "core::panicking::") ||
		has(names, "rust_begin_unwind", "__rustc::rust_begin_unwind", "rust_panic", "__rust_start_panic")
}

// rustPanic reads the message of a panic from the frames of std's panic
// handler.
func (j *judge) rustPanic(f *evidence.Failure) {
	f.Kind = evidence.RustPanic
	e := &evidence.Exception{Proof: evidence.Inferred}
	f.Exception = e
	i, ok := j.stack.panicHandler()
	if !ok {
		e.WhatUnavailable = evidence.Say("the frame that holds the panic's message is not on the stack")
		return
	}
	reader := panicReader{j.process}
	words := reader.frameWords(&j.stack.frames[i])
	if e.What, ok = reader.rustText(words); !ok {
		e.WhatUnavailable = evidence.Say("the panic's message is not in the frame where std keeps it")
	}
	frames := j.stack.frames
	for at := i; at < min(i+4, len(frames)); at++ {
		if where, ok := reader.rustLocation(reader.frameWords(&frames[at])); ok {
			f.Message = evidence.Say("panicked at " + where)
			return
		}
	}
}

// panicHandler finds the closure in std's panic handler that keeps the
// payload (library/std/src/panicking.rs, begin_panic_handler, since 1.93
// panic_handler).
func (k *callStack) panicHandler() (int, bool) {
	for i := range min(len(k.frames), siteFrames) {
		for _, call := range k.frames[i].Calls {
			name := image.CanonicalName(call.Site.Function)
			if strings.HasPrefix(name, "std::panicking::") && strings.Contains(name, "panic_handler::{") {
				return i, true
			}
		}
	}
	return 0, false
}

// panicReader reads the values that std's panic handler keeps in its frames.
type panicReader struct {
	*process
}

// maxFrameWords bounds a frame that is searched.
const maxFrameWords = 128

// frameWords reads a frame from its stack pointer to its CFA.
func (r *panicReader) frameWords(fr *unwind.Frame) []uint64 {
	sp := fr.Registers.SP()
	if sp == 0 || fr.CFA <= sp {
		return nil
	}
	b := make([]byte, 8*min(uint64(fr.CFA-sp)/8, maxFrameWords))
	n, _ := r.ReadMemory(sp, b)
	words := make([]uint64, n/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words
}

// rustText finds a String (capacity, pointer, length), which holds a message
// that was formatted, or else a &str (pointer, length) of constant text. The
// order of String's fields is the compiler's choice, unchanged since 2022.
func (r *panicReader) rustText(words []uint64) (string, bool) {
	for i := 0; i+2 < len(words); i++ {
		capacity, at, n := words[i], evidence.Addr(words[i+1]), words[i+2]
		if m := r.MappingAt(at); n == 0 || n > capacity || capacity > maxMessage || m == nil || !m.Writable() {
			continue
		}
		if text, ok := r.printable(at, n); ok {
			return text, true
		}
	}
	for i := 0; i+1 < len(words); i++ {
		at, n := evidence.Addr(words[i]), words[i+1]
		if m := r.MappingAt(at); n == 0 || n > maxMessage || m == nil || m.Writable() {
			continue
		}
		if text, ok := r.printable(at, n); ok {
			return text, true
		}
	}
	return "", false
}

// printable reads text and refuses text that a person would not write.
func (r *panicReader) printable(at evidence.Addr, n uint64) (string, bool) {
	text, err := readText(r, at, n)
	if err != nil {
		return "", false
	}
	odd := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }
	return text, !strings.ContainsFunc(text, odd)
}

// rustLocation finds a pointer to a core::panic::Location: file, line, column.
func (r *panicReader) rustLocation(words []uint64) (string, bool) {
	for _, w := range words {
		at := evidence.Addr(w)
		if m := r.MappingAt(at); m == nil || m.Executable() || at%8 != 0 {
			continue
		}
		file, err := readPointer(r, at)
		if err != nil {
			continue
		}
		n, err := image.Uint64(r, at+8)
		if err != nil || n < 4 || n > 4096 {
			continue
		}
		position, err := image.Uint64(r, at+16)
		line, column := uint32(position), uint32(position>>32)
		if err != nil || line == 0 || line > 1<<24 || column == 0 || column > 1<<16 {
			continue
		}
		if name, ok := r.printable(file, n); ok && strings.HasSuffix(strings.TrimRight(name, "\x00"), ".rs") {
			return fmt.Sprintf("%s:%d:%d", name, line, column), true
		}
	}
	return "", false
}
