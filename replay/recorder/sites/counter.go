package sites

import (
	"bytes"
	"slices"

	"diagnose/image/object"
)

// soughtBytes are the bytes of the instructions that are to call the engine.
var soughtBytes = [][]byte{syscallBytes, rdtsc, rdtscp}

// chanceBytes begin the instructions that return random numbers, and others (SDM volume 2,
// RDRAND and RDSEED).
var chanceBytes = []byte{0x0f, 0xc7}

// occurrences returns the offsets of all patterns, sorted.
func occurrences(code []byte, patterns [][]byte) []int {
	var found []int
	for _, p := range patterns {
		for at := 0; ; at++ {
			next := bytes.Index(code[at:], p)
			if next < 0 {
				break
			}
			at += next
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return found
}

// addCounters adds the reads of the time-stamp counter. Unlike a system call, no number
// confirms such a read. So where there is data among the code, a read inside a function is
// patched, and a possible read anywhere else makes all of them trap. That is expensive for a
// program that reads clocks, or has threads.
func (s *siteSearch) addCounters(found *ObjectSites) {
	for _, read := range s.counters {
		at := int(read.inst.PC - s.base)
		begins, sure := s.instructionAt(at)
		if s.gaps && (sure && !begins || !sure && s.refuted(at)) {
			continue
		}
		site := s.site(read)
		if site.Kind == SiteTrap || s.gaps && !sure {
			site = counterTrap(read.inst.PC)
		} else {
			site.Kind = SiteCounter
		}
		found.Sites = append(found.Sites, site)
	}
	for _, at := range occurrences(s.code, [][]byte{rdtsc, rdtscp}) {
		address := s.base + uint64(at)
		if s.decoded[address] {
			continue
		}
		begins, sure := s.instructionAt(at)
		if begins || !sure && !s.refuted(at) {
			found.Sites = append(found.Sites, counterTrap(address))
		}
	}
}

func counterTrap(at uint64) Site {
	size := uint32(len(rdtsc))
	return Site{At: at, Length: size, Kind: SiteCounterTrap, Resume: at + uint64(size)}
}

// keepApart turns counter sites that share bytes with another site into traps, and keeps only
// one of the traps.
func (o *ObjectSites) keepApart() {
	var kept []Site
	trap := Site{}
	for i, s := range o.Sites {
		isCounter := s.Kind == SiteCounter
		if isCounter && (i > 0 && overlap(&o.Sites[i-1], &s) || i+1 < len(o.Sites) && overlap(&s, &o.Sites[i+1])) {
			s = counterTrap(s.Resume - uint64(s.Length-s.Before-s.After))
		}
		if s.Kind != SiteCounterTrap {
			kept = append(kept, s)
		} else if trap.Kind == 0 {
			trap = s
		}
	}
	if trap.Kind != 0 {
		i, _ := slices.BinarySearchFunc(kept, trap.At, func(s Site, at uint64) int {
			if s.At < at {
				return -1
			}
			return 1
		})
		kept = slices.Insert(kept, i, trap)
	}
	o.Sites = kept
}

func overlap(a, b *Site) bool {
	return a.Kind != SiteCounterTrap && b.Kind != SiteCounterTrap && b.At < a.At+uint64(a.Length)
}

// fits reports whether the bytes at a site match its kind. read reads bytes at link-time
// addresses.
func (s *Site) fits(read func(p []byte, at uint64) error) bool {
	if s.Kind == SiteCounterTrap {
		return s.Length == uint32(len(rdtsc)) && s.Before == 0 && s.After == 0
	}
	own := uint64(s.Length) - uint64(s.Before) - uint64(s.After)
	if s.Length > 64 || s.Before > s.Length || s.After > s.Length || own < 2 || own > 3 || s.Resume != s.At+uint64(s.Before)+own {
		return false
	}
	b := make([]byte, own)
	if err := read(b, s.Resume-own); err != nil {
		return false
	}
	if s.Kind == SiteCounter {
		return bytes.Equal(b, rdtsc) || bytes.Equal(b, rdtscp)
	}
	return s.Kind >= SiteJump && s.Kind <= SiteClone && bytes.Equal(b, syscallBytes)
}

// readObject returns a function for Site.fits.
func readObject(f *object.File) func(p []byte, at uint64) error {
	return func(p []byte, at uint64) error {
		_, err := f.ReadAddr(p, at)
		return err
	}
}
