package evidence

import "fmt"

// The limits of what a stopped process or its core shows. Subject is the file, object or thread,
// Reason says why.
const (
	// LimitTruncated: the core or a part of it is cut off; it may lack anything.
	LimitTruncated LimitCode = "core-truncated"
	// LimitMemory: Count of Of mappings are not whole in the core; Names are some of them.
	LimitMemory LimitCode = "memory-missing"
	// LimitNoFileList: the core does not name the mapped files.
	LimitNoFileList LimitCode = "no-file-list"
	// LimitMissingFiles: Count objects have no file; Names are the first of them.
	LimitMissingFiles LimitCode = "files-missing"
	// LimitOtherFile: the file found is not the one that the process ran.
	LimitOtherFile LimitCode = "file-mismatch"
	// LimitUncheckedFile: whether the file found is the one that the process ran is not known.
	LimitUncheckedFile LimitCode = "file-unchecked"
	// LimitManyObjects: the process maps more than Count objects; the others are left out.
	LimitManyObjects LimitCode = "too-many-objects"
	// LimitDamagedFile: a part of a file cannot be read.
	LimitDamagedFile LimitCode = "file-damaged"
	// LimitNoDebugInfo: an object has no debug information, or some of it cannot be read.
	LimitNoDebugInfo LimitCode = "no-debug-information"
	// LimitUnwinding: frames in the object may be guessed.
	LimitUnwinding LimitCode = "frames-guessed"
	// LimitVDSO: the vDSO cannot be read.
	LimitVDSO LimitCode = "vdso-unreadable"
	// LimitThreadRuns: a thread of a live process did not stop and is left out.
	LimitThreadRuns LimitCode = "thread-not-stopped"
	// LimitGoroutines: goroutines, or what they wait for, are not known or may be wrong.
	LimitGoroutines LimitCode = "goroutines-unknown"
	// LimitHeapUnread: parts of the agent's heap cannot be read.
	LimitHeapUnread LimitCode = "heap-unread"
	// LimitHeapFindings: findings of the heap are left out.
	LimitHeapFindings LimitCode = "heap-findings-left-out"
	// LimitHeapDamaged: Count headers of the C library's heap are overwritten.
	LimitHeapDamaged LimitCode = "heap-damaged"
	// LimitLeaks: which objects are unreachable is not known. Reason.
	LimitLeaks LimitCode = "leaks-unknown"
	// LimitMissingMemory: Count bytes of writable memory, which may have pointers to objects, cannot be read.
	LimitMissingMemory LimitCode = "pointers-missing"
	// LimitUnwrittenMemory: the core lacks Count bytes of writable memory because the program never wrote to them, or excluded them from cores. In the second
	// case they may have pointers to objects.
	LimitUnwrittenMemory LimitCode = "unwritten-memory"
	// LimitScan: the scan for suspects does not cover all code, or does not list all of them.
	LimitScan LimitCode = "scan-cut"
	// LimitFunction: Names[0], which the user asked for, is no function, or is many.
	LimitFunction LimitCode = "function-unclear"
	// LimitClassification: a fact that the kind of the failure depends on is not known.
	LimitClassification LimitCode = "failure-facts-unknown"
	// LimitNoCore: the recording has no core; a replay shows the process.
	LimitNoCore LimitCode = "no-core"
	// LimitEndUnknown: how the recorded process ended is not known.
	LimitEndUnknown LimitCode = "end-unknown"
	// LimitSchedule: no schedule was found with which the replay reaches the recorded end. Count
	// of Of events were reached.
	LimitSchedule LimitCode = "schedule-not-found"
	// LimitBeforeHandler: the process is shown at the signal that its handler took.
	LimitBeforeHandler LimitCode = "before-handler"
	// LimitFamily: recordings of other processes of the run cannot be read.
	LimitFamily LimitCode = "family-unread"
	// LimitWaits: what threads wait for is not known.
	LimitWaits LimitCode = "waits-unknown"
	// LimitRefused: the recorder refused a system call, or did not enforce a filter.
	LimitRefused LimitCode = "call-refused"
	// LimitAllocator: Names[0], an entry of its environment, had the program take its objects from
	// malloc, and not from an allocator of its own.
	LimitAllocator LimitCode = "allocator-replaced"
)

// processWords is the text of the limits above whose reason names the subject.
func (l *Limit) processWords() (string, bool) {
	switch l.Code {
	case LimitMissingFiles, LimitOtherFile, LimitUncheckedFile, LimitNoDebugInfo, LimitThreadRuns:
		return l.Reason, true
	case LimitManyObjects:
		return fmt.Sprintf("the process maps more than %d objects; the others are left out", l.Count), true
	case LimitHeapDamaged:
		if l.Count == 1 {
			return "a header of the heap is overwritten: objects after it were counted from the next whole ones on", true
		}
		return fmt.Sprintf("%d headers of the heap are overwritten: objects after them were counted from the next whole ones on", l.Count), true
	case LimitRaceReport:
		return fmt.Sprintf("not all of the race detector's report %s was read: %s", l.Subject, l.Reason), true
	case LimitLeaks:
		return "which objects no pointer leads to is not known: " + l.Reason, true
	case LimitMissingMemory:
		return fmt.Sprintf("%d bytes of writable memory cannot be read, and pointers may be there: objects called unreachable may be reachable from it", l.Count), true
	case LimitUnwrittenMemory:
		return fmt.Sprintf("%d bytes of writable memory are not in the core: the program never wrote to them, or excluded them from cores (MADV_DONTDUMP); if it excluded them, objects called unreachable may be reachable from there", l.Count), true
	case LimitAllocator:
		return fmt.Sprintf("the program's own allocator was replaced by malloc (%s), so that the agent sees its objects: without the agent they are at other addresses", l.names()), true
	}
	return "", false
}
