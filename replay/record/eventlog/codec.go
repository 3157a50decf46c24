package eventlog

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

var le = binary.LittleEndian

// DecodeEvent decodes an event as a log and a replay's image store it, and returns its length.
// It does not set Thread, Ordinal and Offset. The payloads refer to b.
func DecodeEvent(b []byte) (*Event, int, error) {
	if len(b) < eventHeaderSize {
		return nil, 0, fmt.Errorf("record: %d bytes are no event", len(b))
	}
	length := int(le.Uint32(b))
	if length < eventHeaderSize || length%8 != 0 || length > len(b) {
		return nil, 0, fmt.Errorf("record: event of %d bytes where there are %d", length, len(b))
	}
	e := new(Event)
	if err := e.decode(b[:length]); err != nil {
		return nil, 0, fmt.Errorf("record: %w", err)
	}
	return e, length, nil
}

// decode decodes an event that fills b. It does not set Thread, Ordinal and Offset.
func (e *Event) decode(b []byte) error {
	kind, args, payloads := Kind(b[4]), int(b[6]), int(b[7])
	if _, ok := kindNames[kind]; !ok {
		return fmt.Errorf("event of kind %d", kind)
	}
	rest := b[eventHeaderSize:]
	if len(rest) < 8*args {
		return fmt.Errorf("event of %d bytes has %d arguments", len(b), args)
	}
	e.Kind, e.Flags = kind, EventFlags(b[5])
	e.Ticket, e.Object, e.Site = le.Uint64(b[8:]), le.Uint64(b[16:]), evidence.Addr(le.Uint64(b[24:]))
	e.Result, e.Skipped = int64(le.Uint64(b[32:])), le.Uint64(b[40:])
	e.Args, e.Payloads = e.Args[:0], e.Payloads[:0]
	for i := range args {
		e.Args = append(e.Args, le.Uint64(rest[8*i:]))
	}
	rest = rest[8*args:]
	for i := range payloads {
		if len(rest) < payloadHeader {
			return fmt.Errorf("event of %d bytes has no room for payload %d of %d", len(b), i+1, payloads)
		}
		n := int64(le.Uint32(rest[8:]))
		if n > int64(len(rest)-payloadHeader) {
			return fmt.Errorf("payload %d of %d bytes in an event of %d", i+1, n, len(b))
		}
		p := Payload{Addr: evidence.Addr(le.Uint64(rest)), Kind: PayloadKind(le.Uint32(rest[12:])), Data: rest[payloadHeader : payloadHeader+n]}
		if _, ok := payloadNames[p.Kind]; !ok {
			return fmt.Errorf("payload %d has kind %d", i+1, p.Kind)
		}
		e.Payloads = append(e.Payloads, p)
		// The padding is within b: the length of b is a multiple of 8, and so is that of
		// everything before.
		rest = rest[payloadHeader+pad8(n):]
	}
	if len(rest) > 0 {
		return fmt.Errorf("event of %d bytes has %d too many", len(b), len(rest))
	}
	return nil
}

func pad8(n int64) int64 { return (n + 7) &^ 7 }

// Encode appends the event in the format of the log.
func (e *Event) Encode(b []byte) ([]byte, error) {
	if len(e.Args) > 255 || len(e.Payloads) > 255 {
		return nil, fmt.Errorf("record: event with %d arguments and %d payloads", len(e.Args), len(e.Payloads))
	}
	length := int64(eventHeaderSize + 8*len(e.Args))
	for _, p := range e.Payloads {
		length += payloadHeader + pad8(int64(len(p.Data)))
	}
	if length > 1<<32-8 {
		return nil, fmt.Errorf("record: event of %d bytes", length)
	}
	b = le.AppendUint32(b, uint32(length))
	b = append(b, byte(e.Kind), byte(e.Flags), byte(len(e.Args)), byte(len(e.Payloads)))
	for _, v := range []uint64{e.Ticket, e.Object, uint64(e.Site), uint64(e.Result), e.Skipped} {
		b = le.AppendUint64(b, v)
	}
	for _, v := range e.Args {
		b = le.AppendUint64(b, v)
	}
	for _, p := range e.Payloads {
		b = le.AppendUint64(b, uint64(p.Addr))
		b = le.AppendUint32(b, uint32(len(p.Data)))
		b = le.AppendUint32(b, uint32(p.Kind))
		b = append(b, p.Data...)
		b = append(b, make([]byte, pad8(int64(len(p.Data)))-int64(len(p.Data)))...)
	}
	return b, nil
}
