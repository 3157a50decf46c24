package stackjudge

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// givenText is an argument of the program or a variable of its environment, where the kernel put it.
type givenText struct {
	place      evidence.CopyPlace
	name       string
	start, end evidence.Addr
}

// mostGiven bounds the arguments and the variables of the environment.
const mostGiven = 1024

// given lists the program's arguments and environment. The kernel puts the pointers to the arguments, with their
// count before them, just below those to the environment (psABI, figure 3.9).
func (j *judge) given() (list []givenText) {
	s, ok := j.Process.SymbolNamed("__environ")
	if !ok {
		return nil
	}
	environ, err := image.Uint64(j.Process, s.Addr)
	if err != nil || environ == 0 || environ%8 != 0 {
		return nil
	}
	at := evidence.Addr(environ)
	for n := range mostGiven {
		count, err := image.Uint64(j.Process, at-evidence.Addr(8*(n+2)))
		if err != nil {
			return nil
		}
		if count != uint64(n) {
			continue
		}
		for i := range n {
			list = j.addGiven(list, at-evidence.Addr(8*(n+1-i)), evidence.CopyArgument, fmt.Sprintf("argv[%d]", i))
		}
		break
	}
	for i := range mostGiven {
		before := len(list)
		if list = j.addGiven(list, at+evidence.Addr(8*i), evidence.CopyEnvironment, ""); len(list) == before {
			break
		}
	}
	return list
}

// addGiven adds the text that a pointer leads to; nothing where there is none.
func (j *judge) addGiven(list []givenText, pointer evidence.Addr, place evidence.CopyPlace, name string) []givenText {
	const longest = 128 << 10
	v, err := image.Uint64(j.Process, pointer)
	if err != nil || v == 0 {
		return list
	}
	text, _, err := image.CString(j.Process, evidence.Addr(v), longest)
	if err != nil {
		return list
	}
	if place == evidence.CopyEnvironment {
		name, _, _ = strings.Cut(text, "=")
	}
	return append(list, givenText{place, name, evidence.Addr(v), evidence.Addr(v) + evidence.Addr(len(text)) + 1})
}
