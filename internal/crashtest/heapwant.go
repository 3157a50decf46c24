package crashtest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// HeapWant is a finding that the analysis of a heap fixture's core has to
// have. It is read from a comment
//
//	// HEAP: KIND FIELD ...
//
// whose fields are separated by single spaces:
//
//	object=N    the finding is about an object of N bytes
//	api=NAME    that came from malloc (the default), new or new[]
//	offset=N    the damage begins N bytes from the object's start,
//	bytes=N     and N bytes without a gap are overwritten;
//	hex=DIGITS  they begin with these,
//	text=CHARS  or, in ASCII, with these;
//	reaches     they go up to the end of the guarded memory
//	beyond=N    an object of N bytes is where the damage continues
//	at=N        the address concerned is N bytes from the object's start
//	addr=0xN    the address concerned
//	alloc:CALL  the allocation; without free:CALL the object is live
//	free:CALL   the free
//	reused      the object is the one that lives where the freed one was
//	call:CALL   the call that found it; without one it was found in the core
//	says=WORD   the summary has this word
//	inferred    the proof level; the default is "from core"
//	optional    the finding need not be there
//
// A CALL is PLACE<PLACE...(THREAD): the lines of the program's own frames,
// innermost first, as many as are given, and the function that the thread was
// started with or "ended"; (THREAD) may be left out. A PLACE is @LINE, @LINE+n,
// @LINE+n..+m, or @mark where a line of the fixture, or of its library, ends
// with `// @mark`. "nowhere" is a CALL without a frame in the program.
type HeapWant struct {
	Kind     evidence.FindingKind
	Object   *WantObject
	Damage   *WantDamage
	At       *int64
	Addr     *evidence.Addr
	Call     *WantCall
	Says     string
	Proof    evidence.Proof
	Optional bool
}

// WantObject is the expected object of a finding.
type WantObject struct {
	Size            uint64
	API             string
	Beyond          *uint64
	Allocated, Free *WantCall
}

// WantDamage is the expected damage of a finding. Its bytes begin with Hex.
type WantDamage struct {
	Offset  int64
	Bytes   int
	Hex     string
	Reaches bool
}

// WantCall is an expected call: the program's own frames, innermost first, none for a call from
// nowhere, and the thread if it is given.
type WantCall struct {
	Frames []Lines
	Thread string
}

// ThreadEnded stands for a thread that has ended.
const ThreadEnded = "ended"

var heapAPIs = map[string]string{"malloc": "malloc", "new": "operator new", "new[]": "operator new[]"}

// heapParts says which parts a finding of each kind must have, so that no fixture forgets an
// assertion.
var heapParts = map[evidence.FindingKind]struct{ object, damage, free, call bool }{
	evidence.FindingHeapOverflow:   {object: true, damage: true},
	evidence.FindingHeapUnderflow:  {object: true, damage: true},
	evidence.FindingUseAfterFree:   {object: true, free: true},
	evidence.FindingDoubleFree:     {object: true, free: true, call: true},
	evidence.FindingInvalidFree:    {call: true},
	evidence.FindingMismatchedFree: {object: true, call: true},
	evidence.FindingHeapObject:     {object: true},
}

// heapFields are the fields of one directive while they are collected for a HeapWant.
type heapFields struct {
	want   HeapWant
	object WantObject
	damage WantDamage
	seen   []string
}

// parseHeap reads the value of a HEAP comment.
func parseHeap(value string, r *resolver) (HeapWant, error) {
	words := strings.Split(value, " ")
	f := &heapFields{object: WantObject{API: heapAPIs["malloc"]}}
	f.want = HeapWant{Kind: evidence.FindingKind(words[0]), Proof: evidence.FromCore}
	if _, ok := heapParts[f.want.Kind]; !ok {
		return HeapWant{}, fmt.Errorf("HEAP has the unknown kind %q", words[0])
	}
	for _, word := range words[1:] {
		name, text := word, ""
		if at := strings.IndexAny(word, "=:"); at >= 0 {
			name, text = word[:at+1], word[at+1:]
		}
		if slices.Contains(f.seen, name) {
			return HeapWant{}, fmt.Errorf("HEAP has a second %q", name)
		}
		f.seen = append(f.seen, name)
		if err := f.set(name, text, r); err != nil {
			return HeapWant{}, fmt.Errorf("HEAP %q: %w", word, err)
		}
	}
	return f.finish()
}

