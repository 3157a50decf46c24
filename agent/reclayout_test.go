package agent_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"diagnose/agent"
)

// recordStructs and recordConstants are the mirrors of record.h.
var recordStructs = map[string]any{
	"dg_log_header":    agent.RawLogHeader{},
	"dg_extent":        agent.RawExtent{},
	"dg_event":         agent.RawEvent{},
	"dg_payload":       agent.RawPayload{},
	"dg_short":         agent.RawShort{},
	"dg_mapped":        agent.RawMapped{},
	"dg_site_patch":    agent.RawSitePatch{},
	"dg_divergence":    agent.RawDivergence{},
	"dg_control":       agent.RawControl{},
	"dg_decision":      agent.RawDecision{},
	"dg_hunt":          agent.RawHunt{},
	"dg_point_site":    agent.RawPointSite{},
	"dg_site_code":     agent.RawSiteCode{},
	"dg_atomic_site":   agent.RawAtomicSite{},
	"dg_atomics":       agent.RawAtomics{},
	"dg_replay_header": agent.RawReplayHeader{},
	"dg_replay_thread": agent.RawReplayThread{},
	"dg_run":           agent.RawRun{},
	"dg_rthread":       agent.RawRThread{},
	"dg_signal_state":  agent.RawSignalState{},
	"dg_range":         agent.RawRange{},
	"dg_frame":         agent.RawFrame{},
}

