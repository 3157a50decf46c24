package gocore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// runtimeType is the part of abi.Type that is read.
type runtimeType struct {
	name string
	kind byte // abi.Kind
	size uint64
}

// Kinds of types (internal/abi/type.go).
const (
	kindBool, kindInt, kindInt64      = 1, 2, 6
	kindUint, kindUintptr             = 7, 12
	kindFloat32, kindFloat64          = 13, 14
	kindString, kindMask              = 24, 31
	flagExtraStar                byte = 2 // the name begins with a star that is not part of it
	typeNameOffset, typeHeader        = 40, 48
	mostText                          = 4096
)

// typeAt reads the description of a type.
func (s *stripped) typeAt(addr evidence.Addr) (runtimeType, error) {
	if !s.table.Module.Types.Contains(addr) {
		return runtimeType{}, fmt.Errorf("no type is at %v", addr)
	}
	var b [typeHeader]byte
	if _, err := s.memory.ReadMemory(addr, b[:]); err != nil {
		return runtimeType{}, err
	}
	t := runtimeType{kind: b[23] & kindMask, size: binary.LittleEndian.Uint64(b[:])}
	name, err := s.typeName(evidence.Addr(binary.LittleEndian.Uint32(b[typeNameOffset:])))
	if err == nil && b[20]&flagExtraStar != 0 {
		name = strings.TrimPrefix(name, "*")
	}
	t.name = name
	return t, err
}

// typeName reads an abi.Name: flags, the length as a varint, the text.
func (s *stripped) typeName(offset evidence.Addr) (string, error) {
	at := s.table.Module.Types.Start + offset
	if !s.table.Module.Types.Contains(at) {
		return "", fmt.Errorf("no name is at %v", at)
	}
	var head [4]byte
	if _, err := s.memory.ReadMemory(at, head[:]); err != nil {
		return "", err
	}
	size, n := binary.Uvarint(head[1:])
	if n <= 0 || size > mostText {
		return "", fmt.Errorf("the name at %v has no sensible length", at)
	}
	return s.bytesAt(at+1+evidence.Addr(n), size)
}

func (s *stripped) bytesAt(addr evidence.Addr, size uint64) (string, error) {
	text := make([]byte, min(size, mostText))
	if _, err := s.memory.ReadMemory(addr, text); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// shown is the value of a scalar or a string at addr.
func (s *stripped) shown(t runtimeType, addr evidence.Addr) (string, error) {
	if t.kind == kindString {
		start, err := image.Uint64(s.memory, addr)
		if err != nil {
			return "", err
		}
		size, err := image.Uint64(s.memory, addr+8)
		if err != nil {
			return "", err
		}
		return s.bytesAt(evidence.Addr(start), size)
	}
	if t.kind == 0 || t.kind > kindFloat64 || t.size == 0 || t.size > 8 {
		return "", errors.New("without debug information only numbers and strings can be shown")
	}
	var b [8]byte
	if _, err := s.memory.ReadMemory(addr, b[:t.size]); err != nil {
		return "", err
	}
	v := binary.LittleEndian.Uint64(b[:])
	switch shift := 64 - 8*t.size; {
	case t.kind == kindBool:
		return strconv.FormatBool(v != 0), nil
	case t.kind >= kindInt && t.kind <= kindInt64:
		return strconv.FormatInt(int64(v<<shift)>>shift, 10), nil
	case t.kind >= kindUint && t.kind <= kindUintptr:
		return strconv.FormatUint(v, 10), nil
	case t.kind == kindFloat32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v))), 'g', -1, 32), nil
	}
	return strconv.FormatFloat(math.Float64frombits(v), 'g', -1, 64), nil
}
