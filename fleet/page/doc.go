// Package page serves a corpus to a team as web pages: new causes, causes by program, version,
// host and time, flaky tests, a cause with its report, failures, search, and counts for a
// monitoring system.
//
// All is made on the server and works without a script. Only labels can be changed. Names and
// texts in a corpus come from failing programs and are hostile: templates escape them, a policy
// refuses all that is not the page's own, and a report is shown in a frame of an origin of its
// own. A request selects only what the corpus lists; no part of it becomes a path of a file.
package page