var recordConstants = map[string]uint64{
	"DG_RECORD_MAGIC":      agent.RecordMagic,
	"DG_RECORD_VERSION":    agent.RecordVersion,
	"DG_ENGINE_BASE":       agent.EngineBase,
	"DG_ENGINE_CONTROL":    agent.EngineControl,
	"DG_ENGINE_HUNT":       agent.EngineHunt,
	"DG_ENGINE_SITES":      agent.EngineSites,
	"DG_ENGINE_SYNC":       agent.EngineSync,
	"DG_ENGINE_THREADS":    agent.EngineThreads,
	"DG_ENGINE_PATHS":      agent.EnginePaths,
	"DG_ENGINE_LOG":        agent.EngineLog,
	"DG_ENGINE_IMAGE":      agent.EngineImage,
	"DG_ENGINE_STACKS":     agent.EngineStacks,
	"DG_ENGINE_END":        agent.EngineEnd,
	"DG_THREAD_SLOT":       agent.ThreadSlot,
	"DG_PATHS_SLOT":        agent.PathsSlot,
	"DG_RTHREADS":          agent.RThreads,
	"DG_EXTENT":            agent.ExtentSize,
	"DG_STACK_SLOT":        agent.StackSlot,
	"DG_EXTENT_MAGIC":      agent.ExtentMagic,
	"DG_EXTENT_IDLE":       agent.ExtentIdle,
	"DG_EVENT_INTERRUPTED": agent.EventInterrupted,
	"DG_EVENT_SOFT":        agent.EventSoft,
	"DG_TICKET_PENDING":    agent.TicketPending,
	"DG_EVENT_ARRIVED":     agent.EventArrived,
	"DG_TRAP_MAGIC":        agent.TrapMagic,
	"DG_MODE_OFF":          agent.ModeOff,
	"DG_MODE_RECORD":       agent.ModeRecord,
	"DG_MODE_REPLAY":       agent.ModeReplay,
	"DG_EV_NONE":           agent.EvNone,
	"DG_EV_START":          agent.EvStart,
	"DG_EV_EXIT":           agent.EvExit,
	"DG_EV_CREATE":         agent.EvCreate,
	"DG_EV_JOIN":           agent.EvJoin,
	"DG_EV_DETACH":         agent.EvDetach,
	"DG_EV_CREATED":        agent.EvCreated,
	"DG_EV_CANCEL":         agent.EvCancel,
	"DG_EV_MUTEX":          agent.EvMutex,
	"DG_EV_RWLOCK":         agent.EvRwlock,
	"DG_EV_SPIN":           agent.EvSpin,
	"DG_EV_COND":           agent.EvCond,
	"DG_EV_SEM":            agent.EvSem,
	"DG_EV_BARRIER":        agent.EvBarrier,
	"DG_EV_ONCE":           agent.EvOnce,
	"DG_EV_GUARD":          agent.EvGuard,
	"DG_EV_HEAP":           agent.EvHeap,
	"DG_EV_ORDER":          agent.EvOrder,
	"DG_EV_VALUE":          agent.EvValue,
	"DG_EV_POINT":          agent.EvPoint,
	"DG_POINT_EVENT":       agent.PointEvent,
	"DG_POINT_CODE":        agent.PointCode,
	"DG_POINT_PC":          agent.PointPC,
	"DG_POINT_STATE":       agent.PointState,
	"DG_POINT_ATOMIC":      agent.PointAtomic,
	"DG_PATCH_ATOMIC":      agent.PatchAtomic,
	"DG_PATCH_CODE":        agent.PatchCode,
	"DG_PATCH_ADDRESS":     agent.PatchAddress,
	"DG_PATCH_OPERATION":   agent.PatchOperation,
	"DG_ATOMIC_AREAS":      agent.AtomicAreas,
	"DG_ATOMIC_SITES":      agent.AtomicSites,
	"DG_ATOMIC_LINES":      agent.AtomicLines,
	"DG_ATOMIC_LINES_AT":   agent.AtomicLinesAt,
	"DG_ENGINE_ATOMICS":    agent.EngineAtomics,
	"DG_PARKED_END":        agent.ParkedEnd,
	"DG_PARKED_POINT":      agent.ParkedPoint,
	"DG_PARKED_TURN":       agent.ParkedTurn,
	"DG_EVENT_EXTRA":       agent.EventExtra,
	"DG_EVENT_RAISED":      agent.EventRaised,
	"DG_EV_SYSCALL":        agent.EvSyscall,
	"DG_EV_TSC":            agent.EvTSC,
	"DG_EV_FORK":           agent.EvFork,
	"DG_EV_EXEC":           agent.EvExec,
	"DG_EV_SIGNAL":         agent.EvSignal,
	"DG_EV_SIGNAL_END":     agent.EvSignalEnd,
	"DG_EV_LIMIT":          agent.EvLimit,
	"DG_EV_END":            agent.EvEnd,
	"DG_KINDS":             agent.Kinds,
	"DG_CREATE_DETACHED":   agent.CreateDetached,
	"DG_CREATE_OWN_STACK":  agent.CreateOwnStack,
	"DG_CREATE_INTERNAL":   agent.CreateInternal,
	"DG_SYNC_LOCK":         agent.SyncLock,
	"DG_SYNC_TRY":          agent.SyncTry,
	"DG_SYNC_TIMED":        agent.SyncTimed,
	"DG_SYNC_READ":         agent.SyncRead,
	"DG_SYNC_TRY_READ":     agent.SyncTryRead,
	"DG_SYNC_TIMED_READ":   agent.SyncTimedRead,
	"DG_SYNC_WAIT":         agent.SyncWait,
	"DG_SYNC_TIMED_WAIT":   agent.SyncTimedWait,
	"DG_SYNC_GET":          agent.SyncGet,
	"DG_SYNC_INIT":         agent.SyncInit,
	"DG_SYNC_FOUND":        agent.SyncFound,
	"DG_SYNC_REAL":         agent.SyncReal,
	"DG_SIGNAL_EVENT":      agent.SignalEvent,
	"DG_SIGNAL_ASYNC":      agent.SignalAsync,
	"DG_SIGNAL_FAULT":      agent.SignalFault,
	"DG_LIMIT_DISK":        agent.LimitDisk,
	"DG_LIMIT_SYSCALL":     agent.LimitSyscall,
	"DG_LIMIT_SHARED":      agent.LimitShared,
	"DG_LIMIT_SITE":        agent.LimitSite,
	"DG_LIMIT_PLACE":       agent.LimitPlace,
	"DG_LIMIT_TRACER":      agent.LimitTracer,
	"DG_LIMIT_START":       agent.LimitStart,
	"DG_LIMIT_TRACED":      agent.LimitTraced,
	"DG_LIMIT_FILES":       agent.LimitFiles,
	"DG_LIMIT_SIZE":        agent.LimitSize,
	"DG_SHORT":             agent.Short,
	"DG_SHORT_BYTES":       agent.ShortBytes,
	"DG_SHORT_ARGS":        agent.ShortArgs,
	"DG_SHORT_OBJECT":      agent.ShortObject,
	"DG_SHORT_RESULT":      agent.ShortResult,
	"DG_SHORT_SKIPPED":     agent.ShortSkipped,
	"DG_PAYLOAD_OUT":       agent.PayloadOut,
	"DG_PAYLOAD_DIGEST":    agent.PayloadDigest,
	"DG_PAYLOAD_TEXT":      agent.PayloadText,
	"DG_PAYLOAD_FILE":      agent.PayloadFile,
	"DG_PAYLOAD_INFO":      agent.PayloadInfo,
	"DG_PAYLOAD_REGISTERS": agent.PayloadRegisters,
	"DG_PAYLOAD_RANGES":    agent.PayloadRanges,
	"DG_PAYLOAD_WORDS":     agent.PayloadWords,
	"DG_PAYLOAD_WRITTEN":   agent.PayloadWritten,
	"DG_SIGNAL_STACK_AT":   agent.SignalStackAt,
	"DG_SIGNAL_STACK":      agent.SignalStack,
	"DG_PATCH_JUMP":        agent.PatchJump,
	"DG_PATCH_TRAP":        agent.PatchTrap,
	"DG_PATCH_CLONE":       agent.PatchClone,
	"DG_PATCH_TSC":         agent.PatchTSC,
	"DG_PATCH_TSC_TRAP":    agent.PatchTSCTrap,
	"DG_TRAP_HELLO":        agent.TrapHello,
	"DG_TRAP_OBJECTS":      agent.TrapObjects,
	"DG_TRAP_FORKED":       agent.TrapForked,
	"DG_TRAP_EXIT":         agent.TrapExit,
	"DG_TRAP_ARM":          agent.TrapArm,
	"DG_TRAP_LAST":         agent.TrapLast,
	"DG_TRAP_DIVERGED":     agent.TrapDiverged,
	"DG_TRAP_FINISHED":     agent.TrapFinished,
	"DG_TRAP_MOMENT":       agent.TrapMoment,
	"DG_TRAP_LEFT":         agent.TrapLeft,
	"DG_TRAP_FATAL":        agent.TrapFatal,
	"DG_TRAP_STUCK":        agent.TrapStuck,
	"DG_TRAP_UNPARK":       agent.TrapUnpark,
	"DG_TRAP_READY":        agent.TrapReady,
	"DG_TRAP_TRACED":       agent.TrapTraced,
	"DG_TRAP_REFUSED":      agent.TrapRefused,
	"DG_TRAP_SHARED":       agent.TrapShared,
	"DG_FREE_NOT":          agent.FreeNot,
	"DG_FREE_MAY":          agent.FreeMay,
	"DG_FORK_HAS_ALL":      agent.ForkHasAll,
	"DG_FORK_ADVISED":      agent.ForkAdvised,
	"DG_FREE_IS":           agent.FreeIs,
	"DG_STUCK_BLOCKED":     agent.StuckBlocked,
	"DG_STUCK_INPUT":       agent.StuckInput,
	"DG_STUCK_CYCLE":       agent.StuckCycle,
	"DG_STUCK_EVENTS":      agent.StuckEvents,
	"DG_HUNT_NOT":          agent.HuntNot,
	"DG_HUNT_RANDOM":       agent.HuntRandom,
	"DG_HUNT_PCT":          agent.HuntPCT,
	"DG_HUNT_DELAY":        agent.HuntDelay,
	"DG_HUNT_PLAN":         agent.HuntPlan,
	"DG_HUNT_TURNS":        agent.HuntTurns,
	"DG_HUNT_DECISIONS":    agent.HuntDecisions,
	"DG_HUNT_PLAN_AT":      agent.HuntPlanAt,
	"DG_HUNT_MADE_AT":      agent.HuntMadeAt,
	"DG_HUNT_TRAIL_AT":     agent.HuntTrailAt,
	"DG_HUNT_SITES_AT":     agent.HuntSitesAt,
	"DG_HUNT_SITES":        agent.HuntSites,
	"DG_HUNT_AREAS":        agent.HuntAreas,
	"DG_HUNT_BYTES":        agent.HuntBytes,
	"DG_DECISION_PREEMPTS": agent.DecisionPreempts,
	"DG_TURN_SIGNAL":       agent.TurnSignal,
	"DG_TURN_VALUE":        agent.TurnValue,
	"DG_DIFFERS_NONE":      agent.DiffersNone,
	"DG_DIFFERS_KIND":      agent.DiffersKind,
	"DG_DIFFERS_OBJECT":    agent.DiffersObject,
	"DG_DIFFERS_SITE":      agent.DiffersSite,
	"DG_DIFFERS_ARGUMENT":  agent.DiffersArgument,
	"DG_DIFFERS_DATA":      agent.DiffersData,
	"DG_DIFFERS_SKIPPED":   agent.DiffersSkipped,
	"DG_DIFFERS_MAPPING":   agent.DiffersMapping,
	"DG_DIFFERS_STATE":     agent.DiffersState,
	"DG_DIFFERS_THREAD":    agent.DiffersThread,
	"DG_DIFFERS_LOG":       agent.DiffersLog,
	"DG_R_NONE":            agent.RNone,
	"DG_R_STARTING":        agent.RStarting,
	"DG_R_RUNNING":         agent.RRunning,
	"DG_R_WAITING":         agent.RWaiting,
	"DG_R_ENDED":           agent.REnded,
	"DG_ENTRY_SYSCALL":     agent.EntrySyscall,
	"DG_ENTRY_CALL":        agent.EntryCall,
	"DG_ENTRY_TSC":         agent.EntryTSC,
	"DG_ENTRY_INSN":        agent.EntryInsn,
	"DG_ENTRY_SIGNAL":      agent.EntrySignal,
	"DG_ENTRY_POINT":       agent.EntryPoint,
}

