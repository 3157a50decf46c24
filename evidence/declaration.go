package evidence

// DeclaredRule is by what a run is said to have failed that ended well.
type DeclaredRule string

// The rules.
const (
	DeclaredByOutput DeclaredRule = "output" // a line that was written matches Detail
	DeclaredByFile   DeclaredRule = "file"   // the file Detail is there, or is not as it should be
	DeclaredByCheck  DeclaredRule = "check"  // the command Detail failed after the run
	DeclaredByPlace  DeclaredRule = "place"  // the user says that it failed at Detail
)

// Declaration says why a run failed that ended well.
type Declaration struct {
	Rule DeclaredRule `json:"rule"`
	// Detail is the regular expression, the path, the command or the place.
	Detail string `json:"detail"`
	// Line is the line that matched.
	Line string `json:"line,omitempty"`
	// Moment is where the report begins; nil: at the end of the process.
	Moment *Moment `json:"moment,omitempty"`
}
