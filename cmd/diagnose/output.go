package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// toStandardOutput reports whether the report needs no file of its own.
// /dev/stdout counts, for to open it anew would empty a log that standard
// output is appended to.
func toStandardOutput(path string) bool {
	if path == "" || path == "-" {
		return true
	}
	named, err := os.Stat(path)
	if err != nil {
		return false
	}
	stdout, err := os.Stdout.Stat()
	return err == nil && os.SameFile(named, stdout)
}

// checkOutput refuses a report file that cannot be written before the analysis
// is made for nothing.
func checkOutput(path string) error {
	if toStandardOutput(path) {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("--output: %s is a directory, give a file in it", path)
	}
	if !replaceable(path) {
		return nil
	}
	dir := filepath.Dir(path)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return usagef("--output: no file can be made in the directory %s: %w", dir, err)
	}
	return nil
}

// replaceable reports whether path is a regular file or nothing yet. Anything
// else must be written through: to put a file in place of /dev/stderr, which
// is a symbolic link, would take it from every program of the machine.
func replaceable(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || info.Mode().IsRegular()
}

// writeFile puts a report file in place whole or not at all, readable by its
// owner only: a report holds what was in the process's memory.
func writeFile(path string, report []byte) error {
	write := writeWhole
	if !replaceable(path) {
		write = writeThrough
	}
	if err := write(path, report); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

func writeWhole(path string, report []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".diagnose-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(report)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func writeThrough(path string, report []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(report)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}
