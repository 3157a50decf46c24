package flow

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// The recording library has functions of the C library in its own place, and the trace does not have what those execute. So it has to be
// known here which memory they write.

// wrapped is the memory that a function writes, as its arguments tell.
type wrapped struct {
	// to is the argument with its address, size the bytes, or if it is 0 the product of the arguments in sizes.
	to, size int
	sizes    []int
	// kind is Input, or Unknown where the extent is a guess that is rather too large.
	kind Kind
}

// wrappedFunctions are the functions that write memory of the program. Those of the heap are in heap.note.
var wrappedFunctions = map[string][]wrapped{
	"fread": {{to: 0, sizes: []int{1, 2}, kind: Input}}, "__fread_chk": {{to: 0, sizes: []int{2, 3}, kind: Input}},
	"fgets": {{to: 0, sizes: []int{1}, kind: Input}}, "__fgets_chk": {{to: 0, sizes: []int{2}, kind: Input}},
	"getline": {{to: 0, size: 8}, {to: 1, size: 8}}, "getdelim": {{to: 0, size: 8}, {to: 1, size: 8}}, "__getdelim": {{to: 0, size: 8}, {to: 1, size: 8}},
	"strftime": {{to: 0, sizes: []int{1}}}, "strftime_l": {{to: 0, sizes: []int{1}}}, "ctime_r": {{to: 1, size: 26}},
	"gmtime_r": {{to: 1, size: timeSize}}, "localtime_r": {{to: 1, size: timeSize}}, "mktime": {{to: 0, size: timeSize}}, "timegm": {{to: 0, size: timeSize}},
	"pthread_create": {{to: 0, size: 8}}, "pthread_join": {{to: 1, size: 8}}, "thrd_create": {{to: 0, size: 8}}, "thrd_join": {{to: 1, size: 4}},
}

const (
	timeSize = 56  // bytes of struct tm (glibc, time/bits/types/struct_tm.h)
	guessed  = 256 // bytes that a function may write which is not in the table
	lowest   = 0x10000
)

// writers are parts of the names of functions that write to memory whose addresses they are handed.
var writers = []string{"scanf", "fgetws", "fgetpos", "getaddrinfo", "getnameinfo", "gethostby", "getpw", "getgr", "random_device", "wcsftime"}

// noteWrapped notes what a function wrote that the recording library has in the C library's place.
func (t *Trace) noteWrapped(n int) {
	s := t.steps.at(n)
	name := t.calls[s.called]
	if s.called == 0 || s.previous < 0 || name == "" {
		return
	}
	a := &t.steps.at(int(s.previous)).general
	for _, w := range wrappedFunctions[name] {
		size := uint64(w.size)
		if size == 0 {
			size = 1
			for _, k := range w.sizes {
				size *= a[x86.ArgumentRegisters[k]]
			}
		}
		if to := a[x86.ArgumentRegisters[w.to]]; to >= lowest && size < 1<<47 {
			t.setRange(n, evidence.Addr(to), size, w.kind, name, 0)
		}
	}
	for _, part := range writers {
		if !strings.Contains(name, part) {
			continue
		}
		for _, r := range x86.ArgumentRegisters {
			if a[r] >= lowest && a[r] < 1<<47 {
				t.setRange(n, evidence.Addr(a[r]), guessed, Unknown, name, 0)
			}
		}
	}
}
