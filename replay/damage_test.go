package replay_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"diagnose/agent"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// damage is a change of some bytes of one field, at an offset.
type damage struct {
	name  string
	at    int
	bytes int
	value uint64
}

func (d *damage) apply(b []byte) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], d.value)
	copy(b[d.at:d.at+d.bytes], word[:])
}

// eventDamages are changes of the fields of struct dg_event, and of a payload after an event with
// that many arguments.
func eventDamages(args int) []damage {
	payload := 48 + 8*args
	return []damage{
		{"no length", 0, 4, 0}, {"a length that is too large", 0, 4, 0xfffffff8}, {"an odd length", 0, 4, 0x33},
		{"kind", 4, 1, 99}, {"flags", 5, 1, 0xff}, {"number of arguments", 6, 1, 0xff}, {"number of payloads", 7, 1, 0xff},
		{"ticket", 8, 8, 1 << 62}, {"object", 16, 8, 1 << 40}, {"site", 24, 8, 0x10}, {"result", 32, 8, 1 << 40}, {"mutexes", 40, 8, 1 << 60},
		{"argument", 48, 8, 1 << 62},
		{"a payload for the engine", payload, 8, agent.EngineControl}, {"a payload for nowhere", payload, 8, 0x10},
		{"a payload for the code", payload, 8, 0x555555555000}, {"a payload that wraps around", payload, 8, ^uint64(0) - 3},
		{"a payload's length", payload + 8, 4, 0xffffffff}, {"a payload's kind", payload + 12, 4, 99},
	}
}

// siteDamages are changes of the fields of struct dg_site_patch.
func siteDamages() []damage {
	return []damage{
		{"at nowhere", 0, 8, 0x10}, {"at the engine", 0, 8, agent.EngineControl}, {"resume", 8, 8, 0x10},
		{"kind", 16, 4, 99}, {"length", 20, 4, 200}, {"no length", 20, 4, 0}, {"before", 24, 4, 0xffffff00}, {"after", 28, 4, 0xffffff00},
	}
}

// TestDamagedFields changes one field of each class, and checks that the replay reports the
// damage, if there is any, and neither hangs nor crashes.
func TestDamagedFields(t *testing.T) {
	r := recordBasic(t, "wait")
	event := findOut(t, open(t, r.Dir))
	for _, x := range []struct {
		file    string
		offset  int64
		damages []damage
	}{
		{record.LogName, event.Offset, eventDamages(len(event.Args))},
		{record.SitesName, 0, siteDamages()},
	} {
		path := filepath.Join(r.Dir, x.file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range x.damages {
			t.Run(x.file+", "+d.name, func(t *testing.T) {
				damaged := bytes.Clone(whole)
				d.apply(damaged[x.offset:])
				if err := os.WriteFile(path, damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				checkRefused(t, replayDamaged(t, r.Dir))
			})
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := replayDamaged(t, r.Dir); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

func checkRefused(t *testing.T, err error) {
	t.Helper()
	var differs *replay.DivergenceError
	var stuck *replay.StuckError
	var input *replay.InputError
	switch {
	case err == nil:
		t.Log("it makes no difference")
	case errors.Is(err, context.DeadlineExceeded):
		t.Errorf("a replay that does not end: %v", err)
	case errors.As(err, &differs), errors.As(err, &stuck), errors.As(err, &input):
		t.Log(err)
	default:
		t.Errorf("%T: %v", err, err)
	}
}

// findOut returns the first event that has arguments and bytes for the program and is complete in
// the log.
func findOut(t *testing.T, rec *record.Recording) eventlog.Event {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(rec.Dir, record.LogName))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Args) > 0 && len(e.Payloads) > 0 && e.Payloads[0].Kind == eventlog.PayloadOut && log[e.Offset]&agent.Short == 0 {
			return *e
		}
	}
	t.Fatal("no call brought the program anything")
	return eventlog.Event{}
}
