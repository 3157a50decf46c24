package sites

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/internal/privatefile"
)

// MostLearned bounds the learned sites of an object: each makes its instruction slower.
const MostLearned = 64

// learnedVersion changes with the encoding of learned sites.
const learnedVersion = 1

var (
	errNoCache   = errors.New("there is no cache directory that is this user's alone")
	errNoBuildID = errors.New("the object has no build-id")
)

// Learn keeps link-time addresses of accesses in an object, which the next recordings with the order of atomic
// instructions order as well. It returns those that were not known. Of more than MostLearned the earliest learned ones
// stay.
//
// The object is known by its build-id alone, which any file can have: FindAtomics orders only accesses of the
// recorded file, and to order one more is never wrong.
func Learn(buildID string, at []uint64) (added []uint64, err error) {
	return knownSites.learn(buildID, at)
}

func (c *siteCache) learn(buildID string, at []uint64) (added []uint64, err error) {
	dir := c.dir()
	switch {
	case buildID == "":
		return nil, errNoBuildID
	case dir == "":
		return nil, errNoCache
	}
	list := c.learned(buildID)
	for _, a := range at {
		if len(list) < MostLearned && !slices.Contains(list, a) {
			list = append(list, a)
			added = append(added, a)
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	slices.Sort(list)
	return added, privatefile.Write(filepath.Join(dir, learnedName(buildID)), encodeLearned(list))
}

// Learned returns the learned sites of an object, in ascending order.
func Learned(buildID string) []uint64 { return knownSites.learned(buildID) }

func (c *siteCache) learned(buildID string) []uint64 {
	if buildID == "" {
		return nil
	}
	list, err := decodeLearned(c.readFile(learnedName(buildID), largestLearned))
	if err != nil {
		return nil
	}
	return list
}

func learnedName(buildID string) string {
	sum := sha256.Sum256([]byte(buildID))
	return fmt.Sprintf("learned-%s.%d", hex.EncodeToString(sum[:]), learnedVersion)
}

const largestLearned = MostLearned*8 + sha256.Size

// encodeLearned encodes addresses, 8 bytes each, little-endian, with a digest at the end.
func encodeLearned(list []uint64) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, list) // fixed sizes: it cannot fail
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decodeLearned fails unless the addresses are in ascending order and no more than MostLearned.
func decodeLearned(b []byte) ([]uint64, error) {
	size := len(b) - sha256.Size
	if size < 0 || size%8 != 0 || size > MostLearned*8 {
		return nil, errDamaged
	}
	if sum := sha256.Sum256(b[:size]); !bytes.Equal(sum[:], b[size:]) {
		return nil, errDamaged
	}
	list := make([]uint64, size/8)
	if _, err := binary.Decode(b[:size], binary.LittleEndian, list); err != nil {
		return nil, errDamaged
	}
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return nil, errDamaged
		}
	}
	return list, nil
}

func addressesOf(list []uint64) (addresses []evidence.Addr) {
	for _, a := range list {
		addresses = append(addresses, evidence.Addr(a))
	}
	return addresses
}

// CanOrder reports whether an access can be ordered as a learned site: a plain instruction with one operand in
// memory whose address lea computes.
func CanOrder(inst *x86.Inst) bool {
	if inst.Flow != x86.FlowNext || IsAtomic(inst) {
		return false
	}
	count := 0
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		m := &o.Memory
		if o.Implicit || o.Repeated || o.Size == 0 || m.Segment != x86.SegNone || m.Addr32 || m.Inexact || m.Index == x86.RegVector {
			return false
		}
		count++
	}
	return count == 1
}

// addLearned adds the learned sites of the segment that are accesses.
func (s *atomicSearch) addLearned() {
	for _, pc := range s.learned {
		at := int(pc - s.base)
		if !s.starts.has(pc) {
			continue
		}
		if s.gaps {
			if begins, sure := s.instructionAt(at); !begins || !sure {
				continue
			}
		}
		if inst, err := x86.Decode(s.code[at:], pc); err != nil || !CanOrder(&inst) {
			continue
		}
		s.atomics = append(s.atomics, atomicAt{at, s.instructionsBefore(at), isLearned})
	}
	slices.SortFunc(s.atomics, func(a, b atomicAt) int { return a.at - b.at })
}

// instructionsBefore returns the offsets of the nearest instructions before one, in ascending order. Without gaps these are all instructions.
func (s *atomicSearch) instructionsBefore(at int) (list []int) {
	const longest = 15
	for i := at - 1; i >= 0 && i >= at-neighbours*longest && len(list) < neighbours && !s.gaps; i-- {
		if s.starts.has(s.base + uint64(i)) {
			list = append(list, i)
		}
	}
	slices.Reverse(list)
	return list
}
