package agent_test

import "testing"

// TestFreshByte: memory that is handed out is filled, calloc's is 0, and what realloc keeps stays.
func TestFreshByte(t *testing.T) {
	const want = "aa aa aa aa 1 aa 2 aa 3 aa 0 0 0 1\n"
	for _, compiler := range []string{"gcc", "clang"} {
		library, program := supportAgent(t, compiler), supportBuild(t, compiler, "-O1", "support_fresh.c")
		got := supportStart(t, library, "fresh_byte=170", program)
		if got.check(t, 0); got.stdout != want {
			t.Errorf("%s: %s, want %s", compiler, got.stdout, want)
		}
	}
}
