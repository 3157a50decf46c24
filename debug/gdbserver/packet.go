package gdbserver

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// mostPacket bounds the bytes of a packet in both directions.
const mostPacket = 0x4000

// interruptByte is what gdb sends for Ctrl-C.
const interruptByte = 0x03

// errPacket says that a packet is damaged or too long.
var errPacket = errors.New("gdbserver: a packet is damaged")

// input is a packet, or an interruption.
type input struct {
	data      []byte
	interrupt bool
}

// readInput reads the next packet or interruption. Acknowledgements are skipped. The error wraps errPacket if the peer
// may send the packet again.
func readInput(r *bufio.Reader) (input, error) {
	for {
		c, err := r.ReadByte()
		switch {
		case err != nil:
			return input{}, err
		case c == interruptByte:
			return input{interrupt: true}, nil
		case c == '$':
			data, err := readPacket(r)
			return input{data: data}, err
		}
	}
}

// readPacket reads a packet after its '$'.
func readPacket(r *bufio.Reader) ([]byte, error) {
	var data []byte
	sum := byte(0)
	escaped := false
	for {
		c, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		if c == '#' {
			break
		}
		sum += c
		if c == '}' && !escaped {
			escaped = true
			continue
		}
		if escaped {
			c ^= 0x20
			escaped = false
		}
		if len(data) == mostPacket {
			return nil, fmt.Errorf("gdbserver: a packet has more than %d bytes", mostPacket)
		}
		data = append(data, c)
	}
	var digits [2]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return nil, err
	}
	want, err := hex.DecodeString(string(digits[:]))
	if err != nil || want[0] != sum {
		return nil, errPacket
	}
	return data, nil
}

// writePacket writes a packet.
func writePacket(w io.Writer, data []byte) error {
	out := make([]byte, 0, len(data)+4)
	out = append(out, '$')
	sum := byte(0)
	for _, c := range data {
		if c == '$' || c == '#' || c == '}' || c == '*' {
			out = append(out, '}', c^0x20)
			sum += '}' + c ^ 0x20
			continue
		}
		out = append(out, c)
		sum += c
	}
	out = append(out, '#')
	out = hex.AppendEncode(out, []byte{sum})
	_, err := w.Write(out)
	return err
}
