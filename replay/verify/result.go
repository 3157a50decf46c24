package verify

import (
	"fmt"

	"diagnose/evidence"
)

// Comparison is the comparison of a replay's end with the recorded one.
type Comparison struct {
	// Differences are the first of each kind; Ranges, Bytes, Registers and Mappings count all of
	// them.
	Differences []Difference
	Ranges      uint64 // of memory, and the bytes in them that differ
	Bytes       uint64
	Registers   int
	Mappings    int
	// Compared is the number of bytes of memory compared, Threads that of threads.
	Compared uint64
	Threads  int
	Excluded []Exclusion
}

// Identical reports whether nothing differs.
func (c *Comparison) Identical() bool {
	return c.Ranges == 0 && c.Registers == 0 && c.Mappings == 0
}

// DifferenceKind is the kind of a Difference.
type DifferenceKind string

// The kinds of difference.
const (
	DifferentMemory   DifferenceKind = "memory"
	DifferentRegister DifferenceKind = "register"
	DifferentMapping  DifferenceKind = "mapping"
	DifferentThread   DifferenceKind = "thread"
)

// Difference is one difference between the recording and the replay.
type Difference struct {
	Kind DifferenceKind
	// Addr and Size are of memory; Where describes the place.
	Addr  evidence.Addr
	Size  uint64
	Where string
	// Thread and Register are of a register.
	Thread   uint32
	Register string
	// Want is the recording's value, Have the replay's: the first bytes in hexadecimal, a
	// register's value, or words.
	Want, Have string
	// Order is, of memory and registers, how the replay's value compares with the recording's as an
	// unsigned number whose lowest byte is first: -1, 0 or 1; 0 where either cannot be read.
	Order int
	// Apart is how far the two are from each other, as the same numbers of at most eight bytes.
	Apart uint64
	// Recorded is the recording's value of a general register.
	Recorded uint64
}

func (d *Difference) String() string {
	switch d.Kind {
	case DifferentMemory:
		return fmt.Sprintf("%v, %d bytes, %s: recorded %s, replayed %s", d.Addr, d.Size, d.Where, d.Want, d.Have)
	case DifferentRegister:
		return fmt.Sprintf("thread %d, %s: recorded %s, replayed %s", d.Thread, d.Register, d.Want, d.Have)
	}
	return fmt.Sprintf("%s: recorded %s, replayed %s", d.Where, d.Want, d.Have)
}

// Exclusion is memory that does not count for Identical.
type Exclusion struct {
	What, Why string
	Bytes     uint64
	// Different is how many of its bytes differ, if they were compared.
	Different uint64
}
