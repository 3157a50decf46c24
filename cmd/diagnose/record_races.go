package main

import (
	"math/rand/v2"

	"diagnose/replay/record"
)

// The values of record's flag --races.
const (
	racesEvents  = "events"
	racesTurns   = "turns"
	racesAtomics = "atomics"
)

// turns returns how threads take turns; nil: they do not.
func (f *recordFlags) turns() (*record.Turns, error) {
	switch {
	case f.races == racesTurns && f.seed == 0:
		return &record.Turns{Seed: rand.Uint64() | 1}, nil
	case f.races == racesTurns:
		return &record.Turns{Seed: f.seed}, nil
	case f.races != racesEvents && f.races != racesAtomics:
		return nil, usagef("--races is %s or %s, not %q", racesEvents, racesTurns, f.races)
	case f.seed != 0:
		return nil, usagef("--seed needs --races=%s", racesTurns)
	}
	return nil, nil
}
