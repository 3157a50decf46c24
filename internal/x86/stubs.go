package x86

type style struct{}

// Decode decodes the instruction at the start of code, which lies at pc.
// The error is a *DecodeError; the length in it is a best guess to go on at,
// never 0.
func Decode(code []byte, pc uint64) (Inst, error) { panic("stub") }

// DecodeError says that bytes are no instruction that is known.
type DecodeError struct {
	PC     uint64
	Bytes  []byte
	Reason string
	// Len is where to go on.
	Len int
}

func (e *DecodeError) Error() string { return "x86: stub" }

// Function decodes code from its entry to its end. Undecodable bytes are
// skipped and counted.
func Function(code []byte, pc uint64) (insts []Inst, undecodable int) { panic("stub") }

// Before returns the instruction that ends at pc, of the function whose code
// starts at entry: the one before a trapped pc.
func Before(code []byte, entry, pc uint64) (Inst, error) { panic("stub") }

// Text returns the instruction in Intel syntax, with jump targets as absolute
// addresses.
func (i *Inst) Text() string { panic("stub") }