func TestRecordLayout(t *testing.T) {
	var program, want strings.Builder
	program.WriteString("#include <stdio.h>\n#include \"record.h\"\nint main(void)\n{\n")
	for name, mirror := range recordStructs {
		typ := reflect.TypeOf(mirror)
		fmt.Fprintf(&program, "printf(\"%s %%zu\\n\", sizeof(struct %s));\n", name, name)
		fmt.Fprintf(&want, "%s %d\n", name, typ.Size())
		if binary.Size(mirror) != int(typ.Size()) {
			t.Errorf("%s: encoding/binary sees %d bytes, the compiler %d", name, binary.Size(mirror), typ.Size())
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			fmt.Fprintf(&program, "printf(\"%s.%s %%zu %%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n",
				name, cName(f), name, cName(f), name, cName(f))
			fmt.Fprintf(&want, "%s.%s %d %d\n", name, cName(f), f.Offset, f.Type.Size())
		}
	}
	for name, value := range recordConstants {
		fmt.Fprintf(&program, "printf(\"%s %%llu\\n\", (unsigned long long)(%s));\n", name, name)
		fmt.Fprintf(&want, "%s %d\n", name, value)
	}
	program.WriteString("return 0;\n}\n")
	got := strings.Split(run(t, program.String()), "\n")
	for i, line := range strings.Split(want.String(), "\n") {
		if i >= len(got) || got[i] != line {
			t.Errorf("the mirror says %q, the compiler %q", line, append(got, "nothing")[min(i, len(got))])
		}
	}
}

// TestRecordLayoutIsWhole finds what the header has and the mirror has not.
func TestRecordLayoutIsWhole(t *testing.T) {
	header, err := os.ReadFile("src/record.h")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(header), "")
	told := map[string]bool{"DG_RECORD_H": true}
	for _, m := range regexp.MustCompile(`\bDG_[A-Z0-9_]+\b`).FindAllString(text, -1) {
		if _, ok := recordConstants[m]; !ok && !told[m] {
			t.Errorf("%s has no mirror", m)
			told[m] = true
		}
	}
	found := 0
	for _, m := range regexp.MustCompile(`(?s)\bstruct (dg_\w+) \{(.*?)\n\}`).FindAllStringSubmatch(text, -1) {
		found++
		checkFields(t, recordStructs, m[1], m[2])
	}
	if found != len(recordStructs) {
		t.Errorf("%d structs in the header, %d mirrors", found, len(recordStructs))
	}
}
