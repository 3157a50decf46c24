package patterns

import (
	"encoding/binary"
	"testing"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

// logOf makes a log from arbitrary bytes; it need not be consistent.
func logOf(data []byte, failed bool) *evidence.AccessLog {
	base := accesslog.Log(counterFails)
	log := &evidence.AccessLog{Failed: failed, Variables: base.Variables, Contexts: base.Contexts, Threads: base.Threads,
		LockSets: [][]evidence.Lock{nil, {{Address: 1, Taken: 1}}, {{Address: 1, Taken: 2}, {Address: 2, Taken: 3, Shared: true}}}}
	for ; len(data) >= 12; data = data[12:] {
		n := binary.LittleEndian.Uint32(data[8:])
		switch data[0] % 8 {
		case 0:
			log.Order = append(log.Order, evidence.OrderEdge{From: uint32(data[1] % 5), To: uint32(data[2] % 5),
				FromOrdinal: uint64(data[3]), ToOrdinal: uint64(data[4]), Lock: data[5]&1 != 0})
		case 1:
			log.Acquisitions = append(log.Acquisitions, evidence.Acquisition{Thread: uint32(data[1] % 5), Context: int32(n),
				Held: int32(data[2] % 4), Lock: evidence.Lock{Address: evidence.Addr(data[3] % 4)}, Waiting: data[4]&1 != 0})
		default:
			log.Accesses = append(log.Accesses, evidence.Access{
				Ordinal: uint64(data[1]), Old: uint64(data[2]), New: uint64(data[3]), Variable: int32(data[4] % 3), Context: int32(data[5] % 4),
				Locks: int32(data[6] % 3), Thread: uint32(data[7] % 5), Offset: n, Kind: evidence.AccessCode(data[0] >> 3 & 3), Handler: data[1] & 1,
			})
		}
	}
	return log
}

func FuzzFind(f *testing.F) {
	f.Add([]byte("0123456789ab0123456789ab"), []byte("ba9876543210"))
	f.Add(make([]byte, 120), make([]byte, 24))
	f.Fuzz(func(t *testing.T, failing, passing []byte) {
		runs, err := delta.Align([]*evidence.AccessLog{logOf(failing, true)}, []*evidence.AccessLog{logOf(passing, false)})
		if err != nil {
			return
		}
		r := Find(delta.Compare(runs), Options{})
		for i := range r.Candidates {
			c := &r.Candidates[i]
			if c.Score < 0 || c.Score > 1 || c.Key == "" || len(c.Variables) == 0 {
				t.Fatalf("%+v", c)
			}
			for _, a := range c.Accesses {
				if a < 0 || a >= len(runs.Failing[c.Run].Log.Accesses) {
					t.Fatalf("access %d", a)
				}
			}
		}
	})
}
