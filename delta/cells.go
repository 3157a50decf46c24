package delta

import "diagnose/evidence"

// Cells numbers the words of a run's variables: accesses to different words
// have nothing to do with each other.
type Cells struct {
	byOffset [][]int32 // of a small variable, by offset: the number + 1
	others   map[uint64]int32
	count    int32
}

// smallVariable bounds what the table of a variable costs.
const smallVariable = 4096

// NewCells numbers the words of a log that are accessed, as they come.
func NewCells(log *evidence.AccessLog) *Cells {
	return &Cells{byOffset: make([][]int32, len(log.Variables)), others: map[uint64]int32{}}
}

// Of is the number of the word that an access is to; of a new word, how many
// there were before.
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
