package reports

import (
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"diagnose/evidence"
)

// The parts of SARIF 2.1.0 that are written (OASIS standard, 2020; the sections
// are in the comments). Members that are not set are left out.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool                        `json:"tool"`
		Invocations []sarifInvocation                `json:"invocations,omitempty"`
		BaseIDs     map[string]sarifArtifactLocation `json:"originalUriBaseIds,omitempty"`
		ColumnKind  string                           `json:"columnKind"`
		Results     []sarifResult                    `json:"results"`
		Properties  map[string]any                   `json:"properties,omitempty"`
	}
	sarifTool struct {
		Driver sarifComponent `json:"driver"`
	}
	sarifComponent struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules,omitempty"`
	}
	sarifRule struct {
		ID     string       `json:"id"`
		Name   string       `json:"name"`
		Short  sarifMessage `json:"shortDescription"`
		Config sarifConfig  `json:"defaultConfiguration"`
		// Properties are set for a rule whose results have a severity.
		Properties map[string]any `json:"properties,omitempty"`
	}
	sarifConfig struct {
		Level string `json:"level"`
	}
	// sarifInvocation is 3.20. Its notifications are the limits of the analysis.
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	// sarifResult is 3.27.
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Kind         string             `json:"kind"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Stacks       []sarifStack       `json:"stacks,omitempty"`
		CodeFlows    []sarifCodeFlow    `json:"codeFlows,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints,omitempty"`
		Properties   map[string]any     `json:"properties,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	// sarifSuppression is 3.35.
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifMessage  `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact *sarifArtifactLocation `json:"artifactLocation,omitempty"`
		Region   *sarifRegion           `json:"region,omitempty"`
		Context  *sarifRegion           `json:"contextRegion,omitempty"`
	}
	sarifArtifactLocation struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		StartLine   int           `json:"startLine"`
		StartColumn int           `json:"startColumn,omitempty"`
		Snippet     *sarifSnippet `json:"snippet,omitempty"`
	}
	sarifSnippet struct {
		Text string `json:"text"`
	}
	sarifLogical struct {
		Name      string `json:"name"`
		Qualified string `json:"fullyQualifiedName"`
		Decorated string `json:"decoratedName,omitempty"`
		Kind      string `json:"kind"`
	}
	sarifStack struct {
		Message *sarifMessage `json:"message,omitempty"`
		Frames  []sarifFrame  `json:"frames"`
	}
	sarifFrame struct {
		Location sarifLocation `json:"location"`
		Module   string        `json:"module,omitempty"`
		ThreadID int           `json:"threadId,omitempty"`
	}
	// sarifCodeFlow is 3.36, a run; its threadFlows (3.37) are the threads of it.
	sarifCodeFlow struct {
		Message     sarifMessage      `json:"message"`
		ThreadFlows []sarifThreadFlow `json:"threadFlows"`
	}
	sarifThreadFlow struct {
		ID        string              `json:"id"`
		Message   sarifMessage        `json:"message"`
		Locations []sarifFlowLocation `json:"locations"`
	}
	// sarifFlowLocation is 3.38. Order is its place in time among those of all
	// threads.
	sarifFlowLocation struct {
		Location   sarifLocation           `json:"location"`
		Stack      *sarifStack             `json:"stack,omitempty"`
		Kinds      []string                `json:"kinds,omitempty"`
		State      map[string]sarifMessage `json:"state,omitempty"`
		Order      int                     `json:"executionOrder"`
		Importance string                  `json:"importance"`
	}
)

const (
	sarifVersion = "2.1.0"
	// sarifSchema is the published schema's address. Writing a report does not read it.
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	// sarifRoot stands for the directory that relative paths start from (3.14.14).
	sarifRoot = "SRCROOT"
	// maxSarifFrames bounds the frames of a stack.
	maxSarifFrames = 100
)

// sarifEscaper doubles the braces, which would otherwise be placeholders (3.11.5).
var sarifEscaper = strings.NewReplacer("{", "{{", "}", "}}")

// sarifLinks breaks text that would be a link (3.11.6).
var sarifLinks = strings.NewReplacer("](", "] (")

func sarifText(text string) sarifMessage {
	return sarifMessage{sarifLinks.Replace(sarifEscaper.Replace(cutSpan(Clean(text))))}
}

func sarifTextPointer(text string) *sarifMessage {
	if text == "" {
		return nil
	}
	m := sarifText(text)
	return &m
}

// place returns the location of a place in the code, with a message.
func (b *sarifBuilder) place(s *evidence.Site, text string) sarifLocation {
	l := sarifLocation{Message: sarifTextPointer(text)}
	if s == nil {
		return l
	}
	if s.File != "" {
		l.Physical = &sarifPhysical{Artifact: b.artifact(s.File)}
		if s.Line > 0 {
			l.Physical.Region = &sarifRegion{StartLine: s.Line, StartColumn: max(s.Column, 0)}
			// The snippet of a region is the whole region, which here begins in the middle of the
			// line (3.30.13).
			if text, found := b.c.SourceLine(s.File, s.Line); found {
				l.Physical.Region.StartColumn = codePoint(text, s.Column)
				l.Physical.Context = &sarifRegion{StartLine: s.Line, Snippet: &sarifSnippet{snippet(text)}}
			}
		}
	} else if s.Module != "" {
		l.Physical = &sarifPhysical{Artifact: b.artifact(s.Module)}
	}
	if s.Function != "" {
		l.Logical = []sarifLogical{{Name: cutSpan(Clean(functionOf(*s))), Qualified: cutSpan(Clean(s.Function)),
			Decorated: cutSpan(Clean(s.LinkageName)), Kind: "function"}}
	}
	return l
}

// codePoint converts a column of debug information, which counts bytes, to code points. 0 is
// unknown.
func codePoint(text string, column int) int {
	if column <= 0 || column > len(text)+1 {
		return max(column, 0)
	}
	return utf8.RuneCountInString(text[:column-1]) + 1
}

// snippet returns a line as it is in its file, except for characters that would act on a terminal.
func snippet(text string) string {
	parts := strings.Split(text, "\t")
	for i := range parts {
		parts[i] = Clean(parts[i])
	}
	return cutSpan(strings.Join(parts, "\t"))
}

// artifact is a file's URI (3.10): relative to the root if it is below it.
func (b *sarifBuilder) artifact(file string) *sarifArtifactLocation {
	file = path.Clean(cutSpan(Clean(file)))
	if b.root != "" {
		if below, found := strings.CutPrefix(file, b.root+"/"); found {
			b.rooted = true
			return &sarifArtifactLocation{URI: fileURI(below), URIBaseID: sarifRoot}
		}
	}
	if path.IsAbs(file) {
		return &sarifArtifactLocation{URI: "file://" + fileURI(file)}
	}
	return &sarifArtifactLocation{URI: fileURI(file)}
}

// fileURI escapes a path. One with a colon in its first part would be a scheme
// (RFC 3986, 4.2).
func fileURI(file string) string {
	text := (&url.URL{Path: file}).EscapedPath()
	if first, _, _ := strings.Cut(text, "/"); strings.Contains(first, ":") {
		return "./" + text
	}
	return text
}
