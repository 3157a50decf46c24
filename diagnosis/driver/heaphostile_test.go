package driver_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// misuse makes each kind of error that the agent records, and continues until it crashes through a
// freed object.
const misuse = `
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char text[24]; };
static struct node *volatile list;
static char *volatile p;
int main(int argc, char **argv)
{
	list = calloc(1, sizeof *list);
	p = malloc(300000);
	p[-1] = 1;
	free(p);
	p = malloc(40);
	free(p);
	free(p);
	p[3] = 'x';
	free((char *)&argc);
	p = malloc(40);
	free(p + 8);
	memset(p, 'y', 44);
	free(p);
	p = malloc(10);
	memset(p, 'z', 18);
	free(list);
	return list->next->text[0];
}
`

// words are values that a reader of memory should not trust.
var words = []uint64{0, 1, 0xffffffff, 0xffffffffffffffff, 0x7fffffffffffffff, 0x8000000000000000, agent.Base, agent.Base + agent.OffObjects,
	agent.Base + agent.OffMeta, 1 << 40, 1 << 17, agent.FillTag << 48}

// TestGarbageInHeap: whatever is in the place of the agent's memory, the analysis ends in a sound
// report or refuses the input.
func TestGarbageInHeap(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "misuse.c", Text: misuse, Flags: []string{"-O0", "-w"}})
	core := crashtest.Core(t, exe, crashtest.Run{Env: underAgent(t, "on_error=continue")})
	whole := crash(t, driver.Request{Core: core})
	if whole.Failure.Kind != evidence.UseAfterFree || len(whole.Findings) < 7 {
		t.Fatalf("the core has no %s and %d findings", whole.Failure.Kind, len(whole.Findings))
	}
	data := read(t, core)
	parts := agentMemory(t, data)
	path := filepath.Join(t.TempDir(), "core")
	r := rand.New(rand.NewPCG(7, 8))
	for range 80 {
		bad := bytes.Clone(data)
		for range 1 + r.IntN(12) {
			part := parts[r.IntN(len(parts))]
			at := part.Off + 8*uint64(r.IntN(int(part.Filesz/8)))
			binary.LittleEndian.PutUint64(bad[at:], words[r.IntN(len(words))]+uint64(r.IntN(3))*uint64(r.IntN(200)))
		}
		write(t, path, bad)
		survives(t, "crash", driver.Request{Core: path})
		h, err := driver.Heap(context.Background(), driver.Request{Core: path}, driver.HeapOptions{Sites: 5})
		var input *driver.InputError
		switch {
		case err != nil && !errors.As(err, &input):
			t.Errorf("heap: %v is no *InputError", err)
		case err == nil:
			if err := h.Check(); err != nil {
				t.Error(err)
			}
			for _, l := range h.Limits {
				if strings.Contains(l.Text, "failed inside") {
					t.Error(l.Text)
				}
			}
		}
	}
}

// agentMemory are the parts of a core that the agent wrote: the beginnings of its windows, which
// hold the data in use.
func agentMemory(t *testing.T, core []byte) []elf.ProgHeader {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(core))
	if err != nil {
		t.Fatal(err)
	}
	const inUse = 4096
	var list []elf.ProgHeader
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Filesz > 0 && p.Vaddr >= agent.Base && p.Vaddr < agent.Base+agent.OffObjects+agent.ObjectsLimit {
			part := p.ProgHeader
			part.Filesz = min(part.Filesz, inUse)
			list = append(list, part)
		}
	}
	if len(list) < 6 {
		t.Fatalf("only %d of the agent's windows are in the core", len(list))
	}
	return list
}
