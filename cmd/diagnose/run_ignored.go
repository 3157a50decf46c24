package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"golang.org/x/sys/unix"
)

// keepIgnored keeps the signals ignored that were ignored when this process started, and returns
// them. nohup and background jobs of scripts rely on it. systemd starts its services with SIGPIPE
// ignored, so that a server that writes to a closed connection survives.
func keepIgnored() []os.Signal {
	list, err := ignoredAtStart()
	if err != nil {
		// The executable is stripped. The runtime leaves these two signals alone if they are
		// ignored; the state of the others is lost.
		for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
			if signal.Ignored(s) {
				list = append(list, s)
			}
		}
	}
	if len(list) > 0 {
		signal.Ignore(list...)
	}
	return list
}

// ignoredAtStart reads the actions that Go's runtime found before it installed its own handlers,
// from runtime.fwdSig (runtime/signal_unix.go). There is no other source: the runtime installs its
// handlers before any code of ours runs.
func ignoredAtStart() ([]os.Signal, error) {
	const count, ignored = 65, 1 // _NSIG, SIG_IGN
	at, err := runtimeAddress("runtime.fwdSig", 8*count)
	if err != nil {
		return nil, err
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	handlers := make([]byte, 8*count)
	if _, err := memory.ReadAt(handlers, at); err != nil {
		return nil, err
	}
	var list []os.Signal
	for n := 1; n < count; n++ {
		if binary.LittleEndian.Uint64(handlers[8*n:]) == ignored {
			list = append(list, syscall.Signal(n))
		}
	}
	return list, nil
}

// runtimeAddress returns the address of a variable of this process that Go code cannot name.
func runtimeAddress(name string, size uint64) (int64, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// The address of os.Args tells how far a position-independent executable was moved.
	const known = "os.Args"
	found, err := findVariables(f, map[string]uint64{name: size, known: uint64(reflect.TypeOf(os.Args).Size())})
	if err != nil {
		return 0, err
	}
	if len(found) != 2 {
		return 0, fmt.Errorf("the executable has no %s of %d bytes", name, size)
	}
	moved := uint64(reflect.ValueOf(&os.Args).Pointer()) - found[known]
	return int64(found[name] + moved), nil
}

// findVariables returns the addresses of an executable's variables, given their sizes in bytes.
// Each start of a program under diagnose waits for it, and the tables have megabytes: so they are
// mapped, not read, and the name is compared only where the size is right.
func findVariables(f *os.File, sizes map[string]uint64) (map[string]uint64, error) {
	executable, err := elf.NewFile(f)
	if err != nil {
		return nil, err
	}
	table, texts := executable.Section(".symtab"), executable.Section(".strtab")
	if table == nil || texts == nil {
		return nil, errors.New("the executable was stripped")
	}
	end := max(table.Offset+table.Size, texts.Offset+texts.Size)
	data, err := unix.Mmap(int(f.Fd()), 0, int(end), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(data)
	symbols, names := data[table.Offset:][:table.Size], data[texts.Offset:][:texts.Size]
	found := map[string]uint64{}
	for ; len(symbols) >= elf.Sym64Size && len(found) < len(sizes); symbols = symbols[elf.Sym64Size:] {
		if elf.ST_TYPE(symbols[4]) != elf.STT_OBJECT {
			continue
		}
		of := binary.LittleEndian.Uint64(symbols[16:])
		for name, size := range sizes {
			if of == size && bytes.HasPrefix(names[binary.LittleEndian.Uint32(symbols):], []byte(name+"\x00")) {
				found[name] = binary.LittleEndian.Uint64(symbols[8:])
			}
		}
	}
	return found, nil
}
