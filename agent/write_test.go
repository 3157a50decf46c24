package agent_test

import (
	"encoding/binary"
	"testing"

	"diagnose/agent/agenttest"
	"diagnose/evidence"
)

// write puts one of the Raw types into memory.
func write(t *testing.T, m agenttest.Memory, addr evidence.Addr, raw any) {
	t.Helper()
	p, err := binary.Append(nil, binary.LittleEndian, raw)
	if err != nil {
		t.Fatal(err)
	}
	m.Write(addr, p)
}
