package evidence

import "fmt"

// PythonStack are the frames of Python code of threads, which the interpreter keeps in memory.
type PythonStack struct {
	// Threads have equal frames.
	Threads []ThreadRef `json:"threads"`
	// Frames are innermost first.
	Frames []PythonFrame `json:"frames"`
	// Stopped says why the frames further out are not known; empty: there are none.
	Stopped string `json:"stopped,omitempty"`
	Proof   Proof  `json:"proof"`
}

// PythonFrame is a call of a Python function.
type PythonFrame struct {
	// Function is the qualified name, with that of the class: "Reader.next".
	Function string `json:"function"`
	// File is as in the code object.
	File string `json:"file"`
	// Line is that of the instruction that was executed; 0: it has none.
	Line int `json:"line,omitempty"`
}

func (s *PythonStack) check() error {
	if len(s.Threads) == 0 || len(s.Frames) == 0 && s.Stopped == "" || !s.Proof.Valid() {
		return fmt.Errorf("a Python stack of %d threads and %d frames, proof %q", len(s.Threads), len(s.Frames), s.Proof)
	}
	return nil
}
