package tracee

import (
	"cmp"
	"slices"
)

// Int3 is the instruction that traps, in one byte.
const Int3 = 0xcc

// coveredByte is a byte of the process's memory in whose place an int3 is.
type coveredByte struct {
	addr  uint64
	value byte
	// lifted: the byte itself is in memory for now.
	lifted bool
}

// findTrap returns the index of the trap at an address, or where it would be.
func (m *Memory) findTrap(addr uint64) (int, bool) {
	return slices.BinarySearchFunc(m.traps, addr, func(x coveredByte, addr uint64) int { return cmp.Compare(x.addr, addr) })
}

// trapsIn returns the traps at n bytes from an address on.
func (m *Memory) trapsIn(addr, n uint64) []coveredByte {
	low, _ := m.findTrap(addr)
	high, _ := m.findTrap(addr + n)
	return m.traps[low:high]
}

// ReadPlaced reads memory without the traps of breakpoints, but with the text that Replace has put
// there.
func (m *Memory) ReadPlaced(p []byte, at int64) (int, error) {
	n, err := m.Memory.ReadAt(p, at)
	for _, x := range m.trapsIn(uint64(at), uint64(n)) {
		p[x.addr-uint64(at)] = x.value
	}
	return n, err
}

// WriteAt writes len(p) bytes at an address, or fails. Traps there stay.
func (m *Memory) WriteAt(p []byte, at int64) (int, error) {
	covered := m.trapsIn(uint64(at), uint64(len(p)))
	if len(covered) == 0 {
		return m.Memory.WriteAt(p, at)
	}
	placed := slices.Clone(p)
	for i := range covered {
		if x := &covered[i]; !x.lifted {
			placed[x.addr-uint64(at)] = Int3
		}
	}
	n, err := m.Memory.WriteAt(placed, at)
	if err != nil {
		return n, err
	}
	for i := range covered {
		covered[i].value = p[covered[i].addr-uint64(at)]
	}
	return n, nil
}

// Mapped reports whether the process has memory at an address.
func (m *Memory) Mapped(addr uint64) bool {
	_, err := m.Memory.ReadAt(make([]byte, 1), int64(addr))
	return err == nil
}

// placeTrap puts an int3 at an address.
func (m *Memory) placeTrap(addr uint64) error {
	i, found := m.findTrap(addr)
	if found {
		return nil
	}
	var value [1]byte
	if _, err := m.Memory.ReadAt(value[:], int64(addr)); err != nil {
		return err
	}
	if _, err := m.Memory.WriteAt([]byte{Int3}, int64(addr)); err != nil {
		return err
	}
	m.traps = slices.Insert(m.traps, i, coveredByte{addr: addr, value: value[0]})
	return nil
}

// removeTrap removes the int3 at an address. Memory that is not mapped any more has none.
func (m *Memory) removeTrap(addr uint64) error {
	i, found := m.findTrap(addr)
	if !found {
		return nil
	}
	err := m.liftTrap(addr)
	m.traps = slices.Delete(m.traps, i, i+1)
	return err
}

// liftTrap puts the covered byte back until lowerTrap.
func (m *Memory) liftTrap(addr uint64) error { return m.swap(addr, true) }

func (m *Memory) lowerTrap(addr uint64) error { return m.swap(addr, false) }

// liftTraps lifts all traps.
func (m *Memory) liftTraps() error {
	m.allLifted = true
	for _, x := range m.traps {
		if err := m.liftTrap(x.addr); err != nil {
			return err
		}
	}
	return nil
}

// lowerTraps ends liftTraps.
func (m *Memory) lowerTraps() error {
	if !m.allLifted {
		return nil
	}
	m.allLifted = false
	for _, x := range m.traps {
		if err := m.lowerTrap(x.addr); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) swap(addr uint64, lifted bool) error {
	i, found := m.findTrap(addr)
	if !found || m.traps[i].lifted == lifted {
		return nil
	}
	x := &m.traps[i]
	value := byte(Int3)
	if lifted {
		value = x.value
	}
	x.lifted = lifted
	if _, err := m.Memory.WriteAt([]byte{value}, int64(addr)); err != nil && m.Mapped(addr) {
		return err
	}
	return nil
}

// Covered returns the bytes under the traps that are in memory, and the program's own bytes under what Replace has put there. The
// traps are above.
func (m *Memory) Covered() (traps, replaced []Words, err error) {
	for _, x := range m.traps {
		if !x.lifted && m.Mapped(x.addr) {
			traps = append(traps, Words{x.addr, []byte{x.value}})
		}
	}
	for _, r := range m.replaced {
		if placed, err := m.has(r.Addr, r.Code); err != nil {
			return nil, nil, err
		} else if placed {
			replaced = append(replaced, Words{r.Addr, r.Own})
		}
	}
	return traps, replaced, nil
}
