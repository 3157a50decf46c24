package delta

import "diagnose/evidence"

// Cells numbers the words of a run's variables: accesses to different words are
// independent.
type Cells struct {
	byOffset [][]int32 // of a small variable, by offset: the number + 1
	others   map[uint64]int32
	count    int32
}

// smallVariable bounds the size of a variable's table.
const smallVariable = 4096

// NewCells numbers the accessed words of a log, in the order of the accesses.
func NewCells(log *evidence.AccessLog) *Cells {
	return &Cells{byOffset: make([][]int32, len(log.Variables)), others: map[uint64]int32{}}
}

// Of returns the number of the accessed word; for a new word, the number of
// words before it.
func (c *Cells) Of(a *evidence.Access) int32 {
	if a.Offset >= smallVariable {
		key := uint64(a.Variable)<<32 | uint64(a.Offset)
		n, ok := c.others[key]
		if !ok {
			n = c.count
			c.count++
			c.others[key] = n
		}
		return n
	}
	table := c.byOffset[a.Variable]
	if int(a.Offset) >= len(table) {
		table = append(table, make([]int32, int(a.Offset)+1-len(table))...)
		c.byOffset[a.Variable] = table
	}
	if table[a.Offset] == 0 {
		c.count++
		table[a.Offset] = c.count
	}
	return table[a.Offset] - 1
}
