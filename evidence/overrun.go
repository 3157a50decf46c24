package evidence

import "fmt"

// FrameWord is a kind of word that a compiler keeps in a frame, above the function's arrays.
type FrameWord string

// The words of a frame.
const (
	WordReturnAddress FrameWord = "return-address"
	WordSavedRegister FrameWord = "saved-register" // of the caller
	WordGuard         FrameWord = "stack-guard"
)

// RunKind says by what the bytes of an array and those after it are known to be one.
type RunKind string

// The kinds of runs.
const (
	RunText        RunKind = "text"
	RunPattern     RunKind = "pattern"     // the same one to sixteen bytes again and again
	RunProgression RunKind = "progression" // elements with the same difference
	RunNumbers     RunKind = "numbers"     // elements that are small numbers
	RunCopy        RunKind = "copy"        // the same bytes are elsewhere in memory
)

// FrameArray is an array in the frame of a function.
type FrameArray struct {
	// Name is the variable's with its members ("session.name"), Type is that of the array ("char [64]"), Function
	// the function that declares it: that of the frame, or one inlined there. File and Line are the declaration's.
	Name     string `json:"name"`
	Type     string `json:"type"`
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Addr     Addr   `json:"addr"`
	// Size is in bytes. Following counts the bytes after the end that continue its contents.
	Size      uint64 `json:"size"`
	Following uint64 `json:"following"`
}

// FrameWriter is a place in the code of a function that writes to one of its arrays, or that passes its address on.
type FrameWriter struct {
	// Call: it is a call that was passed an address in the array as its argument number Argument, from 0; otherwise a
	// store of the function's own, at an address with an index. Callee is the function called; empty: it is not known.
	Call     bool   `json:"call,omitempty"`
	Callee   string `json:"callee,omitempty"`
	Argument int    `json:"argument,omitempty"`
	// Writes: it is a store, or the function called is known to write there. Otherwise it may only read, or pass the
	// address on.
	Writes bool `json:"writes,omitempty"`
	Site   Site `json:"site"`
}

// CopyPlace says where else bytes are.
type CopyPlace string

// The places.
const (
	CopyArgument    CopyPlace = "argument"    // of the program
	CopyEnvironment CopyPlace = "environment" // of the program
	CopyVariable    CopyPlace = "variable"    // of a frame
	CopyGlobal      CopyPlace = "global"
	CopyConstant    CopyPlace = "constant"
	CopyHeap        CopyPlace = "heap"
	CopyStack       CopyPlace = "stack"
	CopyOther       CopyPlace = "other"
)

// SameBytes is memory with the same bytes as a run.
type SameBytes struct {
	Place CopyPlace `json:"place"`
	// Name is the variable, "argv[1]", or the variable of the environment; empty: it is not known.
	Name string `json:"name,omitempty"`
	Addr Addr   `json:"addr"`
	// Size counts the bytes at Addr that are the same as those at Offset in the run.
	Size   uint64 `json:"size"`
	Offset uint64 `json:"offset,omitempty"`
}

// StackOverrun is an array of a frame whose contents continue over a word that the compiler keeps there.
type StackOverrun struct {
	// Function is that of the frame.
	Function string `json:"function"`
	// Arrays has the array, or several of which each may be the one, the lowest first.
	Arrays []FrameArray `json:"arrays"`
	// Word was overwritten, at WordAddr. Register is that of a saved register.
	Word     FrameWord `json:"word"`
	WordAddr Addr      `json:"word_addr"`
	Register string    `json:"register,omitempty"`
	Run      RunKind   `json:"run"`
	// Start and End are the run's extent, Contents its first bytes. A text ends there; of other runs it may be that
	// more was written.
	Start    Addr  `json:"start"`
	End      Addr  `json:"end"`
	Contents Bytes `json:"contents"`
	// Writers are the places that may have written the run, as far as the code of the function tells. It may be
	// that another did. If there is one only, and it writes, it is likely.
	Writers []FrameWriter `json:"writers,omitempty"`
	// Same are other places with the same bytes: the run may be a copy of one of them, or it was copied there.
	Same  []SameBytes `json:"same,omitempty"`
	Proof Proof       `json:"proof"`
}

// check reports what makes the facts unusable.
func (o *StackOverrun) check() error {
	if len(o.Arrays) == 0 || o.Word == "" || o.Run == "" {
		return fmt.Errorf("an overrun in %s without an array, a word or a run", o.Function)
	}
	if o.Proof != Inferred {
		return fmt.Errorf("an overrun in %s has the proof level %q", o.Function, o.Proof)
	}
	for i := range o.Arrays {
		if a := &o.Arrays[i]; a.Following == 0 || a.Addr+Addr(a.Size) > o.WordAddr {
			return fmt.Errorf("the array %s is not below the word at %v, or nothing follows it", a.Name, o.WordAddr)
		}
	}
	return nil
}
