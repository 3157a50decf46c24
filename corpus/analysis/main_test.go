package analysis

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// The test binary is also the process whose memory is limited.
func TestMain(m *testing.M) {
	if what := os.Getenv("ANALYSIS_TEST_USE"); what != "" {
		os.Exit(useMemory(what))
	}
	os.Exit(m.Run())
}

// useMemory touches four gigabytes, if it can.
func useMemory(what string) int {
	var all [][]byte
	for range 4096 {
		if what != "eat" {
			break
		}
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, len(all))
	return 7
}
