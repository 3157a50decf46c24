package verify

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// shownDifferences is how many are kept of each kind.
const shownDifferences = 50

// Compare compares the stopped process with the core at the end of a stage.
func Compare(ctx context.Context, p *tracee.Process, s *recorded.Stage, core *image.Process) (*Comparison, error) {
	v := &verifier{variables: true}
	return v.compare(ctx, p, s, core)
}

// CompareProgram is Compare, but does not count what differs in the library's own variables: most of the
// memory, for which a search has no time.
func CompareProgram(ctx context.Context, p *tracee.Process, s *recorded.Stage, core *image.Process) (*Comparison, error) {
	v := &verifier{}
	return v.compare(ctx, p, s, core)
}

func (v *verifier) compare(ctx context.Context, p *tracee.Process, s *recorded.Stage, core *image.Process) (*Comparison, error) {
	v.ctx, v.process, v.stage, v.core, v.result, v.recorded = ctx, p, s, core, &Comparison{}, recorded.Threads(core)
	for _, step := range []func() error{v.findThreads, v.compareThreads, v.compareMappings, v.compareMemory} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return v.result, nil
}

type verifier struct {
	ctx     context.Context
	process *tracee.Process
	stage   *recorded.Stage
	core    *image.Process
	result  *Comparison
	// variables: the differences in the library's variables are counted.
	variables bool
	// recorded are the core's threads by their index in the recording, replayed those of the
	// process.
	recorded map[uint32]*recorded.Thread
	replayed map[uint32]*tracee.Thread
	// ending are threads that had done their last event but had not yet reported their end when
	// the core was written.
	ending []*agent.RawRThread
	maps   tracee.Mappings
}

func (v *verifier) findThreads() error {
	v.replayed = map[uint32]*tracee.Thread{}
	for _, t := range v.process.SortedThreads() {
		if t.Index == 0 {
			continue
		}
		r, err := v.process.ReadThread(t.Index)
		if err != nil {
			return err
		}
		if r.State != agent.REnded {
			v.replayed[t.Index] = t
		}
	}
	for i, want := range v.recorded {
		if v.replayed[i] == nil && v.wasEnding(want) {
			v.ending = append(v.ending, want.Raw)
			delete(v.recorded, i)
		} else if v.replayed[i] == nil {
			v.note(Difference{Kind: DifferentThread, Thread: i, Where: fmt.Sprintf("thread %d", i), Want: "runs", Have: "is not there"})
		}
	}
	for i := range v.replayed {
		if v.recorded[i] == nil && !v.starting(i) {
			v.note(Difference{Kind: DifferentThread, Thread: i, Where: fmt.Sprintf("thread %d", i), Want: "is not there", Have: "runs"})
		}
	}
	var err error
	v.maps, err = tracee.ReadMaps(v.process.PID)
	return err
}

func (v *verifier) note(d Difference) {
	r := v.result
	count := 0
	switch d.Kind {
	case DifferentMemory:
		count = len(r.Differences)
	case DifferentRegister:
		r.Registers++
		count = r.Registers - 1
	default:
		r.Mappings++
		count = r.Mappings - 1
	}
	if count < shownDifferences {
		r.Differences = append(r.Differences, d)
	}
}

func (v *verifier) compareThreads() error {
	for _, i := range sortedKeys(v.recorded) {
		t := v.replayed[i]
		if t == nil {
			continue
		}
		if err := v.compareThread(v.recorded[i], t); err != nil {
			return err
		}
		v.result.Threads++
	}
	return nil
}

func (v *verifier) compareThread(want *recorded.Thread, t *tracee.Thread) error {
	have, err := v.process.ProgramRegisters(t)
	if err != nil {
		return err
	}
	w := want.Program()
	if err := v.settleClone(want, t, &w, have); err != nil {
		return err
	}
	for _, x := range []struct {
		name       string
		want, have uint64
	}{
		{"rip", w.Rip, have.Rip}, {"rsp", w.Rsp, have.Rsp}, {"rax", w.Rax, have.Rax}, {"rbx", w.Rbx, have.Rbx},
		{"rcx", w.Rcx, have.Rcx}, {"rdx", w.Rdx, have.Rdx}, {"rsi", w.Rsi, have.Rsi}, {"rdi", w.Rdi, have.Rdi},
		{"rbp", w.Rbp, have.Rbp}, {"r8", w.R8, have.R8}, {"r9", w.R9, have.R9}, {"r10", w.R10, have.R10},
		{"r11", w.R11, have.R11}, {"r12", w.R12, have.R12}, {"r13", w.R13, have.R13}, {"r14", w.R14, have.R14},
		{"r15", w.R15, have.R15}, {"flags", w.Eflags & tracee.StatusFlags, have.Eflags & tracee.StatusFlags},
		{"fs_base", w.Fs_base, have.Fs_base}, {"gs_base", w.Gs_base, have.Gs_base},
	} {
		if x.want != x.have {
			v.note(Difference{Kind: DifferentRegister, Thread: want.Index, Register: x.name,
				Want: fmt.Sprintf("%#x", x.want), Have: fmt.Sprintf("%#x", x.have), Order: cmp.Compare(x.have, x.want), Apart: max(x.have, x.want) - min(x.have, x.want), Recorded: x.want})
		}
	}
	return v.compareVectors(want, t)
}

