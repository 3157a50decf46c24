package translate

import (
	"encoding/binary"
	"fmt"

	"diagnose/image/x86"
)

// decoder makes the instructions of a log, from the registers at its start on.
type decoder struct {
	state [16]uint64
	each  func(*Step)
	most  uint64
	// skip is how many of the first instructions count as reported, but are not passed to each.
	skip uint64
	// first: the next instruction is the one at which the run began.
	first              bool
	executed, reported uint64
	step               Step
}

// all decodes complete records.
func (d *decoder) all(blocks []*block, data []byte) error {
	for len(data) > 0 {
		if len(data) < wordSize {
			return fmt.Errorf("replay: %d bytes at the end of a log", len(data))
		}
		id := binary.LittleEndian.Uint64(data)
		if id >= uint64(len(blocks)) || blocks[id].size > len(data) {
			return fmt.Errorf("replay: a log has block %d of %d", id, len(blocks))
		}
		b := blocks[id]
		if n := uint64(len(b.code)); !d.first && !b.repeats && d.reported+n <= min(d.skip, d.most) {
			d.pass(b, data)
		} else {
			for k := range b.code {
				d.one(&b.code[k], data)
			}
		}
		data = data[b.size:]
	}
	return nil
}

// pass skips the instructions of a complete record, none of which repeats.
func (d *decoder) pass(b *block, record []byte) {
	n := uint64(len(b.code))
	d.executed, d.reported = d.executed+n, d.reported+n
	for _, w := range b.last {
		d.state[w.reg] = binary.LittleEndian.Uint64(record[w.at:])
	}
	last := b.code[n-1].inst
	d.jumped(last)
	d.step.Inst = last
}

// jumped does to the stack pointer what a call or a return does.
func (d *decoder) jumped(inst *x86.Inst) {
	switch inst.Flow {
	case x86.FlowCall:
		d.state[x86.RSP] -= wordSize
	case x86.FlowReturn:
		d.state[x86.RSP] += dropped(inst)
	}
}

// one decodes an instruction of a complete record.
func (d *decoder) one(i *instruction, record []byte) {
	if i.repeats {
		after := d.state
		for _, w := range i.writes {
			after[w.reg] = binary.LittleEndian.Uint64(record[w.at:])
		}
		d.repeat(i, max(d.state[x86.RCX]-after[x86.RCX], 1), &after)
		d.state = after
		return
	}
	d.report(i, i.condition != 0 && record[i.condition] != 0)
	for _, w := range i.writes {
		d.state[w.reg] = binary.LittleEndian.Uint64(record[w.at:])
	}
	d.jumped(i.inst)
}

// partly decodes the first n instructions of a block whose record ends early. after are the registers where the thread
// stopped.
func (d *decoder) partly(b *block, n int, record []byte, after [16]uint64) {
	for k := range n {
		i := &b.code[k]
		if k < n-1 {
			d.one(i, record)
			continue
		}
		// What the record does not have is still in the registers.
		last := make([]byte, b.size)
		copy(last, record)
		for _, w := range i.writes {
			binary.LittleEndian.PutUint64(last[w.at:], after[w.reg])
		}
		d.one(i, last)
	}
	if n < len(b.code) && b.code[n].repeats { // it failed after some repetitions
		i := &b.code[n]
		if times := d.state[x86.RCX] - after[x86.RCX]; times > 0 {
			d.repeat(i, times, &after)
		}
		for _, w := range i.writes {
			d.state[w.reg] = after[w.reg]
		}
	}
}

// repeat reports the repetitions of a string instruction: each moves the pointers equally far.
func (d *decoder) repeat(i *instruction, times uint64, after *[16]uint64) {
	before := d.state
	for n := range times {
		for _, r := range [...]x86.Reg{x86.RSI, x86.RDI} {
			d.state[r] = before[r] + uint64(int64(after[r]-before[r])/int64(times)*int64(n))
		}
		d.state[x86.RCX] = before[x86.RCX] - n
		d.report(i, false)
	}
}

// report reports an instruction, before it is executed.
func (d *decoder) report(i *instruction, holds bool) {
	d.executed++
	d.step.Inst = i.inst
	if d.first {
		d.first = false
		return
	}
	if d.reported >= d.most {
		return
	}
	if d.reported++; d.reported <= d.skip {
		return
	}
	d.step.General, d.step.Holds = d.state, holds
	d.each(&d.step)
}
