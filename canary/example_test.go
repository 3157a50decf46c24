package canary_test

import (
	"fmt"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/canary"
)

// The guard after an object of 24 bytes is overwritten by a store of 4 bytes.
func ExampleCheckHeap() {
	memory := agenttest.New()
	slot := memory.Small(48, 1)
	memory.Alloc(slot, 24, agent.Call{}, agent.APIMalloc)
	memory.Memory.Write(slot+24, []byte("over"))
	heap, err := memory.Open()
	if err != nil {
		panic(err)
	}
	for _, d := range canary.CheckHeap(heap, canary.HeapOptions{}).Damages {
		fmt.Printf("%d bytes are overwritten, %d bytes after the end of an object of %d bytes\n", d.Damage.Overwritten, d.Gap, d.Object.Size)
	}
	// Output: 4 bytes are overwritten, 0 bytes after the end of an object of 24 bytes
}
