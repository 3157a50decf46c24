package main

import (
	"context"
	"errors"

	"diagnose/corpus"
	"diagnose/diagnosis/driver"
	"diagnose/fleet/collect/corestream"
	"diagnose/fleet/engine"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// exitStatus distinguishes the user's mistakes from unusable input and from errors of the tool. It
// is the only place that maps types of errors to statuses.
func exitStatus(err error) int {
	var usage *usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.Canceled), errors.Is(err, errInterrupted): // reading the input, perhaps
		return exitInterrupted
	case unusable(err):
		return exitInput
	}
	return exitInternal
}

// unusable reports whether an error is about the input: it is damaged, of another kind, cannot be
// read, or no longer fits this machine.
func unusable(err error) bool {
	return is[*driver.InputError](err) || is[*replay.InputError](err) || is[*corpus.InputError](err) || corpus.IsDamaged(err) ||
		is[*corestream.FormatError](err) || is[*eventlog.InputError](err) || is[*record.ManifestError](err) || is[*eventlog.VersionError](err) ||
		is[*eventlog.CutError](err) || is[*eventlog.CorruptError](err) ||
		is[*engine.InputError](err) || is[*engine.UnreachableError](err) || is[*engine.DeniedError](err)
}

func is[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
