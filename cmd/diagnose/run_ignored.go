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
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// The address of os.Args tells how far a position-independent executable was moved.
	const known = "os.Args"
	found, err := findSymbols(f, name, known)
	if err != nil {
		return 0, err
	}
	if found[name].Size != size || found[known].Value == 0 {
		return 0, fmt.Errorf("the executable has no %s of %d bytes", name, size)
	}
	moved := uint64(reflect.ValueOf(&os.Args).Pointer()) - found[known].Value
	return int64(found[name].Value + moved), nil
}

// findSymbols makes no strings of the other names: there are tens of thousands.
func findSymbols(f *elf.File, names ...string) (map[string]elf.Symbol, error) {
	table, texts := f.Section(".symtab"), f.Section(".strtab")
	if table == nil || texts == nil {
		return nil, errors.New("the executable was stripped")
	}
	symbols, err := table.Data()
	if err != nil {
		return nil, err
	}
	data, err := texts.Data()
	if err != nil {
		return nil, err
	}
	at := map[uint32]string{}
	for _, name := range names {
		if i := bytes.Index(data, []byte("\x00"+name+"\x00")); i >= 0 {
			at[uint32(i+1)] = name
		}
	}
	found := map[string]elf.Symbol{}
	for ; len(symbols) >= elf.Sym64Size; symbols = symbols[elf.Sym64Size:] {
		if name, ok := at[binary.LittleEndian.Uint32(symbols)]; ok {
			found[name] = elf.Symbol{Value: binary.LittleEndian.Uint64(symbols[8:]), Size: binary.LittleEndian.Uint64(symbols[16:])}
		}
	}
	return found, nil
}
