package wording

import "testing"

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Count(1, "thread"): "1 thread", Count(0, "thread"): "0 threads", Count(uint64(2), "access"): "2 accesses",
		Count(2, "pass"): "2 passes", Count(3, "entry"): "3 entries", Count(3, "replay"): "3 replays", Count(uint32(2), "box"): "2 boxes",
		Count(2, "failed system call"): "2 failed system calls",
		Times(1):                       "once", Times(uint64(0)): "0 times",
		Size(0): "0 B", Size(1023): "1023 B", Size(1536): "1.5 KiB", Size(200 << 20): "200 MiB", Size(1 << 62): "4194304 TiB",
		Signal(11): "SIGSEGV", Signal(6): "SIGABRT", Signal(40): "signal 40", Signal(0): "signal 0",
		Printable([]byte("a\x00\x1f ~\x7f\xff")): "a.. ~..",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[uint64]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st",
		101: "101st", 111: "111th", 112: "112th", 1002: "1002nd"} {
		if got := Ordinal(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
