package staticscan

import (
	"encoding/hex"
	"testing"

	"diagnose/image/x86"
)

// BenchmarkFlow is the data flow over a function of 10,000 instructions that
// goes through the cases of flowTests again and again.
func BenchmarkFlow(b *testing.B) {
	var code []byte
	for n := 0; n < 10_000; {
		for _, test := range flowTests[:10] {
			part, err := hex.DecodeString(test.code)
			if err != nil {
				b.Fatal(err)
			}
			part = part[:len(part)-1] // without the return
			insts, _ := x86.Function(part, 0x1000)
			n += len(insts)
			code = append(code, part...)
		}
	}
	for b.Loop() {
		insts, _ := x86.Function(code, 0x1000)
		analyseCode(insts, 0x1000, fakeSurroundings())
	}
}
