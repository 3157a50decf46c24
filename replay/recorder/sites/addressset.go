package sites

// addressSet is a set of addresses in [base, base+size). Other addresses are not added.
type addressSet struct {
	base, size uint64
	bits       []uint64
}

func newAddressSet(base, size uint64) *addressSet {
	return &addressSet{base, size, make([]uint64, (size+63)/64)}
}

func (s *addressSet) addAddress(at uint64) {
	if i := at - s.base; i < s.size {
		s.bits[i/64] |= 1 << (i % 64)
	}
}

func (s *addressSet) has(at uint64) bool {
	i := at - s.base
	return i < s.size && s.bits[i/64]&(1<<(i%64)) != 0
}

// addresses is the range [start, end).
type Addresses struct{ Start, End uint64 }