// compareVectors compares xmm0 to xmm15. The engine does not use them, so a thread in it has the
// program's values.
func (v *verifier) compareVectors(want *recorded.Thread, t *tracee.Thread) error {
	const first = 160 // FXSAVE's xmm0 (Intel SDM volume 1, table 10-2)
	b, err := ptrace.GetRegset(t.TID, ptrace.RegsetFP)
	if err != nil {
		return err
	}
	if want.Registers.Vector == nil || len(b) < first+16*16 {
		return fmt.Errorf("replay: thread %d has no vector registers to compare", want.Index)
	}
	for i, x := range want.Registers.Vector {
		have := b[first+16*i : first+16*i+16]
		if string(x[:]) != string(have) {
			v.note(Difference{Kind: DifferentRegister, Thread: want.Index, Register: fmt.Sprintf("xmm%d", i),
				Want: hex.EncodeToString(x[:]), Have: hex.EncodeToString(have)})
		}
	}
	return nil
}

// permissionSpan is contiguous memory with the same permissions.
type permissionSpan struct {
	tracee.Span
	perms string
}

// compareMappings compares the mapped memory. The borders between neighbours of equal permissions
// do not matter.
func (v *verifier) compareMappings() error {
	var want, have []permissionSpan
	fresh := v.newStacks()
	for i := range v.core.Mappings {
		m := &v.core.Mappings[i]
		if slices.ContainsFunc(fresh, func(x exclusion) bool { return x.Start == uint64(m.Start) }) {
			continue
		}
		if !tracee.Hidden(uint64(m.Start), m.Path) && !strings.HasPrefix(m.Perms, "?") {
			want = appendSpan(want, permissionSpan{tracee.Span{Start: uint64(m.Start), End: uint64(m.End)}, m.Perms})
		}
	}
	for _, m := range v.maps {
		if !tracee.Hidden(m.Start, m.Path) && !slices.Contains(v.process.Mapped, m.Span) {
			have = appendSpan(have, permissionSpan{m.Span, m.Perms[:3]})
		}
	}
	for i, j := 0, 0; i < len(want) || j < len(have); {
		switch {
		case i < len(want) && j < len(have) && want[i] == have[j]:
			i, j = i+1, j+1
		case j == len(have) || i < len(want) && want[i].Start <= have[j].Start:
			v.mappingDiffers(want[i], have)
			if j < len(have) && want[i].Start == have[j].Start {
				j++
			}
			i++
		default:
			v.note(Difference{Kind: DifferentMapping, Addr: evidence.Addr(have[j].Start), Size: have[j].Size(),
				Where: have[j].text(), Want: "nothing there", Have: have[j].perms})
			j++
		}
	}
	return nil
}

func (v *verifier) mappingDiffers(want permissionSpan, have []permissionSpan) {
	other := "nothing there"
	for _, h := range have {
		if h.Start < want.End && want.Start < h.End {
			other = h.text() + " " + h.perms
			break
		}
	}
	v.note(Difference{Kind: DifferentMapping, Addr: evidence.Addr(want.Start), Size: want.Size(), Where: want.text(), Want: want.perms, Have: other})
}

func (s permissionSpan) text() string { return fmt.Sprintf("mapping %#x-%#x", s.Start, s.End) }

func appendSpan(list []permissionSpan, s permissionSpan) []permissionSpan {
	if n := len(list); n > 0 && list[n-1].End == s.Start && list[n-1].perms == s.perms {
		list[n-1].End = s.End
		return list
	}
	return append(list, s)
}

// library names the library's variables.
func (v *verifier) library() string {
	return "the variables of " + filepath.Base(string(v.stage.Rec.Manifest.Agent.Path))
}

const whyEngine = "what records and what replays differ"

// place describes an address.
func (v *verifier) place(addr uint64) string {
	for _, i := range sortedKeys(v.recorded) {
		if t := v.recorded[i]; t.Raw.StackLow != 0 && addr >= t.Raw.StackLow && addr < t.Raw.StackHigh {
			sp := t.Program().Rsp
			if addr >= sp {
				return fmt.Sprintf("stack of thread %d, %d bytes above its stack pointer", i, addr-sp)
			}
			return fmt.Sprintf("stack of thread %d, %d bytes below its stack pointer", i, sp-addr)
		}
	}
	if name := agentWindow(addr); name != "" {
		return name
	}
	return v.core.Place(evidence.Addr(addr)).Text
}

// agentWindow names the windows of the agent's heap.
func agentWindow(addr uint64) string {
	if addr < agent.Base || addr >= agent.EngineBase {
		return ""
	}
	name := ""
	for _, w := range []struct {
		offset uint64
		name   string
	}{
		{agent.OffRoot, "the agent's root"}, {agent.OffHeaps, "the agent's heaps"}, {agent.OffThreads, "the agent's threads"},
		{agent.OffSites, "the agent's sites"}, {agent.OffSpans, "the agent's spans"}, {agent.OffMeta, "the agent's slot words"},
		{agent.OffObjects, "the agent's objects"},
	} {
		if addr-agent.Base >= w.offset {
			name = fmt.Sprintf("%s+%#x", w.name, addr-agent.Base-w.offset)
		}
	}
	return name
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
