package tracee

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"diagnose/agent"
)

// The structures that are read and written in place have no padding.
func TestLayout(t *testing.T) {
	for name, sizes := range map[string][2]int{
		"control":       {int(unsafe.Sizeof(agent.RawControl{})), binary.Size(agent.RawControl{})},
		"thread":        {int(unsafe.Sizeof(agent.RawRThread{})), binary.Size(agent.RawRThread{})},
		"frame":         {int(unsafe.Sizeof(agent.RawFrame{})), binary.Size(agent.RawFrame{})},
		"replay header": {int(unsafe.Sizeof(agent.RawReplayHeader{})), binary.Size(agent.RawReplayHeader{})},
		"replay thread": {int(unsafe.Sizeof(agent.RawReplayThread{})), binary.Size(agent.RawReplayThread{})},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s: %d bytes in memory, %d without padding", name, sizes[0], sizes[1])
		}
	}
}
