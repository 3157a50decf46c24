package tracee

import (
	"bytes"
	"cmp"
	"slices"
)

// Replacement is text of the program that code of ours has replaced. Own and Code have one length.
type Replacement struct {
	Addr      uint64
	Own, Code []byte
}

// cover overwrites code of ours, in bytes that were read at an address, with the program's own. Other bytes there stay: the
// program may have unloaded the object and mapped something else, or the program's own bytes are back for a moment.
func (m *Memory) cover(p []byte, at uint64) {
	high := at + uint64(len(p))
	i, _ := slices.BinarySearchFunc(m.replaced, at, func(r Replacement, at uint64) int {
		return cmp.Compare(r.Addr+uint64(len(r.Code)), at+1)
	})
	for ; i < len(m.replaced) && m.replaced[i].Addr < high; i++ {
		r := &m.replaced[i]
		from, end := max(at, r.Addr), min(high, r.Addr+uint64(len(r.Code)))
		if from < end && bytes.Equal(p[from-at:end-at], r.Code[from-r.Addr:end-r.Addr]) {
			copy(p[from-at:end-at], r.Own[from-r.Addr:end-r.Addr])
		}
	}
}

// Replace overwrites the program's text.
func (m *Memory) Replace(at uint64, code []byte) error {
	own := make([]byte, len(code))
	if _, err := m.ReadAt(own, int64(at)); err != nil {
		return err
	}
	if _, err := m.WriteAt(code, int64(at)); err != nil {
		return err
	}
	r := Replacement{Addr: at, Own: own, Code: slices.Clone(code)}
	i, found := m.findReplaced(at)
	if !found {
		m.replaced = slices.Insert(m.replaced, i, r)
		return nil
	}
	if old := &m.replaced[i]; len(old.Code) > len(code) { // the old code continues after the new one
		r.Own, r.Code = append(r.Own, old.Own[len(code):]...), append(r.Code, old.Code[len(code):]...)
	}
	m.replaced[i] = r
	return nil
}

// Restore restores the bytes that Replace has overwritten at an address. Memory that does not have the code any more stays as it
// is: the object was unloaded, and another may be there.
func (m *Memory) Restore(at uint64) error {
	i, found := m.findReplaced(at)
	if !found {
		return nil
	}
	r := m.replaced[i]
	placed, err := m.has(at, r.Code)
	if err != nil {
		return err
	}
	if placed {
		if _, err := m.WriteAt(r.Own, int64(at)); err != nil {
			return err
		}
	}
	m.replaced = slices.Delete(m.replaced, i, i+1)
	return nil
}

// RestoreAll is Restore of all that Replace has overwritten.
func (m *Memory) RestoreAll() error {
	for len(m.replaced) > 0 {
		if err := m.Restore(m.replaced[0].Addr); err != nil {
			return err
		}
	}
	return nil
}

// Placed reports whether the code that Replace has put at an address is there.
func (m *Memory) Placed(at uint64) (bool, error) {
	i, found := m.findReplaced(at)
	if !found {
		return false, nil
	}
	return m.has(at, m.replaced[i].Code)
}

// Forget forgets what Replace has overwritten at an address, and writes nothing: the object was unloaded.
func (m *Memory) Forget(at uint64) (r Replacement, found bool) {
	i, found := m.findReplaced(at)
	if !found {
		return Replacement{}, false
	}
	r = m.replaced[i]
	m.replaced = slices.Delete(m.replaced, i, i+1)
	return r, true
}

// Renew puts the code that Replace has put at an address there again, if the program's own bytes are in its place: the object was
// loaded again. The caller knows that it is the same object.
func (m *Memory) Renew(at uint64) error {
	i, found := m.findReplaced(at)
	if !found {
		return nil
	}
	own, err := m.has(at, m.replaced[i].Own)
	if err != nil || !own {
		return err
	}
	_, err = m.WriteAt(m.replaced[i].Code, int64(at))
	return err
}

// Original reports whether the program's own bytes of a replacement that was forgotten are in memory.
func (m *Memory) Original(r Replacement) (bool, error) { return m.has(r.Addr, r.Own) }

// has reports whether memory has these bytes at an address, but for traps of breakpoints. Memory that is not mapped has none.
func (m *Memory) has(at uint64, want []byte) (bool, error) {
	have := make([]byte, len(want))
	if _, err := m.ReadPlaced(have, int64(at)); err != nil {
		if m.Mapped(at) {
			return false, err
		}
		return false, nil
	}
	return bytes.Equal(have, want), nil
}

func (m *Memory) findReplaced(at uint64) (int, bool) {
	return slices.BinarySearchFunc(m.replaced, at, func(r Replacement, at uint64) int { return cmp.Compare(r.Addr, at) })
}