func (f *heapFields) set(name, text string, r *resolver) (err error) {
	switch name {
	case "object=":
		f.object.Size, err = strconv.ParseUint(text, 10, 64)
	case "api=":
		f.object.API = heapAPIs[text]
		if f.object.API == "" {
			err = errors.New("there is no such interface")
		}
	case "offset=":
		f.damage.Offset, err = strconv.ParseInt(text, 10, 64)
	case "bytes=":
		f.damage.Bytes, err = strconv.Atoi(text)
	case "hex=":
		f.damage.Hex = text
	case "text=":
		f.damage.Hex = fmt.Sprintf("%x", text)
	case "reaches":
		f.damage.Reaches = true
	case "reused": // asserted by the lack of free:
	case "beyond=":
		f.object.Beyond = new(uint64)
		*f.object.Beyond, err = strconv.ParseUint(text, 10, 64)
	case "at=":
		f.want.At = new(int64)
		*f.want.At, err = strconv.ParseInt(text, 10, 64)
	case "addr=":
		f.want.Addr = new(evidence.Addr)
		err = f.want.Addr.UnmarshalText([]byte(text))
	case "says=":
		f.want.Says = text
	case "inferred":
		f.want.Proof = evidence.Inferred
	case "optional":
		f.want.Optional = true
	default:
		return f.setCall(name, text, r)
	}
	return err
}

func (f *heapFields) setCall(name, text string, r *resolver) error {
	call, err := parseCall(text, r)
	switch name {
	case "alloc:":
		f.object.Allocated = call
	case "free:":
		f.object.Free = call
	case "call:":
		f.want.Call = call
	default:
		return errors.New("there is no such field")
	}
	return err
}

var callPattern = regexp.MustCompile(`^([^()]+)(?:\(([A-Za-z_:]+)\))?$`)

func parseCall(text string, r *resolver) (*WantCall, error) {
	m := callPattern.FindStringSubmatch(text)
	if m == nil {
		return nil, errors.New("a call is PLACE<PLACE(THREAD)")
	}
	call := &WantCall{Thread: m[2]}
	if m[1] == nowhere {
		return call, nil
	}
	for place := range strings.SplitSeq(m[1], "<") {
		lines, err := r.lines(place)
		if err != nil {
			return nil, err
		}
		call.Frames = append(call.Frames, lines)
	}
	return call, nil
}

func (f *heapFields) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(f.seen, n) })
}

// finish puts the parts together and refuses a directive that asserts too
// little.
func (f *heapFields) finish() (HeapWant, error) {
	need := heapParts[f.want.Kind]
	hasObject, hasDamage := f.has("object="), f.has("offset=", "bytes=", "hex=", "text=", "reaches")
	switch {
	case need.object && !hasObject, hasObject && f.object.Allocated == nil:
		return HeapWant{}, fmt.Errorf("object= or alloc: is missing in HEAP %s", f.want.Kind)
	case !hasObject && f.has("api=", "free:", "alloc:", "at=", "beyond="):
		return HeapWant{}, errors.New("HEAP says things of an object and not its size")
	case need.damage && !hasDamage, hasDamage && (!f.has("offset=") || f.damage.Bytes < 1):
		return HeapWant{}, fmt.Errorf("HEAP %s needs offset= and bytes=", f.want.Kind)
	case need.free && (f.object.Free == nil) != f.has("reused"):
		return HeapWant{}, fmt.Errorf("HEAP %s needs either free: CALL or reused", f.want.Kind)
	case f.has("hex=") && f.has("text="):
		return HeapWant{}, errors.New("HEAP has hex= and text=")
	case need.call && f.want.Call == nil:
		return HeapWant{}, fmt.Errorf("call: is missing in HEAP %s", f.want.Kind)
	}
	if hasObject {
		f.want.Object = &f.object
	}
	if hasDamage {
		f.want.Damage = &f.damage
	}
	return f.want, nil
}
