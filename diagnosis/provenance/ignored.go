package provenance

import (
	"strings"

	"diagnose/flow"
	"diagnose/image/x86/transfer"
)

// distance is how many bytes a part begins after the start of a location.
func distance(l, part flow.Location) int {
	if l.Space == transfer.Memory {
		return int(part.Addr - l.Addr)
	}
	return part.Off - l.Off
}

// part wants some of the bytes. Of more than eight bytes no single bits are known.
func (x wanted) part(l flow.Location) wanted {
	if first := distance(x.l, l); x.l.Size > 8 || first < 0 {
		x.ignored = 0
	} else {
		x.ignored = low64(x.ignored>>(8*first), l.Size)
	}
	x.l = l
	return x
}

// matters reports whether any of the bits do.
func (x wanted) matters() bool { return x.l.Size > 8 || x.ignored != low64(allBits, x.l.Size) }

// source wants the bytes, from, of which a step made those of x. Operations but masks and shifts leave open which bits matter, if they
// may depend on some only.
func (s *slice) source(x wanted, d flow.Definition, from flow.Location) wanted {
	y := wanted{l: from, n: d.At, masked: x.masked}
	if d.Kind == flow.Copied {
		if from.Size == x.l.Size {
			y.ignored = x.ignored
		}
		return y
	}
	inst := s.trace.Step(d.At).Inst
	if strings.HasPrefix(inst.Op, "set") {
		return y // its result has one bit
	}
	if counted, known := s.someBits(d, from, ^x.ignored); known && from.Size <= 8 {
		y.ignored = low64(^counted, from.Size)
	} else {
		y.masked = y.masked || x.ignored != 0 || masks(inst)
	}
	return y
}
