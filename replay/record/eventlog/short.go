package eventlog

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
)

// A short event (struct dg_short of agent/src/record.h) stores the differences from a full
// event before it in the same extent, its base.

const (
	shortHeader = 16
	// baseBytes is how many bytes of a base short events refer to.
	baseBytes = eventHeaderSize + 8*agent.ShortArgs + payloadHeader
)

// base returns the full event at an offset of the current extent, without its payload's bytes.
func (c *Cursor) base(offset int64) (*Event, error) {
	start := c.thread.extents[c.extent].offset
	if e := c.bases[offset]; e != nil {
		return e, nil
	}
	at := start + offset
	if offset < extentHeaderSize || at+eventHeaderSize > c.at {
		return nil, c.corrupt("a short event's base at %#x of the extent", offset)
	}
	var room [baseBytes]byte
	b := room[:min(baseBytes, c.at-at)]
	if _, err := c.log.file.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("record: %s: %w", c.log.name, err)
	}
	e := new(Event)
	if err := e.decodeBase(b); err != nil {
		return nil, c.corrupt("a short event's base at %#x of the extent: %v", offset, err)
	}
	if c.bases == nil {
		c.bases = map[int64]*Event{}
	}
	c.bases[offset] = e
	return e, nil
}

func (c *Cursor) corrupt(format string, args ...any) error {
	return &CorruptError{c.log.name, c.at, fmt.Sprintf(format, args...)}
}

// decodeBase decodes the part of a full event that short ones need.
func (e *Event) decodeBase(b []byte) error {
	length, args, payloads := le.Uint32(b), int(b[6]), int(b[7])
	need := eventHeaderSize + 8*args + payloadHeader*payloads
	if length%8 != 0 || args > agent.ShortArgs || payloads > 1 || int64(length) < int64(need) || need > len(b) {
		return fmt.Errorf("an event of %d bytes with %d arguments and %d payloads", length, args, payloads)
	}
	if payloads == 0 {
		return e.decode(b[:need])
	}
	// The payload is decoded as empty.
	b = slices.Clone(b[:need])
	le.PutUint32(b[need-payloadHeader+8:], 0)
	return e.decode(b)
}

// decodeShort changes e, the event before, to the event that b encodes. It returns an error if
// b is invalid.
func (e *Event) decodeShort(b []byte, base *Event) error {
	args, more, length := b[4], b[5], int64(le.Uint16(b[6:]))
	if int(args)>>len(base.Args) != 0 || more&^(agent.ShortObject|agent.ShortResult|agent.ShortSkipped) != 0 || length > agent.ShortBytes ||
		length > 0 && len(base.Payloads) == 0 {
		return fmt.Errorf("short event with arguments %#x, more %#x, %d bytes of payload", args, more, length)
	}
	if want := shortHeader + 8*int64(bits.OnesCount8(args)+bits.OnesCount8(more)) + pad8(length); want != int64(len(b)) {
		return fmt.Errorf("short event of %d bytes, not %d", len(b), want)
	}
	rest := b[shortHeader:]
	next := func() uint64 {
		v := le.Uint64(rest)
		rest = rest[8:]
		return v
	}
	e.Kind, e.Flags, e.Site, e.Object = base.Kind, base.Flags, base.Site, base.Object
	e.Ticket += uint64(le.Uint32(b[8:]))
	e.Result, e.Skipped = int64(int32(le.Uint32(b[12:]))), 0
	if more&agent.ShortObject != 0 {
		e.Object = next()
	}
	if more&agent.ShortResult != 0 {
		e.Result = int64(next())
	}
	if more&agent.ShortSkipped != 0 {
		e.Skipped = next()
	}
	e.Args, e.Payloads = append(e.Args[:0], base.Args...), e.Payloads[:0]
	for i := range base.Args {
		if args>>i&1 != 0 {
			e.Args[i] = next()
		}
	}
	if len(base.Payloads) > 0 {
		p := base.Payloads[0]
		if i := slices.Index(base.Args, uint64(p.Addr)); i >= 0 {
			p.Addr = evidence.Addr(e.Args[i])
		}
		p.Data = rest[:length:length]
		e.Payloads = append(e.Payloads, p)
	}
	return nil
}
